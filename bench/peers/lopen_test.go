package main

import (
	"context"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// project is this project as a loop uses it.
type project struct {
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
	return &project{store, sess}, sess.Flush(context.Background())
}

func (l *project) Save(s workload.Step) error {
	return l.sess.Change(session.TriggerStepCompleted, s.Apply)
}

func (l *project) Append(text string) error {
	return l.sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(text)})
}

func (l *project) Sync() error  { return l.sess.Sync(context.Background()) }
func (l *project) Close() error { return l.store.Close(context.Background()) }

// records are those of the journal so far: as many as there were commits.
func (l *project) records() (n float64, err error) {
	err = l.store.Log(l.sess.ID(), 0, func(record.Record) error { n++; return nil })
	return n, err
}
