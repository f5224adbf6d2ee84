package lifecycle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// The checks of this file are about what another store finds.

func checkReopen(p *place) {
	store := p.open()
	sess := p.create(store, "auth")
	id := sess.ID()
	for i := range 3 {
		p.turn(sess, i+1)
		require.NoError(p, sess.AppendEvent(strictjson.Value(`{"a":1}`)))
		p.append(sess, fmt.Sprint("m", i))
		require.NoError(p, sess.Update(setTurn(10*(i+1))), "an Update that nobody saved")
		require.NoError(p, sess.Close(p.Context()))
		if i == 1 {
			require.NoError(p, store.Close(p.Context()))
			store = p.open()
		}
		var err error
		sess, err = store.Open(id)
		require.NoError(p, err)
		require.Equal(p, id, sess.ID())
		require.Equal(p, 10*(i+1), turnOf(sess), "Close commits it")
	}
	require.Equal(p, []string{"m0", "m1", "m2"}, p.read(sess.Messages()))
}

func checkBusy(p *place) {
	store, second := p.open(), p.open()
	sess := p.create(store, "auth")
	for _, s := range []*lifecycle.Store{store, second} {
		_, err := s.Open(sess.ID())
		require.ErrorIs(p, err, lifecycle.ErrBusy)
		_, err = s.Delete(p.Context(), sess.ID())
		require.ErrorIs(p, err, lifecycle.ErrBusy)
	}
	p.turn(sess, 1)
	require.NoError(p, sess.Close(p.Context()))
	again, err := second.Open(sess.ID())
	require.NoError(p, err)
	require.Equal(p, 1, turnOf(again))
	_, err = store.Open(sess.ID())
	require.ErrorIs(p, err, lifecycle.ErrBusy)
}

func checkLatest(p *place) {
	store := p.open()
	first, second := p.create(store, "auth"), p.create(store, "api")
	of := func(module string) session.ID {
		p.Helper()
		id, err := p.open().Latest(module)
		require.NoError(p, err)
		return id
	}
	require.Equal(p, second.ID(), of(""))
	require.Equal(p, first.ID(), of("auth"))
	_, err := store.Latest("other")
	require.ErrorIs(p, err, lifecycle.ErrNotFound)
	third := p.create(store, "auth")
	require.Equal(p, third.ID(), of(""))
	require.Equal(p, third.ID(), of("auth"))
	require.Equal(p, second.ID(), of("api"))
	require.NoError(p, third.Close(p.Context()))
	_, err = store.Delete(p.Context(), third.ID())
	require.NoError(p, err)
	require.Equal(p, first.ID(), of("auth"))
	require.NotEqual(p, third.ID(), of(""))
}

func checkList(p *place) {
	store := p.open()
	auth, api := p.create(store, "auth"), p.create(store, "api")
	p.append(auth, "a", "b")
	require.NoError(p, auth.Flush(p.Context()))
	for _, s := range []*lifecycle.Store{store, p.open()} {
		all, err := s.List()
		require.NoError(p, err)
		require.Len(p, all, 2)
		require.EqualValues(p, 2, p.info(s, auth.ID()).Messages)
		require.Equal(p, "api", p.info(s, api.ID()).Module)
		require.Equal(p, session.StatusActive, p.info(s, api.ID()).Status)
	}
}

func checkRemove(p *place) {
	store := p.open()
	sess, stays := p.create(store, "auth"), p.create(store, "auth")
	p.append(sess, "a")
	p.append(stays, "b")
	require.NoError(p, sess.Close(p.Context()))
	_, err := store.Delete(p.Context(), sess.ID())
	require.NoError(p, err)
	_, err = store.Open(sess.ID())
	require.ErrorIs(p, err, lifecycle.ErrNotFound)
	_, err = store.Delete(p.Context(), sess.ID())
	require.ErrorIs(p, err, lifecycle.ErrNotFound)
	all, err := p.open().List()
	require.NoError(p, err)
	require.Len(p, all, 1)
	require.Equal(p, []string{"b"}, p.read(stays.Messages()))
	require.NotEqual(p, sess.ID(), p.create(store, "auth").ID(), "its ID is not given again")
}

func checkTranscript(p *place) {
	store := p.open()
	sess := p.create(store, "auth")
	for i := range 20 {
		require.NoError(p, sess.AppendEvent(strictjson.Value(fmt.Sprintf(`{ "n": %d }`, i))))
	}
	require.NoError(p, sess.Sync(p.Context()))
	var got []int
	for event, err := range store.Transcript(sess.ID()) {
		require.NoError(p, err)
		var e struct{ N int }
		require.NoError(p, json.Unmarshal(event, &e))
		got = append(got, e.N)
	}
	require.Len(p, got, 20)
	require.True(p, slices.IsSorted(got), "in order: %v", got)
	require.Empty(p, p.read(sess.Messages()), "an event is no message")
}

// checkFork makes sessions from a live one that continues, and deletes it under them.
func checkFork(p *place) {
	store := p.open()
	parent := p.create(store, "auth")
	var seqs []uint64
	for i := range 3 {
		p.turn(parent, i+1)
		p.append(parent, fmt.Sprint("a", i), fmt.Sprint("b", i))
		require.NoError(p, parent.Flush(p.Context()))
		seqs = append(seqs, p.info(store, parent.ID()).Seq)
	}
	forked := map[string]*lifecycle.Session{}
	for name, c := range map[string]struct {
		at       lifecycle.ForkOptions
		turns    int
		messages []string
		kind     string
	}{
		"live":    {lifecycle.ForkOptions{}, 3, []string{"a0", "b0", "a1", "b1", "a2", "b2"}, session.LineageForked},
		"seq":     {lifecycle.ForkOptions{Seq: seqs[0]}, 1, []string{"a0", "b0"}, session.LineageForked},
		"message": {lifecycle.ForkOptions{Message: "a1", Continue: true}, 2, []string{"a0", "b0", "a1"}, session.LineageContinued},
	} {
		sess, err := store.Fork(p.Context(), parent.ID(), c.at)
		require.NoError(p, err, name)
		require.NotEqual(p, parent.ID(), sess.ID())
		require.Equal(p, c.turns, turnOf(sess), name)
		require.Equal(p, c.messages, p.read(sess.Messages()), name)
		require.Equal(p, c.kind, sess.State().Header().Lineage.Kind)
		require.Equal(p, parent.ID(), sess.State().Header().Lineage.From)
		p.append(sess, "of "+name)
		forked[name] = sess
	}
	for _, at := range []lifecycle.ForkOptions{{Seq: seqs[2] + 100}, {Message: "x"}} {
		_, err := store.Fork(p.Context(), parent.ID(), at)
		require.ErrorIs(p, err, lifecycle.ErrNotFound)
	}
	p.append(parent, "of the parent")
	require.Equal(p, []string{"a0", "b0", "a1", "b1", "a2", "b2", "of the parent"}, p.read(parent.Messages()))
	require.NoError(p, parent.Close(p.Context()))
	_, err := store.Delete(p.Context(), parent.ID())
	require.NoError(p, err)
	require.NoError(p, forked["seq"].Close(p.Context()))
	again, err := store.Open(forked["seq"].ID())
	require.NoError(p, err)
	require.Equal(p, []string{"a0", "b0", "of seq"}, p.read(again.Messages()), "it outlives its parent")
}

// checkRewind goes back to a checkpoint, and by way of the one that it makes back again.
func checkRewind(p *place) {
	sess := p.create(p.open(), "auth")
	put := func(name, content string) {
		require.NoError(p, writer.ReplaceFile(p.project, name, []byte(content), 0o644))
	}
	look := func() string {
		var all []byte
		for _, name := range []string{"a", "b"} {
			data, err := writer.ReadFile(p.project, name, 1<<10)
			if !errors.Is(err, fs.ErrNotExist) {
				require.NoError(p, err)
			}
			all = append(append(all, data...), ' ')
		}
		return string(all)
	}
	take := func(why checkpoint.Reason) (*checkpoint.Entry, int) {
		m, changes, err := sess.Checkpoint(p.Context(), why, "t")
		require.NoError(p, err)
		return m, len(changes)
	}
	work := func(n int, component string) {
		require.NoError(p, sess.Update(func(st *session.State) (*session.State, error) {
			e := st.Edit()
			e.Header().TurnCount, e.Header().Component = n, component
			return e.State()
		}))
	}
	component := func() string { return sess.State().Header().Component }
	put("a", "one")
	work(1, "first")
	first, _ := take(checkpoint.BeforeTask)
	put("a", "two")
	put("b", "new")
	work(2, "second")
	_, changes := take(checkpoint.AfterTask)
	require.Equal(p, 2, changes)
	p.append(sess, "m")

	both := rewind.Options{Files: true, State: true}
	dry := both
	dry.DryRun = true
	would, err := sess.Rewind(p.Context(), first.ID, dry)
	require.NoError(p, err)
	require.Len(p, would.Changes, 2)
	require.Equal(p, "two new ", look(), "a dry run changes nothing")
	require.Equal(p, "second", component())

	done, err := sess.Rewind(p.Context(), first.ID, both)
	require.NoError(p, err)
	require.Equal(p, would.Changes, done.Changes)
	require.Equal(p, "one  ", look())
	require.Equal(p, "first", component())
	require.Equal(p, 2, turnOf(sess), "what was spent is not rewound")
	require.Equal(p, []string{"m"}, p.read(sess.Messages()), "messages stay")

	undone, err := sess.Rewind(p.Context(), done.Before.ID, both)
	require.NoError(p, err)
	require.Equal(p, "two new ", look())
	require.Equal(p, "second", component())

	_, err = sess.Rewind(p.Context(), undone.Before.ID, rewind.Options{Files: true})
	require.NoError(p, err)
	require.Equal(p, "one  ", look())
	require.Equal(p, "second", component(), "only the files were asked for")
	_, err = sess.Rewind(p.Context(), checkpoint.ID{9}, both)
	require.ErrorIs(p, err, lifecycle.ErrNotFound)
}
