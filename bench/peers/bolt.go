package main

import (
	"encoding/binary"
	"encoding/json"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/lopen-dev/lopen/bench/workload"
)

// boltDB keeps one value a task, an iteration and a message. Its transactions are
// durable when they end.
type boltDB struct{ db *bolt.DB }

var (
	tasksBucket      = []byte("tasks")
	iterationsBucket = []byte("iterations")
	messagesBucket   = []byte("messages")
)

func openBolt(dir string, n int) (Peer, error) {
	db, err := bolt.Open(filepath.Join(dir, "state.db"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	b := &boltDB{db}
	return b, db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{tasksBucket, iterationsBucket, messagesBucket} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		for i := range n {
			if err := putTask(tx, i, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

func putTask(tx *bolt.Tx, i, attempts int) error {
	data, err := json.Marshal(taskOf(i, attempts))
	if err != nil {
		return err
	}
	return tx.Bucket(tasksBucket).Put(binary.BigEndian.AppendUint32(nil, uint32(i)), data)
}

func appendTo(tx *bolt.Tx, bucket, data []byte) error {
	b := tx.Bucket(bucket)
	seq, err := b.NextSequence()
	if err != nil {
		return err
	}
	return b.Put(binary.BigEndian.AppendUint64(nil, seq), data)
}

func (b *boltDB) Save(s workload.Step) error {
	return b.db.Update(func(tx *bolt.Tx) error {
		if err := putTask(tx, s.Task, s.Attempts); err != nil || !s.Iteration {
			return err
		}
		data, err := json.Marshal(oneIteration)
		if err != nil {
			return err
		}
		return appendTo(tx, iterationsBucket, data)
	})
}

func (b *boltDB) Append(text string) error {
	return b.db.Update(func(tx *bolt.Tx) error { return appendTo(tx, messagesBucket, []byte(text)) })
}

func (b *boltDB) Sync() error  { return nil }
func (b *boltDB) Close() error { return b.db.Close() }
