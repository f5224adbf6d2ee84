package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// exampleStore makes a store in a temporary project.
func exampleStore() (store *lifecycle.Store, done func()) {
	project, err := os.MkdirTemp("", "lopen-example-")
	if err != nil {
		panic(err)
	}
	store, _, err = lifecycle.Init(project, lifecycle.Options{Now: func() time.Time { return day }})
	if err != nil {
		panic(err)
	}
	return store, func() {
		_ = store.Close(context.Background())
		_ = os.RemoveAll(project)
	}
}

// exampleSession is a session of such a store.
func exampleSession() (store *lifecycle.Store, sess *lifecycle.Session, done func()) {
	store, done = exampleStore()
	sess, err := store.Create(context.Background(), "auth")
	if err != nil {
		panic(err)
	}
	return store, sess, done
}

func ExampleInit() {
	project, err := os.MkdirTemp("", "lopen-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(project)
	for range 2 {
		store, made, err := lifecycle.Init(project, lifecycle.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(filepath.Base(store.Path()), made)
		if err := store.Close(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// .lopen true
	// .lopen false
}

func ExampleStore_Create() {
	store, done := exampleStore()
	defer done()
	sess, err := store.Create(context.Background(), "auth")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sess.ID())
	_, err = store.Open(sess.ID())
	fmt.Println("opened twice:", errors.Is(err, lifecycle.ErrBusy))
	// Output:
	// auth-20260214-1
	// opened twice: true
}

// A change does not wait for the disk; Sync does.
func ExampleSession_Change() {
	store, sess, done := exampleSession()
	defer done()
	err := sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error {
		e.Header().Phase = session.PhasePlanning
		return nil
	})
	if err != nil {
		fmt.Println(err) // a *PausedError: the State is accepted, the disk has a problem
		return
	}
	if err := sess.Sync(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	st, seq, err := store.Read(sess.ID()) // as any other process would
	fmt.Println(st.Phase(), seq, err)
	// Output: planning 2 <nil>
}

func ExampleStore_Recover() {
	ctx := context.Background()
	store, sess, done := exampleSession()
	defer done()
	_ = sess.Close(ctx)
	_ = os.Truncate(filepath.Join(store.Path(), "sessions", sess.ID().String(), "state.json"), 10)

	r, err := store.Recover(ctx, sess.ID().String(), repair.JournalAlone, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.From, "->", r.ID, "at record", r.Seq)
	fmt.Println(r.Recovered)
	fmt.Println(store.Accept(ctx, r.ID))
	// Output:
	// auth-20260214-1 -> auth-20260214-2 at record 2
	// [record 2, from nothing 0 of 0 tasks are done, 0 starts of the command]
	// <nil>
}

func ExampleStore_AcceptEdit() {
	ctx := context.Background()
	store, sess, done := exampleSession()
	defer done()
	_ = sess.Close(ctx)
	file := filepath.Join(store.Path(), "sessions", sess.ID().String(), "state.json")
	data, _ := os.ReadFile(file)
	_ = os.WriteFile(file, bytes.Replace(data, []byte(`"requirement-gathering"`), []byte(`"planning"`), 1), 0o600)

	_, err := store.Open(sess.ID())
	fmt.Println(errors.Is(err, lifecycle.ErrEdited))
	edit, err := store.AcceptEdit(sess.ID(), false)
	fmt.Println(edit.Changes, err)
	// Output:
	// true
	// [phase-changed: 1] <nil>
}

// A message that was not accepted is not lost silently: the loop still has it.
func ExampleSession_Append() {
	_, sess, done := exampleSession()
	defer done()
	for range 2 {
		err := sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("go on")})
		switch {
		case errors.Is(err, lifecycle.ErrBacklogFull):
			fmt.Println("wait for Sync, then append it again")
		case errors.Is(err, lifecycle.ErrClosed):
			fmt.Println("too late:", err)
		default:
			fmt.Println("accepted:", err == nil)
		}
		if err := sess.Close(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// accepted: true
	// too late: session is closed
}

// An error of the storage says what failed, and what to do.
func ExampleError() {
	store, sess, done := exampleSession()
	defer done()
	// Somebody removes the whole store while the session is open.
	if err := os.RemoveAll(store.Path()); err != nil {
		fmt.Println(err)
	}
	err := sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().TurnCount++
		return nil
	})
	err = errors.Join(err, sess.Sync(context.Background()))
	var failed *lifecycle.Error
	fmt.Println(errors.As(err, &failed))
	fmt.Println(failed.Class == lifecycle.ClassRemoved, failed.Class.Hint())
	// Output:
	// true
	// true it is made again from memory
}
