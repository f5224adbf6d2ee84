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

// broken is a State of family in which fn changed something.
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
		require.Equal(t, c.rule, found[0].Rule.Name, name)
		require.Equal(t, c.where, found[0].Where, name)
		require.Equal(t, len(c.where), found[0].Count, name)
		require.NotEqual(t, session.SeverityCritical, found[0].Rule.Severity, "a State can break it")
		require.NotEmpty(t, found[0].Rule.Repair, name)
	}
}

// A plan that breaks a rule in very many places is told in a few words, which are
// the same each time, and a long chain is followed without a deep stack.
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
		names = append(names, f.Rule.Name)
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

// The critical rules are those that nothing which can be built or read breaks:
// each is told by the error.
func TestRulesThatAreErrors(t *testing.T) {
	t.Parallel()
	created := func(id, parent string) string {
		return fmt.Sprintf(`{"op":"task-created","parent":%q,"task":{"id":%q,"kind":"task","state":"pending"}}`, parent, id)
	}
	children := func(of string, ids ...string) string {
		return fmt.Sprintf(`{"op":"children-changed","of":%q,"inserted":["%s"]}`, of, strings.Join(ids, `","`))
	}
	start := session.EncodeChange(nil, fresh(t), session.Record{At: at, Event: session.EventCreated}, 0).Body
	for name, c := range map[string]struct {
		ops  []string
		rule string
	}{
		"orphan":                          {[]string{created("x", "gone")}, "orphaned-task"},
		"a parent that lists no child":    {[]string{created("x", ""), created("y", "x"), children("", "x")}, "parent-knows-child"},
		"a parent that lists another's":   {[]string{created("x", ""), created("y", ""), created("z", "y"), children("", "x"), children("x", "z")}, "parent-knows-child"},
		"a child twice":                   {[]string{created("x", ""), created("y", ""), children("", "x", "x")}, "duplicate-id"},
		"each is the other one's parent":  {[]string{created("x", "y"), created("y", "x"), children("x", "y"), children("y", "x")}, "parents-end"},
		"an operation that nobody can do": {[]string{`{"op":"exploded"}`}, "whole"},
	} {
		var r session.Replay
		_, err := r.Apply(line(1, start))
		require.NoError(t, err)
		_, err = r.Apply(line(2, []byte(`"schemaVersion":2,"ops":[`+strings.Join(c.ops, ",")+`]`)))
		if err == nil {
			_, _, err = r.State(fresh(t).ID())
		}
		require.ErrorIs(t, err, session.ErrCorrupt, name)
		f, ok := session.FindingOf(fmt.Errorf("read: %w", err))
		require.True(t, ok, name)
		require.Equal(t, c.rule, f.Rule.Name, name)
		require.Equal(t, session.SeverityCritical, f.Rule.Severity, name)
	}
	state, metrics := encode(full(t))
	for rule, files := range map[string][2]string{
		"duplicate-id": {string(sealed(strings.Replace(string(state), `{"id":"c",`, `{"id":"b",`, 1))), string(metrics)},
		"session-id":   {string(state), string(sealed(strings.Replace(string(metrics), "auth-", "other-", 1)))},
		"checksum":     {strings.Replace(string(state), `"status":"paused"`, `"status":"active"`, 1), string(metrics)},
		"whole":        {string(state[:100]), string(metrics)},
	} {
		_, _, err := session.Decode([]byte(files[0]), []byte(files[1]))
		f, ok := session.FindingOf(err)
		require.True(t, ok, rule)
		require.Equal(t, rule, f.Rule.Name)
	}
	other, err := session.ParseID("auth-20260214-2")
	require.NoError(t, err)
	require.NoError(t, session.CheckFolder(other, other))
	f, ok := session.FindingOf(session.CheckFolder(fresh(t).ID(), other))
	require.True(t, ok)
	require.Equal(t, "session-id", f.Rule.Name)
	for _, err := range []error{nil, session.ErrFutureVersion} {
		_, ok := session.FindingOf(err)
		require.False(t, ok, "it says nothing of the content")
	}
}

func TestSumsThatDoNotAddUp(t *testing.T) {
	t.Parallel()
	state, metrics := encode(full(t))
	load := func(state, metrics []byte) (rules []string) {
		var r session.Replay
		require.NoError(t, r.Load(state, metrics))
		for _, f := range r.Findings() {
			require.Equal(t, session.SeverityError, f.Rule.Severity)
			rules = append(rules, f.Rule.Name)
		}
		_, _, err := r.State(fresh(t).ID())
		require.NoError(t, err, "it is usable")
		return rules
	}
	swap := func(file []byte, old, now string) []byte {
		require.Equal(t, 1, strings.Count(string(file), old), old)
		return sealed(strings.Replace(string(file), old, now, 1))
	}
	require.Empty(t, load(state, metrics))
	require.Equal(t, []string{"progress-adds-up"}, load(swap(state, `"failed":1`, `"failed":0`), metrics))
	require.Equal(t, []string{"totals-add-up"}, load(swap(state, `"outputTokens":80`, `"outputTokens":81`), metrics))
	require.Equal(t, []string{"totals-add-up"}, load(state, swap(metrics, `"outputTokens":80`, `"outputTokens":81`)))
	require.Equal(t, []string{"totals-add-up"}, load(state, swap(metrics, `"costUSD":4.0`, `"costUSD":4.1`)))
	require.Empty(t, load(swap(state, `"progress":{"done":0,"total":2,"failed":1,"skipped":0},`, ``), metrics), "what is not said is not wrong")

	// Metrics of an earlier record are compared with nothing: they are replayed.
	e := full(t).Edit() // of before somebody went back
	for range 40 {
		e.AppendIteration(session.Iteration{StartedAt: at, OutputTokens: 1000})
	}
	more, err := e.State()
	require.NoError(t, err)
	e = fresh(t).Edit()
	for it := range more.Iterations() {
		it.OutputTokens++
		e.AppendIteration(it)
	}
	more, err = e.State()
	require.NoError(t, err)
	for _, st := range []*session.State{fresh(t), more} {
		var r session.Replay
		require.NoError(t, r.Load(session.EncodeState(full(t), session.Mark{Seq: 42, Iterations: 40}), session.EncodeMetrics(st, session.Mark{Seq: 7})))
		require.Empty(t, r.Findings())
	}
}

func TestFindingsComeInOrder(t *testing.T) {
	t.Parallel()
	found := session.Check(full(t)) // b depends on what is not there
	require.Len(t, found, 1)
	st := broken(t, func(e *session.Edit, p put) {
		e.Header().UpdatedAt, e.Header().ActiveTask = at.Add(-time.Second), "gone"
		p("a", func(t *session.Task) { t.State = session.TaskComplete })
		p("b", func(t *session.Task) { t.DependsOn = []string{"b", "x"} })
	})
	order := []session.Severity{session.SeverityCritical, session.SeverityError, session.SeverityWarning}
	found = session.Check(st)
	require.Len(t, found, 5)
	require.True(t, slices.IsSortedFunc(found, func(a, b session.Finding) int {
		return slices.Index(order, a.Rule.Severity) - slices.Index(order, b.Rule.Severity)
	}), "the worst first")
}

func ExampleCheck() {
	id, _ := session.ParseID("auth-20260214-1")
	st, _ := session.New(id, at)
	e := st.Edit()
	e.Put(session.Task{ID: "form", Kind: session.KindTask, State: session.TaskPending, DependsOn: []string{"login"}})
	e.SetRoots([]string{"form"})
	st, _ = e.State()
	for _, f := range session.Check(st) {
		fmt.Println(f)
		fmt.Println(f.Rule.Repair)
	}
	// Output:
	// dependency-exists (warning): task "form" depends on "login", which is not there
	// correct the plan; the next run takes it over
}
