package main

import (
	"encoding/json"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/tidwall/wal"

	"github.com/lopen-dev/lopen/bench/workload"
)

// logged appends what a step changed to a write-ahead log. What the state is has to be
// found by reading the log: these are logs and nothing more.
type logged struct {
	index  uint64 // of the last entry
	append func(index uint64, data []byte) error
	close  func() error
}

// change is the record of a step.
type change struct {
	Task      task       `json:"task"`
	Iteration *iteration `json:"iteration,omitempty"`
}

func openTidwall(dir string, _ int) (Peer, error) {
	l, err := wal.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	return &logged{append: l.Write, close: l.Close}, nil
}

func openRaftWAL(dir string, _ int) (Peer, error) {
	l, err := raftwal.Open(dir)
	if err != nil {
		return nil, err
	}
	return &logged{append: func(index uint64, data []byte) error {
		return l.StoreLog(&raft.Log{Index: index, Term: 1, Data: data})
	}, close: l.Close}, nil
}

func (l *logged) Save(s workload.Step) error {
	c := change{Task: taskOf(s.Task, s.Attempts)}
	if s.Iteration {
		c.Iteration = &oneIteration
	}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return l.write(data)
}

func (l *logged) Append(text string) error { return l.write([]byte(text)) }

func (l *logged) write(data []byte) error {
	l.index++
	return l.append(l.index, data)
}

func (l *logged) Sync() error  { return nil }
func (l *logged) Close() error { return l.close() }
