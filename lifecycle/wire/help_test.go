package wire_test

import (
	"cmp"
	"flag"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Every run has the same examples; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

var at = time.Date(2026, 2, 14, 9, 30, 0, 123456789, time.UTC)

func task(id, parent string, children ...string) session.Task {
	return session.Task{ID: id, Kind: session.KindTask, State: session.TaskPending, Parent: parent, Children: children}
}

// family returns a State with the roots a and b; c is beneath a.
func family(t require.TestingT) *session.State {
	e := fresh(t).Edit()
	e.Put(task("a", "", "c"))
	e.Put(task("b", ""))
	e.Put(task("c", "a"))
	e.SetRoots([]string{"a", "b"})
	st, err := e.State()
	require.NoError(t, err)
	return st
}

func fresh(t require.TestingT) *session.State {
	id, err := session.NewID("auth", at, 1)
	require.NoError(t, err)
	st, err := session.New(id, at)
	require.NoError(t, err)
	return st
}

// message returns a message that has every member.
func message() session.Message {
	return session.Message{
		ID: "m1", Time: at, Role: session.RoleAssistant, Content: session.Text("a\n<b>\u2028"),
		ToolCalls: []session.ToolCall{{ID: "c1", Name: "read", Arguments: strictjson.Value(`{"a":[1]}`)}},
		Usage:     &session.Usage{InputTokens: 1, OutputTokens: 2, CachedTokens: 3},
	}
}

// decode reads both files as they are without a log.
func decode(state, metrics []byte) (*session.State, session.Mark, error) {
	var r wire.Replay
	err := r.Load(state, metrics)
	if r.ID().IsZero() {
		return nil, session.Mark{}, err
	}
	st, mark, bad := r.State(r.ID())
	return st, mark, cmp.Or(bad, err)
}

// change draws a few changes: a task is added, removed, moved or changed, or a list is reversed.
func change(t *rapid.T, e *session.Edit) {
	ids := []string{"a", "b", "c", "d", "e", "f", "g"}
	list := func(parent string, edit func([]string) []string) {
		if p, ok := e.Task(parent); ok {
			p.Children = edit(slices.Clone(p.Children))
			e.Put(p)
		} else {
			e.SetRoots(edit(slices.Clone(e.Roots())))
		}
	}
	for range rapid.IntRange(1, 5).Draw(t, "changes") {
		id, parent := rapid.SampledFrom(ids).Draw(t, "id"), rapid.SampledFrom(append(ids, "", "")).Draw(t, "parent")
		if _, ok := e.Task(parent); !ok || parent == id {
			parent = ""
		}
		now, there := e.Task(id)
		switch step := rapid.IntRange(0, 3).Draw(t, "step"); {
		case !there:
			now = task(id, parent)
			list(parent, func(ids []string) []string { return append(ids, id) })
		case step == 0:
			list(now.Parent, func(ids []string) []string { return slices.DeleteFunc(ids, func(c string) bool { return c == id }) })
			e.Remove(id)
			continue
		case step == 1 && len(now.Children) == 0:
			list(now.Parent, func(ids []string) []string { return slices.DeleteFunc(ids, func(c string) bool { return c == id }) })
			list(parent, func(ids []string) []string { return append(ids, id) })
			now.Parent = parent
		case step == 2:
			list(now.Parent, func(ids []string) []string { slices.Reverse(ids); return ids })
			continue
		default:
			now.State = rapid.SampledFrom([]session.TaskState{session.TaskPending, session.TaskInProgress, session.TaskFailed}).Draw(t, "state")
			now.Name = rapid.StringN(-1, 20, 80).Draw(t, "name")
			now.DependsOn = rapid.SliceOfN(rapid.SampledFrom(ids), 0, 1).Draw(t, "depends on")
		}
		e.Put(now)
	}
}
