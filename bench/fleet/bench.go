package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A bench is the state of a run.
type bench struct {
	testing.TB // nil: only the methods of bench are called
	cleanups   []func()

	size  sizes
	dir   string // of everything on the disk
	page  bytes.Buffer
	costs costs
}

const (
	project = "bench" // in the database
	module  = "bench"
	tasks   = 40 // of a plan
)

// What a task says: the bytes of a question and of its answer.
const (
	question = 1 << 10
	answer   = 2 << 10
)

// A worker is a session, with a fleet or without one.
type worker interface {
	Append(m *session.Message) error
	Change(t session.Trigger, fn func(*session.Edit) error) error
	Sync(ctx context.Context) error
}

// create makes a session with a plan.
func create(store *lifecycle.Store) (*lifecycle.Session, error) {
	sess, err := store.Create(context.Background(), module)
	if err != nil {
		return nil, err
	}
	err = sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		workload.Fill(e, tasks)
		return nil
	})
	if err == nil {
		err = sess.Sync(context.Background())
	}
	return sess, err
}

// step is the n-th change of a loop.
func step(w worker, n int, iteration bool) error {
	s := workload.StepOf(n, tasks)
	s.Iteration = iteration
	return w.Change(session.TriggerTaskCompleted, s.Apply)
}

func say(w worker, size, n int) error {
	return w.Append(&session.Message{Role: session.RoleUser, Content: fmt.Appendf(nil, "%q", workload.Text(size, n))})
}

// task is the n-th task of a loop: it begins, durably, something is said, and it is completed, durably.
// synced is called after each Sync.
func task(w worker, n int, synced func()) error {
	ctx := context.Background()
	err := step(w, 2*n, false)
	if err == nil {
		err = w.Sync(ctx)
	}
	synced()
	for _, size := range []int{question, answer} {
		if err == nil {
			err = say(w, size, n)
		}
	}
	if err == nil {
		err = step(w, 2*n+1, true)
	}
	if err == nil {
		err = w.Sync(ctx)
	}
	synced()
	return err
}

// open opens a fleet whose database has the tables.
func open(url, host string) (*fleet.Fleet, error) {
	f, err := fleet.Open(fleet.Options{URL: url, Project: project, Host: host})
	if err != nil {
		return nil, err
	}
	_, err = f.Migrate(context.Background())
	return f, err
}

// at returns the value below which a part of some values is. The values are sorted.
func at[T any](sorted []T, part float64) T {
	return sorted[min(int(float64(len(sorted))*part), len(sorted)-1)]
}

func median(all []float64) float64 { return at(slices.Sorted(slices.Values(all)), 0.5) }

// ms shows a time in milliseconds.
func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

// short shows a time with three digits.
func short(d time.Duration) time.Duration {
	digit := time.Duration(1)
	for d/digit >= 1000 {
		digit *= 10
	}
	return d.Round(digit)
}
