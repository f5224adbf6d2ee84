package storetest

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// T is what a check needs of a test; *testing.T is one.
type T interface {
	require.TestingT
	Helper()
	Cleanup(fn func())
	TempDir() string
	Context() context.Context
}

// A Place is where a check's sessions lie.
type Place[S lifecycle.Conversation] struct {
	// Open opens a store there, empty the first time. Each one is to the others as
	// another process is. The suite closes it.
	Open func() (lifecycle.Sessions[S], error)
	// Project is the folder whose files checkpoints keep; nil where rewind is skipped.
	Project writer.FS
}

// Config says what is checked.
type Config[S lifecycle.Conversation] struct {
	// New makes a place for one check.
	New func(t T) Place[S]
	// Skip names checks that do not apply, each with the reason. A name that is none
	// fails.
	Skip map[string]string
}

// A Transcriber is a store that can read back what AppendEvent took, which the check
// "transcript" needs.
type Transcriber interface {
	Transcript(id session.ID) iter.Seq2[json.RawMessage, error]
}

// Run runs each check as a subtest.
func Run[S lifecycle.Conversation](t *testing.T, c Config[S]) {
	t.Helper()
	all := checks[S]()
	for name := range c.Skip {
		require.Contains(t, all, name, "there is no such check to skip")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			if why, ok := c.Skip[name]; ok {
				t.Skip(why)
			}
			t.Parallel()
			all[name](&place[S]{T: t, Place: c.New(t)})
		})
	}
}

func checks[S lifecycle.Conversation]() map[string]func(*place[S]) {
	return map[string]func(*place[S]){
		"save":       save[S],
		"update":     update[S],
		"burst":      burst[S],
		"close":      closed[S],
		"contexts":   contexts[S],
		"ids":        ids[S],
		"modules":    modules[S],
		"messages":   messages[S],
		"unknown":    unknown[S],
		"reopen":     reopen[S],
		"busy":       busy[S],
		"latest":     latest[S],
		"list":       list[S],
		"delete":     remove[S],
		"transcript": transcript[S],
		"fork":       fork[S],
		"rewind":     rewind[S],
	}
}

// place is a Place with what the checks do all the time.
type place[S lifecycle.Conversation] struct {
	T
	Place[S]
}

func (p *place[S]) open() lifecycle.Sessions[S] {
	store, err := p.Open()
	require.NoError(p, err)
	p.Cleanup(func() { _ = store.Close(context.Background()) })
	return store
}

func (p *place[S]) create(store lifecycle.Sessions[S], module string) S {
	sess, err := store.Create(p.Context(), module)
	require.NoError(p, err)
	return sess
}

// turn saves a State that is the n-th.
func (p *place[S]) turn(sess S, n int) {
	require.NoError(p, sess.Update(turns(n)))
	require.NoError(p, sess.Save(nil, session.TriggerStepCompleted))
}

func turns(n int) func(*session.State) (*session.State, error) {
	return func(st *session.State) (*session.State, error) {
		e := st.Edit()
		e.Header().TurnCount = n
		return e.State()
	}
}

func turn(sess lifecycle.Conversation) int { return sess.State().Header().TurnCount }

func (p *place[S]) say(sess S, uuids ...string) {
	for _, id := range uuids {
		require.NoError(p, sess.Append(&session.Message{ID: id, Role: session.RoleUser, Content: session.Text("this is " + id)}))
	}
	require.NoError(p, sess.Sync(p.Context()))
}

func (p *place[S]) heard(all iter.Seq2[session.Message, error]) []string {
	var uuids []string
	for m, err := range all {
		require.NoError(p, err)
		uuids = append(uuids, m.ID)
	}
	return uuids
}

func (p *place[S]) info(store lifecycle.Sessions[S], id session.ID) lifecycle.Info {
	all, err := store.List()
	require.NoError(p, err)
	i := slices.IndexFunc(all, func(i lifecycle.Info) bool { return i.ID == id })
	require.GreaterOrEqual(p, i, 0, "session %s is not listed", id)
	require.NoError(p, all[i].Err)
	return all[i]
}
