package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// The checks of this file are about one open session. All but that of the messages hold
// for a store that saves nothing as well.

func checkSave(p *place) {
	store := p.open()
	sess, other := p.create(store, "auth"), p.create(store, "auth")
	require.Equal(p, sess.ID(), sess.State().ID())
	require.Equal(p, session.StatusActive, sess.State().Status())
	st, err := setTurn(1)(sess.State())
	require.NoError(p, err)
	require.NoError(p, sess.Save(st, session.TriggerTaskCompleted))
	require.Same(p, st, sess.State(), "what was accepted is the newest State at once")
	require.NoError(p, sess.Sync(p.Context()))
	require.NoError(p, sess.Flush(p.Context()))
	require.NoError(p, sess.Save(nil, session.TriggerStepCompleted))
	require.Same(p, st, sess.State(), "nil is the newest one")
	require.Error(p, sess.Save(other.State(), session.TriggerStepCompleted), "the State of another session")
	require.Error(p, sess.Save(nil, session.NumTriggers), "no trigger")
	require.Equal(p, 1, turnOf(sess))
	require.Zero(p, turnOf(other))
}

func checkUpdate(p *place) {
	sess := p.create(p.open(), "auth")
	const each, by = 100, 4
	var g sync.WaitGroup
	errs := make(chan error, by*each)
	for range by {
		g.Go(func() {
			for range each {
				errs <- sess.Update(func(st *session.State) (*session.State, error) { return setTurn(st.Header().TurnCount + 1)(st) })
			}
		})
	}
	g.Wait()
	close(errs)
	for err := range errs {
		require.NoError(p, err)
	}
	require.Equal(p, each*by, turnOf(sess), "no update is lost")
	cause := errors.New("no")
	was := sess.State()
	require.ErrorIs(p, sess.Update(func(*session.State) (*session.State, error) { return nil, cause }), cause)
	require.Same(p, was, sess.State())
}

// checkBurst saves faster than any disk: the last one counts.
func checkBurst(p *place) {
	sess := p.create(p.open(), "auth")
	st := sess.State()
	for i := range 10_000 {
		var err error
		st, err = setTurn(i + 1)(st)
		require.NoError(p, err)
		require.NoError(p, sess.Save(st, session.TriggerStepCompleted))
	}
	require.NoError(p, sess.Sync(p.Context()))
	require.Equal(p, 10_000, turnOf(sess))
	require.NoError(p, sess.Close(p.Context()))
}

func checkClosed(p *place) {
	store := p.open()
	sess, left := p.create(store, "auth"), p.create(store, "auth")
	require.NoError(p, sess.Close(p.Context()))
	refuses := func(sess *lifecycle.Session) {
		p.Helper()
		require.ErrorIs(p, sess.Save(nil, session.TriggerStepCompleted), lifecycle.ErrClosed)
		require.ErrorIs(p, sess.Update(setTurn(1)), lifecycle.ErrClosed)
		require.ErrorIs(p, sess.Append(&session.Message{Role: session.RoleUser}), lifecycle.ErrClosed)
		require.ErrorIs(p, sess.AppendEvent(strictjson.Value(`{"a":1}`)), lifecycle.ErrClosed)
		require.ErrorIs(p, sess.Sync(p.Context()), lifecycle.ErrClosed)
		require.ErrorIs(p, sess.Flush(p.Context()), lifecycle.ErrClosed)
		require.NoError(p, sess.Close(p.Context()), "it is idempotent")
	}
	refuses(sess)
	require.NoError(p, left.Update(setTurn(1)), "another one is open")
	require.NoError(p, store.Close(p.Context()))
	refuses(left)
	_, err := store.Create(p.Context(), "auth")
	require.Error(p, err)
}

// checkContexts: a call that waits for the disk ends with its context, and a call that
// gave up takes nothing away.
func checkContexts(p *place) {
	sess := p.create(p.open(), "auth")
	p.turn(sess, 1)
	gone, cancel := context.WithCancel(p.Context())
	cancel()
	for range 100 { // it may also be done before it looks
		for _, err := range []error{sess.Sync(gone), sess.Flush(gone)} {
			if err != nil {
				require.ErrorIs(p, err, context.Canceled)
			}
		}
	}
	require.NoError(p, sess.Sync(p.Context()))
	require.Equal(p, 1, turnOf(sess))
}

// checkIDs requires that no ID is given twice, however many callers ask at once.
func checkIDs(p *place) {
	const each = 10
	stores := []*lifecycle.Store{p.open(), p.open()}
	seen := make(chan session.ID, each*len(stores))
	errs := make(chan error, each*len(stores))
	var g sync.WaitGroup
	for _, store := range stores {
		g.Go(func() {
			for i := range each {
				sess, err := store.Create(p.Context(), []string{"auth", "api"}[i%2])
				if err != nil {
					errs <- err
					continue
				}
				seen <- sess.ID()
				errs <- sess.Close(p.Context())
			}
		})
	}
	g.Wait()
	close(seen)
	close(errs)
	for err := range errs {
		require.NoError(p, err)
	}
	all := map[session.ID]bool{}
	for id := range seen {
		require.False(p, all[id], "%s was given twice", id)
		all[id] = true
		again, err := session.ParseID(id.String())
		require.NoError(p, err)
		require.Equal(p, id, again)
	}
	require.Len(p, all, each*len(stores))
}

func checkModules(p *place) {
	store := p.open()
	require.Equal(p, "a-b_1", p.create(store, "a-b_1").ID().Module)
	for _, bad := range []string{"", "A", "-a", "a/b", "..", "a b"} {
		_, err := store.Create(p.Context(), bad)
		require.ErrorIs(p, err, lifecycle.ErrInvalid, "%q", bad)
	}
}

func checkMessages(p *place) {
	store := p.open()
	sess := p.create(store, "auth")
	require.Empty(p, p.read(sess.Messages()))
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprint("m", i))
	}
	p.append(sess, want...)
	require.Equal(p, want, p.read(sess.Messages()), "in order")
	for _, err := range sess.Messages() {
		require.NoError(p, err)
		break // which is no error
	}

	full := &session.Message{Role: session.RoleAssistant, Content: strictjson.Value(`[{"type":"text","text":"ok"}]`),
		ToolCalls: []session.ToolCall{{ID: "c", Name: "read", Arguments: strictjson.Value(`{"path":"x"}`)}}, Usage: &session.Usage{InputTokens: 3}}
	require.NoError(p, sess.Append(full))
	require.NotEmpty(p, full.ID, "an ID is made where there is none")
	require.False(p, full.Time.IsZero())
	require.NoError(p, sess.Sync(p.Context()))
	var last session.Message
	for m, err := range sess.Messages() {
		require.NoError(p, err)
		last = m
	}
	require.Equal(p, *full, last)

	require.ErrorIs(p, sess.Append(&session.Message{Role: "robot"}), lifecycle.ErrInvalid)
	for _, event := range []string{`3`, `[]`, `{"a":1`, ``} {
		require.ErrorIs(p, sess.AppendEvent(strictjson.Value(event)), lifecycle.ErrInvalid, "%q", event)
	}
	require.Len(p, p.read(sess.Messages()), len(want)+1, "what was refused is not there")

	require.Equal(p, want[:8], p.read(store.MessagesUpTo(sess.ID(), "m7")), "that one is the last")
	for _, err := range store.MessagesUpTo(sess.ID(), "m99") {
		require.ErrorIs(p, err, lifecycle.ErrNotFound)
	}
}

// checkUnknown: what is not there is not found, by whatever name.
func checkUnknown(p *place) {
	store := p.open()
	id, err := session.ParseID("auth-20200101-7")
	require.NoError(p, err)
	_, err = store.Open(id)
	require.ErrorIs(p, err, lifecycle.ErrNotFound)
	_, err = store.Fork(p.Context(), id, lifecycle.ForkOptions{})
	require.ErrorIs(p, err, lifecycle.ErrNotFound)
	_, err = store.Delete(p.Context(), id)
	require.ErrorIs(p, err, lifecycle.ErrNotFound)
	for _, module := range []string{"", "auth"} {
		_, err = store.Latest(module)
		require.ErrorIs(p, err, lifecycle.ErrNotFound)
	}
	all, err := store.List()
	require.NoError(p, err)
	require.Empty(p, all)
	sess := p.create(store, "auth")
	_, err = sess.Rewind(p.Context(), checkpoint.ID{9}, rewind.Options{Files: true, State: true})
	require.ErrorIs(p, err, lifecycle.ErrNotFound)
}
