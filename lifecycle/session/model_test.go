package session_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
)

// Every run has the same examples; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// model is a State's tasks in their plainest form.
type model struct {
	tasks map[string]session.Task
	roots []string
}

func (m model) clone() model {
	c := model{tasks: map[string]session.Task{}, roots: slices.Clone(m.roots)}
	for id, t := range m.tasks {
		c.tasks[id] = t
	}
	return c
}

// valid reports whether a walk from the roots reaches every task once, from the
// parent that the task names, and no task is deeper than the bound.
func (m model) valid() bool {
	reached := map[string]bool{}
	var walk func(parent string, ids []string, depth int) bool
	walk = func(parent string, ids []string, depth int) bool {
		for _, id := range ids {
			t, ok := m.tasks[id]
			if !ok || reached[id] || t.Parent != parent || depth > session.MaxTaskDepth {
				return false
			}
			reached[id] = true
			if !walk(id, t.Children, depth+1) {
				return false
			}
		}
		return true
	}
	return walk("", m.roots, 1) && len(reached) == len(m.tasks)
}

func (m model) progress() (p session.Progress) {
	for _, t := range m.tasks {
		if len(t.Children) > 0 || t.Kind == session.KindComponent || t.Kind == session.KindModule {
			continue
		}
		p.Total++
		switch t.State {
		case session.TaskComplete:
			p.Done++
		case session.TaskFailed:
			p.Failed++
		case session.TaskSkipped:
			p.Skipped++
		}
	}
	return p
}

func (m *model) remove(id string) {
	t, ok := m.tasks[id]
	if !ok {
		return
	}
	delete(m.tasks, id)
	for _, c := range t.Children {
		if m.tasks[c].Parent == id {
			m.remove(c)
		}
	}
}

var someIDs = []string{"a", "b", "c", "d", "e", "f", "g"}

func drawTask(t *rapid.T, id string) session.Task {
	return session.Task{
		ID:       id,
		Kind:     rapid.SampledFrom([]session.Kind{session.KindModule, session.KindComponent, session.KindTask, session.KindSubtask}).Draw(t, "kind"),
		State:    rapid.SampledFrom([]session.TaskState{session.TaskPending, session.TaskInProgress, session.TaskComplete, session.TaskFailed, session.TaskSkipped}).Draw(t, "state"),
		Name:     rapid.StringN(-1, 20, 80).Draw(t, "name"),
		Attempts: rapid.IntRange(0, 3).Draw(t, "attempts"),

		DependsOn: rapid.SliceOfN(rapid.SampledFrom(someIDs), 0, 1).Draw(t, "depends on"),
	}
}

// change draws one change and makes it to both. The steps are small, so that
// an edit of several goes from one valid tree to another often enough.
func change(t *rapid.T, e *session.Edit, m *model) {
	id := rapid.SampledFrom(someIDs).Draw(t, "id")
	put := func(task session.Task) {
		e.Put(task)
		m.tasks[task.ID] = task
	}
	roots := func(ids []string) {
		e.SetRoots(ids)
		m.roots = ids
	}
	list := func(parent string, edit func([]string) []string) {
		if parent == "" {
			roots(edit(slices.Clone(m.roots)))
		} else if p, ok := m.tasks[parent]; ok {
			p.Children = edit(slices.Clone(p.Children))
			put(p)
		}
	}
	without := func(ids []string) []string {
		return slices.DeleteFunc(ids, func(c string) bool { return c == id })
	}
	parent := rapid.SampledFrom(append(someIDs, "", "", "")).Draw(t, "parent")
	old, there := m.tasks[id]
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	case 0, 1: // a new task in its place, or new content for an old one
		task := drawTask(t, id)
		task.Children, task.Parent = old.Children, old.Parent
		if !there {
			task.Parent = parent
			list(parent, func(ids []string) []string { return append(ids, id) })
		}
		put(task)
	case 2: // removed from its place
		list(old.Parent, without)
		e.Remove(id)
		m.remove(id)
	case 3, 4: // moved
		if there {
			list(old.Parent, without)
			list(parent, func(ids []string) []string { return append(ids, id) })
			if task, ok := m.tasks[id]; ok {
				task.Parent = parent
				put(task)
			}
		}
	case 5: // a list changed, by one that may not belong there
		list(parent, func(ids []string) []string { return append(ids, id) })
	case 6: // moved without the lists
		if there {
			old.Parent = parent
			put(old)
		}
	case 7: // removed without the lists
		e.Remove(id)
		m.remove(id)
	case 8: // turned round
		list(parent, func(ids []string) []string { slices.Reverse(ids); return ids })
	}
}

// TestEditAgainstModel makes random edits: State accepts exactly the trees that
// are whole, and a State that it accepts holds what the model does, survives the
// codec, and leaves the one before as it was.
func TestEditAgainstModel(t *testing.T) {
	t.Parallel()
	var accepted, refused int
	rapid.Check(t, func(t *rapid.T) {
		st, m := fresh(t), model{tasks: map[string]session.Task{}}
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			e, next := st.Edit(), m.clone()
			for range rapid.IntRange(1, 5).Draw(t, "changes") {
				change(t, e, &next)
			}
			made, err := e.State()
			require.Equal(t, next.valid(), err == nil, "%v: %+v", err, next)
			if err != nil {
				var invalid *session.InvalidError
				require.ErrorAs(t, err, &invalid)
				refused++
				continue
			}
			accepted++
			holds(t, m, st)
			holds(t, next, made)
			diffLeads(t, m, next, st, made)
			var r wire.Replay
			require.NoError(t, r.Load(wire.EncodeState(made, session.Mark{Seq: 7}), wire.EncodeMetrics(made, session.Mark{Seq: 7})))
			read, mark, err := r.State(made.ID())
			require.NoError(t, err)
			require.EqualValues(t, 7, mark.Seq)
			holds(t, next, read)
			require.Equal(t, session.Check(read), session.Check(made), "what was edited is checked as what was read")
			require.Equal(t, wire.EncodeState(made, session.Mark{Seq: 8}), wire.EncodeState(read, session.Mark{Seq: 8}))
			st, m = made, next
		}
	})
	require.Greater(t, accepted, refused/10, "too few edits were valid to mean anything")
	require.NotZero(t, refused)
}

func fresh(t require.TestingT) *session.State {
	id, err := session.NewID("auth", at, 1)
	require.NoError(t, err)
	st, err := session.New(id, at)
	require.NoError(t, err)
	return st
}

func holds(t require.TestingT, m model, st *session.State) {
	require.Equal(t, len(m.tasks), st.NumTasks())
	require.Equal(t, m.progress(), st.Progress())
	require.True(t, slices.Equal(m.roots, st.Roots()))
	var order []string
	var walk func(ids []string)
	walk = func(ids []string) {
		for _, id := range ids {
			order = append(order, id)
			walk(m.tasks[id].Children)
		}
	}
	walk(m.roots)
	i := 0
	for got := range st.All() {
		require.Equal(t, order[i], got.ID)
		one, ok := st.Task(got.ID)
		require.True(t, ok)
		require.Equal(t, plain(m.tasks[got.ID]), plain(got))
		require.Equal(t, plain(one), plain(got))
		i++
	}
	require.Len(t, order, i)
}

// plain is a task in words: empty lists and none are the same.
func plain(t session.Task) string {
	return fmt.Sprintf("%s %s %q %s %q %v %d", t.ID, t.Kind, t.Name, t.State, t.Parent, t.Children, t.Attempts)
}

func diffLeads(t require.TestingT, from, to model, a, b *session.State) {
	got := from.clone().tasks
	session.Diff(a, b, func(id string, was, now *session.Task) bool {
		_, there := got[id]
		require.Equal(t, there, was != nil)
		if now == nil {
			delete(got, id)
		} else {
			got[id] = *now
		}
		return true
	})
	require.Len(t, got, len(to.tasks))
	for id, task := range to.tasks {
		require.Equal(t, plain(task), plain(got[id]))
	}
}
