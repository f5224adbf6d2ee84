package main

import (
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/tidwall/wal"
	bolt "go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the driver

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/writer"
)

// records keeps one record a task, an iteration and a message, in a log or a database.
type records struct {
	commit func(...item) error // has done all that is promised when it returns
	close  func() error
	added  uint32 // iterations and messages
}

type item struct {
	kind  byte
	key   uint32 // among those of its kind
	value []byte
}

const (
	taskRecord byte = iota
	iterationRecord
	messageRecord
)

func taskItem(i, attempts int) item {
	return item{taskRecord, uint32(i), must(json.Marshal(taskOf(i, attempts)))}
}

// fill commits a plan of n tasks.
func (r *records) fill(n int) Peer {
	all := make([]item, n)
	for i := range all {
		all[i] = taskItem(i, 0)
	}
	must(r, r.commit(all...))
	return r
}

func (r *records) Save(s workload.Step) error {
	changed := taskItem(s.Task, s.Attempts)
	if !s.Iteration {
		return r.commit(changed)
	}
	r.added++
	return r.commit(changed, item{iterationRecord, r.added, must(json.Marshal(oneIteration))})
}

func (r *records) Append(text string) error {
	r.added++
	return r.commit(item{messageRecord, r.added, []byte(text)})
}

func (r *records) Sync() error  { return nil }
func (r *records) Close() error { return r.close() }

// openBolt opens a database whose transactions are durable when they end.
func openBolt(dir string, n int) Peer {
	db := must(bolt.Open(filepath.Join(dir, "state.db"), 0o600, nil))
	b := &records{close: db.Close, commit: func(all ...item) error {
		return db.Update(func(tx *bolt.Tx) error {
			to, err := tx.CreateBucketIfNotExists([]byte("records"))
			for i := 0; err == nil && i < len(all); i++ {
				err = to.Put(binary.BigEndian.AppendUint32([]byte{all[i].kind}, all[i].key), all[i].value)
			}
			return err
		})
	}}
	return b.fill(n)
}

// openSQLite opens a database in write-ahead mode, with one of SQLite's levels of
// synchronous: FULL syncs the log at each commit, NORMAL only at checkpoints.
func openSQLite(synchronous string) func(string, int) Peer {
	return func(dir string, n int) Peer {
		db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")"))
		db.SetMaxOpenConns(1)
		must(db.Exec("CREATE TABLE records (kind INTEGER, key INTEGER, value BLOB, PRIMARY KEY (kind, key)) WITHOUT ROWID"))
		put := must(db.Prepare("INSERT INTO records VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"))
		s := &records{close: db.Close, commit: func(all ...item) error {
			if len(all) == 1 { // a transaction by itself
				_, err := put.Exec(all[0].kind, all[0].key, all[0].value)
				return err
			}
			tx, err := db.Begin()
			for i := 0; err == nil && i < len(all); i++ {
				_, err = tx.Stmt(put).Exec(all[i].kind, all[i].key, all[i].value)
			}
			if err != nil {
				return err // closing takes it back
			}
			return tx.Commit()
		}}
		return s.fill(n)
	}
}

// logOf appends the records of a commit as one entry. What the state is has to be found
// by reading: these are logs and nothing more.
func logOf(write func(index uint64, data []byte) error, end func() error) Peer {
	index := uint64(0)
	return &records{close: end, commit: func(all ...item) error {
		var entry []byte
		for _, r := range all {
			entry = append(entry, r.value...)
		}
		index++
		return write(index, entry)
	}}
}

func openTidwall(dir string, _ int) Peer {
	l := must(wal.Open(dir, nil))
	return logOf(l.Write, l.Close)
}

func openRaft(dir string, _ int) Peer {
	l := must(raftwal.Open(dir))
	return logOf(func(index uint64, data []byte) error {
		return l.StoreLog(&raft.Log{Index: index, Term: 1, Data: data})
	}, l.Close)
}

// recordBytes is about what this project writes for a step.
const recordBytes = 450

// openFloor opens one append and one fdatasync a commit: of a message, or of as many bytes
// as a record of a change has.
func openFloor(dir string, _ int) Peer {
	d := must(writer.OpenFS(dir))
	f := must(d.OpenFile("log", os.O_CREATE|os.O_WRONLY, 0o600))
	must(f, d.SyncDir("."))
	off := int64(0)
	return &records{close: func() error { return errors.Join(f.Close(), d.Close()) }, commit: func(all ...item) error {
		data := make([]byte, recordBytes)
		if all[0].kind == messageRecord {
			data = all[0].value
		}
		n, err := f.WriteAt(data, off)
		off += int64(n)
		if err != nil {
			return err
		}
		return f.Datasync()
	}}
}
