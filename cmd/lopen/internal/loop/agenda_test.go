package loop

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// Every run has the same examples; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// drawTasks draws a plan whose items wait for each other, for themselves and for
// what is not there.
func drawTasks(t *rapid.T) (src string, ids []string) {
	var b strings.Builder
	var parents []string
	component := ""
	for i := range rapid.IntRange(1, 14).Draw(t, "lines") {
		if rapid.IntRange(0, 4).Draw(t, "heading") == 0 {
			component, parents = fmt.Sprintf("c%d", i), nil
			fmt.Fprintf(&b, "\n## %s\n\n", component)
			continue
		}
		parents = parents[:rapid.IntRange(0, len(parents)).Draw(t, "depth")]
		id := fmt.Sprintf("t%d", i)
		fmt.Fprintf(&b, "%s- [%s] %s", strings.Repeat("  ", len(parents)), rapid.SampledFrom([]string{" ", " ", "x"}).Draw(t, "box"), id)
		if component != "" {
			id = component + "/" + strings.Join(append(parents, id), "/")
			ids = append(ids, component)
		} else {
			id = strings.Join(append(parents, id), "/")
		}
		ids = append(ids, id)
		parents = append(parents, fmt.Sprintf("t%d", i))
		if rapid.IntRange(0, 2).Draw(t, "waits") == 0 {
			fmt.Fprintf(&b, " <!-- after: %s, %s -->", rapid.SampledFrom(append(ids, "none")).Draw(t, "for"), rapid.SampledFrom(ids).Draw(t, "and"))
		}
		b.WriteByte('\n')
	}
	return b.String(), ids
}

// choose computes the first unit of an agenda by its definition. It returns the unit of st
// that is to run next and the leaves that are to be done in it, or nothing. Ready tasks
// within early come before the others.
func choose(st *session.State, cfg Config, early string) (unit string, leaves []string) {
	ready, waiting := tasks.Order(st)
	ready = slices.DeleteFunc(ready, func(id string) bool { return !inPart(st, id, cfg.Select) })
	if len(ready) == 0 {
		return "", nil
	}
	at := max(slices.IndexFunc(ready, func(id string) bool { return within(st, id, early) }), 0)
	unit = tasks.Unit(st, ready[at], cfg.Unit)
	if !wholly(st, unit, cfg.Select) {
		for unit = ready[at]; ; {
			t, _ := st.Task(unit)
			if t.Parent == "" || !wholly(st, t.Parent, cfg.Select) {
				break
			}
			unit = t.Parent
		}
	}
	return unit, openLeaves(st, unit, ready, waiting)
}

// inPart says by the places of tasks in the plan whether one is selected.
func inPart(st *session.State, id string, s Selection) bool {
	at := map[string]int{}
	last := 0
	for t := range st.All() {
		at[t.ID] = len(at)
		if s.Through == "" || within(st, t.ID, s.Through) {
			last = at[t.ID]
		}
	}
	return at[id] >= at[s.From] && at[id] <= last
}

// wholly says whether a task is selected with each one beneath it.
func wholly(st *session.State, id string, s Selection) bool {
	for t := range st.All() {
		if within(st, t.ID, id) && !inPart(st, t.ID, s) {
			return false
		}
	}
	return true
}

// openLeaves returns the leaves of a unit that are to be done now: those that
// are ready, and those that wait only for others of the same unit.
func openLeaves(st *session.State, unit string, ready []string, waiting []tasks.Waiting) []string {
	open := make(map[string]bool, len(ready))
	for _, id := range ready {
		open[id] = true
	}
	for _, w := range waiting {
		inside := true
		for _, dep := range w.For {
			inside = inside && within(st, dep, unit)
		}
		open[w.Task] = inside
	}
	var leaves []string
	for _, id := range tasks.Leaves(st, unit) {
		if open[id] {
			leaves = append(leaves, id)
		}
	}
	return leaves
}

// An agenda gives the same units as choose gives when each unit is marked done in the State.
func TestAgendaIsChoose(t *testing.T) {
	t.Parallel()
	id, err := session.NewID("m", time.Unix(0, 0), 1)
	require.NoError(t, err)
	fresh, err := session.New(id, time.Unix(0, 0))
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		src, ids := drawTasks(rt)
		cfg := Config{Unit: rapid.SampledFrom([]string{"leaf", "task", "component"}).Draw(rt, "unit")}
		if len(ids) > 0 {
			one := rapid.SampledFrom(ids).Draw(rt, "one")
			cfg.Select = rapid.SampledFrom([]Selection{{}, {one, one}, {From: one}, {Through: one},
				{one, rapid.SampledFrom(ids).Draw(rt, "another")}}).Draw(rt, "part")
		}
		// Waiting for an item later in the plan is as usual as for an earlier one.
		src = strings.ReplaceAll(src, "none", rapid.SampledFrom(append(ids, "none")).Draw(rt, "later"))
		res, err := tasks.Reconcile(fresh, plan.Parse([]byte(src)), tasks.Between)
		require.NoError(rt, err)
		st := res.State
		early := ""
		if len(ids) > 0 && rapid.Bool().Draw(rt, "halfway") {
			early = rapid.SampledFrom(ids).Draw(rt, "early")
		}
		todo := newAgenda(st, cfg, early)
		for {
			unit, leaves := choose(st, cfg, early)
			gotUnit, gotLeaves := todo.next()
			require.Equal(rt, unit, gotUnit, src)
			require.Equal(rt, leaves, gotLeaves, src)
			if unit == "" {
				return
			}
			e := st.Edit()
			for _, leaf := range leaves {
				tasks.Set(e, leaf, func(t *session.Task) { t.State = session.TaskComplete })
			}
			st, err = e.State()
			require.NoError(rt, err)
		}
	})
}
