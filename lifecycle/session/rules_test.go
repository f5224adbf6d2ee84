package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// broken returns the State of family after fn changed something in it.
func broken(t *testing.T, fn func(e *session.Edit, put func(id string, fn func(*session.Task)))) *session.State {
	t.Helper()
	e := family(t).Edit()
	fn(e, func(id string, fn func(*session.Task)) {
		task, ok := e.Task(id)
		require.True(t, ok)
		fn(&task)
		e.Put(task)
	})
	st, err := e.State()
	require.NoError(t, err)
	return st
}

type put = func(id string, fn func(*session.Task))

func TestRulesOfAState(t *testing.T) {
	t.Parallel()
	later, earlier := at.Add(time.Hour), at.Add(-time.Hour)
	for name, c := range map[string]struct {
		change func(e *session.Edit, p put)
		rule   string // "" where all is well
		where  []string
	}{
		"nothing": {func(*session.Edit, put) {}, "", nil},
		"well": {func(e *session.Edit, p put) {
			e.Header().ActiveTask, e.Header().Component = "c", "a"
			p("b", func(t *session.Task) { t.DependsOn = []string{"a"}; t.StartedAt, t.CompletedAt = at, at })
			p("a", func(t *session.Task) { t.State = session.TaskInProgress })
			p("c", func(t *session.Task) { t.State = session.TaskInProgress })
			e.AppendIteration(session.Iteration{StartedAt: at})
			e.AppendIteration(session.Iteration{StartedAt: at})
		}, "", nil},
		"a missing dependency": {func(_ *session.Edit, p put) {
			p("b", func(t *session.Task) { t.DependsOn = []string{"gone", "a"} })
		}, "dependency-exists", []string{`task "b" depends on "gone", which is not there`}},
		"itself": {func(_ *session.Edit, p put) {
			p("b", func(t *session.Task) { t.DependsOn = []string{"b"} })
		}, "dependency-cycle", []string{`"b" on "b" depend in a circle`}},
		"two that wait for each other": {func(_ *session.Edit, p put) {
			p("b", func(t *session.Task) { t.DependsOn = []string{"c"} })
			p("c", func(t *session.Task) { t.DependsOn = []string{"b"} })
		}, "dependency-cycle", []string{`"b" on "c", "c" on "b" depend in a circle`}},
		"its own parent": {func(_ *session.Edit, p put) {
			p("c", func(t *session.Task) { t.DependsOn = []string{"a"} })
		}, "dependency-cycle", []string{`"c" on "a" depend in a circle`}},
		"its own child": {func(_ *session.Edit, p put) {
			p("a", func(t *session.Task) { t.DependsOn = []string{"c"} })
		}, "dependency-cycle", []string{`"a" on "c" depend in a circle`}},
		"by way of a parent": {func(_ *session.Edit, p put) {
			p("a", func(t *session.Task) { t.DependsOn = []string{"b"} })
			p("b", func(t *session.Task) { t.DependsOn = []string{"c"} })
		}, "dependency-cycle", []string{`"a" on "b", "b" on "c" depend in a circle`}},
		"a parent that is done before its child": {func(_ *session.Edit, p put) {
			p("a", func(t *session.Task) { t.State = session.TaskComplete })
		}, "parent-complete", []string{`task "a" is complete and its child "c" is pending`}},
		"a parent whose child was skipped": {func(_ *session.Edit, p put) {
			p("a", func(t *session.Task) { t.State = session.TaskComplete })
			p("c", func(t *session.Task) { t.State = session.TaskSkipped })
		}, "", nil},
		"two tasks in progress": {func(e *session.Edit, p put) {
			e.Header().ActiveTask = "c"
			p("b", func(t *session.Task) { t.State = session.TaskInProgress })
			p("c", func(t *session.Task) { t.State = session.TaskInProgress })
		}, "one-active-task", []string{`task "b" is in progress as well`}},
		"two, and none is said to be active": {func(_ *session.Edit, p put) {
			p("b", func(t *session.Task) { t.State = session.TaskInProgress })
			p("c", func(t *session.Task) { t.State = session.TaskInProgress })
		}, "one-active-task", []string{`task "b" is in progress as well`, `task "c" is in progress as well`}},
		"an active task that is not there": {func(e *session.Edit, _ put) {
			e.Header().ActiveTask, e.Header().Component = "gone", "too"
		}, "active-exists", []string{`the active task "gone" is not there`, `the component "too" is not there`}},
		"completed before it began": {func(_ *session.Edit, p put) {
			p("b", func(t *session.Task) { t.StartedAt, t.CompletedAt = later, at })
		}, "times-run-forward", []string{`task "b" was started at 2026-02-14T10:30:00.123456789Z and completed at 2026-02-14T09:30:00.123456789Z`}},
		"an attempt that ended before it began": {func(_ *session.Edit, p put) {
			p("b", func(t *session.Task) { t.Log = []session.Attempt{{StartedAt: at, EndedAt: earlier}} })
		}, "times-run-forward", []string{`an attempt at task "b" was started at 2026-02-14T09:30:00.123456789Z and ended at 2026-02-14T08:30:00.123456789Z`}},
		"updated before it was created": {func(e *session.Edit, _ put) {
			e.Header().UpdatedAt = earlier
		}, "times-run-forward", []string{`the session was created at 2026-02-14T09:30:00.123456789Z and updated at 2026-02-14T08:30:00.123456789Z`}},
		"completed before it was created": {func(e *session.Edit, _ put) {
			e.Header().CompletedAt = earlier
		}, "times-run-forward", []string{`the session was created at 2026-02-14T09:30:00.123456789Z and completed at 2026-02-14T08:30:00.123456789Z`}},
		"an iteration before the one before": {func(e *session.Edit, _ put) {
			e.AppendIteration(session.Iteration{StartedAt: later})
			e.AppendIteration(session.Iteration{StartedAt: at})
		}, "times-run-forward", []string{"iteration 2 started before the one before it"}},
	} {
		found := session.Check(broken(t, c.change))
		if c.rule == "" {
			require.Empty(t, found, name)
			continue
		}
		require.Len(t, found, 1, name)
		require.Equal(t, c.rule, found[0].Rule, name)
		require.Equal(t, c.where, found[0].Where, name)
		require.Equal(t, len(c.where), found[0].Count, name)
		require.NotEqual(t, session.SeverityCritical, found[0].Severity, "a State can break it")
		require.NotEmpty(t, found[0].Repair, name)
	}
}

// The error for a plan that breaks a rule in very many places is short and the same
// each time. A long chain is followed without a deep stack.
func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	e := fresh(t).Edit()
	var roots []string
	const many = 50_000
	for i := range many {
		task := session.Task{ID: fmt.Sprintf("t%05d", i), Kind: session.KindTask, State: session.TaskInProgress}
		task.DependsOn = []string{fmt.Sprintf("t%05d", (i+1)%many), "gone"}
		e.Put(task)
		roots = append(roots, task.ID)
	}
	e.SetRoots(roots)
	st, err := e.State()
	require.NoError(t, err)
	found := session.Check(st)
	names := []string{}
	for _, f := range found {
		names = append(names, f.Rule)
	}
	require.Equal(t, []string{"dependency-cycle", "dependency-exists", "one-active-task"}, names)
	require.Equal(t, 1, found[0].Count)
	require.True(t, strings.HasPrefix(found[0].Where[0], `"t00000" on "t00001", `))
	require.True(t, strings.HasSuffix(found[0].Where[0], `"t00007" on "t00008", 49992 more depend in a circle`))
	require.Equal(t, many, found[1].Count)
	require.Len(t, found[1].Where, 5)
	require.Contains(t, found[1].Where[4], "t00004")
	require.Contains(t, found[1].String(), `dependency-exists (warning): task "t00000" depends on "gone", which is not there; `)
	require.Contains(t, found[1].String(), "; and 49995 more")
	require.Equal(t, found, session.Check(st))
}

func TestFindingsComeInOrder(t *testing.T) {
	t.Parallel()
	st := broken(t, func(e *session.Edit, p put) {
		e.Header().UpdatedAt, e.Header().ActiveTask = at.Add(-time.Second), "gone"
		p("a", func(t *session.Task) { t.State = session.TaskComplete })
		p("b", func(t *session.Task) { t.DependsOn = []string{"b", "x"} })
	})
	order := []session.Severity{session.SeverityCritical, session.SeverityError, session.SeverityWarning}
	found := session.Check(st)
	require.Len(t, found, 5)
	require.True(t, slices.IsSortedFunc(found, func(a, b session.Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	}), "the worst first")
}

func ExampleCheck() {
	id, _ := session.ParseID("auth-20260214-1")
	st, _ := session.New(id, at)
	e := st.Edit()
	e.Put(session.Task{ID: "form", Kind: session.KindTask, State: session.TaskPending, DependsOn: []string{"form", "login"}})
	e.SetRoots([]string{"form"})
	st, _ = e.State()
	count := map[session.Severity]int{}
	for _, f := range session.Check(st) {
		fmt.Println(f)
		fmt.Println(f.Repair)
		count[f.Severity]++
	}
	fmt.Println(count[session.SeverityError], count[session.SeverityWarning])
	// Output:
	// dependency-cycle (error): "form" on "form" depend in a circle
	// take one of the dependencies out of the plan
	// dependency-exists (warning): task "form" depends on "login", which is not there
	// correct the plan; the next run takes it over
	// 1 1
}
