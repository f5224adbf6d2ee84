package main

import (
	"context"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// lopen is this project as a loop uses it.
type lopen struct {
	store *lifecycle.Store
	sess  *lifecycle.Session
}

func openLopen(dir string, n int) (Peer, error) {
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	if err != nil {
		return nil, err
	}
	sess, err := store.Create(context.Background(), "bench")
	if err != nil {
		return nil, err
	}
	err = sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error { workload.Fill(e, n); return nil })
	if err != nil {
		return nil, err
	}
	return &lopen{store, sess}, sess.Flush(context.Background())
}

func (l *lopen) Save(s workload.Step) error {
	return l.sess.Change(session.TriggerStepCompleted, s.Apply)
}

func (l *lopen) Append(text string) error {
	return l.sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(text)})
}

func (l *lopen) Sync() error  { return l.sess.Sync(context.Background()) }
func (l *lopen) Close() error { return l.store.Close(context.Background()) }

// records are those of the journal so far: as many as there were commits.
func (l *lopen) records() (n float64, err error) {
	err = l.store.Log(l.sess.ID(), 0, func(session.Record) error { n++; return nil })
	return n, err
}
