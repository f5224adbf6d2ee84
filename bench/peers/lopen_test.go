package main

import (
	"context"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// project is this project as a loop uses it.
type project struct {
	store *lifecycle.Store
	sess  *lifecycle.Session
}

func openLopen(dir string, n int) Peer {
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	p := project{must(store, err), must(store.Create(context.Background(), "bench"))}
	p.fill(n)
	must(p, p.sess.Flush(context.Background()))
	return p
}

// fill gives the session a plan of n tasks.
func (p project) fill(n int) {
	must(p, p.sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error { workload.Fill(e, n); return nil }))
}

func (p project) Save(s workload.Step) error {
	return p.sess.Change(session.TriggerStepCompleted, s.Apply)
}

func (p project) Append(text string) error {
	return p.sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(text)})
}

func (p project) Sync() error  { return p.sess.Sync(context.Background()) }
func (p project) Close() error { return p.store.Close(context.Background()) }
