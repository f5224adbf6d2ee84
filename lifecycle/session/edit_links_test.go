package session_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

var at = time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC)

// family is a State of the roots a and b, where c is beneath a.
func family(t *testing.T) *session.State {
	t.Helper()
	id, err := session.NewID("auth", at, 1)
	require.NoError(t, err)
	st, err := session.New(id, at)
	require.NoError(t, err)
	e := st.Edit()
	e.Put(session.Task{ID: "a", Kind: session.KindTask, State: session.TaskPending, Children: []string{"c"}})
	e.Put(session.Task{ID: "b", Kind: session.KindTask, State: session.TaskPending})
	e.Put(session.Task{ID: "c", Kind: session.KindSubtask, State: session.TaskPending, Parent: "a"})
	e.SetRoots([]string{"a", "b"})
	st, err = e.State()
	require.NoError(t, err)
	return st
}

func TestEditRefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	leaf := func(id, parent string) session.Task {
		return session.Task{ID: id, Kind: session.KindSubtask, State: session.TaskPending, Parent: parent}
	}
	for name, change := range map[string]func(e *session.Edit){
		"moved, still listed by the old parent": func(e *session.Edit) { e.Put(leaf("c", "b")) },
		"removed and another added, neither listed": func(e *session.Edit) {
			e.Remove("c")
			e.Put(leaf("d", "a"))
		},
		"a child as a root in place of another": func(e *session.Edit) { e.SetRoots([]string{"a", "c"}) },
		"a root that is not there":              func(e *session.Edit) { e.SetRoots([]string{"a", "b", "x"}) },
		"data too deep inside a state": func(e *session.Edit) {
			e.Header().Data = json.RawMessage(strings.Repeat(`{"a":`, 255) + "{}" + strings.Repeat("}", 255))
		},
		"an unknown field that is known": func(e *session.Edit) {
			c := leaf("c", "a")
			c.Extra = []session.Field{{Key: "id", Value: json.RawMessage(`1`)}}
			e.Put(c)
		},
		"an unknown field that is no JSON": func(e *session.Edit) {
			c := leaf("c", "a")
			c.Extra = []session.Field{{Key: "x", Value: json.RawMessage(`{`)}}
			e.Put(c)
		},
		"a subtree moved too deep": func(e *session.Edit) {
			kids := func(id string) []string { return []string{id} }
			e.Put(session.Task{ID: "a", Kind: session.KindTask, State: session.TaskPending, Children: kids("c")})
			prev := "b"
			for i := range 70 {
				id := "n" + strings.Repeat("x", i)
				p, _ := e.Task(prev)
				p.Children = kids(id)
				e.Put(p)
				e.Put(leaf(id, prev))
				prev = id
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := family(t).Edit()
			change(e)
			st, err := e.State()
			if err == nil {
				_, _, err = session.Decode(session.EncodeState(st, 1), session.EncodeMetrics(st, 1))
				require.NoError(t, err, "it was accepted and cannot be read")
			}
			require.Error(t, err)
		})
	}
}

func TestStateDoesNotChangeBehindItsBack(t *testing.T) {
	t.Parallel()
	e := family(t).Edit()
	h := e.Header()
	h.Settings.Command = []string{"sh"}
	h.RateLimit = &session.RateLimit{Limit: 1}
	st, err := e.State()
	require.NoError(t, err)
	h.RateLimit.Limit = 2
	h.Settings.Command[0] = "rm"
	e.Header().RateLimit.Limit = 3
	require.EqualValues(t, 1, st.Header().RateLimit.Limit)
	require.Equal(t, "sh", st.Header().Settings.Command[0])
}

func TestLineageSeqIsKept(t *testing.T) {
	t.Parallel()
	st := family(t)
	e := st.Edit()
	e.Header().Lineage = &session.Lineage{Kind: "forked", From: st.ID(), Seq: math.MaxUint64}
	st, err := e.State()
	require.NoError(t, err)
	got, _, err := session.Decode(session.EncodeState(st, 1), session.EncodeMetrics(st, 1))
	require.NoError(t, err)
	require.Equal(t, st.Header(), got.Header())
}
