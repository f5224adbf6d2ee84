package session_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

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

func TestEditRefuses(t *testing.T) {
	t.Parallel()
	with := func(fn func(*session.Task)) func(*session.Edit) {
		return func(e *session.Edit) {
			c, _ := e.Task("c")
			fn(&c)
			e.Put(c)
		}
	}
	header := func(fn func(*session.Header)) func(*session.Edit) {
		return func(e *session.Edit) { fn(e.Header()) }
	}
	field := func(key, value string) []session.Field {
		return []session.Field{{Key: key, Value: strictjson.Value(value)}}
	}
	far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
	for name, change := range map[string]func(e *session.Edit){
		`kind of task "c"`:                     with(func(c *session.Task) { c.Kind = "x" }),
		`state of task "c"`:                    with(func(c *session.Task) { c.State = "" }),
		`name of task "c"`:                     with(func(c *session.Task) { c.Name = "\xff" }),
		`attempts of task "c"`:                 with(func(c *session.Task) { c.Attempts = -1 }),
		`box of task "c"`:                      with(func(c *session.Task) { c.Box = 3 }),
		`last error of task "c"`:               with(func(c *session.Task) { c.LastError = strings.Repeat("x", 16<<10+1) }),
		`dependency of task "c"`:               with(func(c *session.Task) { c.DependsOn = []string{"a", "\n"} }),
		`time of task "c"`:                     with(func(c *session.Task) { c.CompletedAt = far }),
		`signal of task "c"`:                   with(func(c *session.Task) { c.Log = []session.Attempt{{}, {Signal: "\xff"}} }),
		`error of task "c"`:                    with(func(c *session.Task) { c.Log = []session.Attempt{{Error: "\xff"}} }),
		`artifact of task "c"`:                 with(func(c *session.Task) { c.Log = []session.Attempt{{Artifacts: []string{"\xff"}}} }),
		`ID of task ""`:                        with(func(c *session.Task) { c.ID = "" }),
		`ID of task "c\""`:                     with(func(c *session.Task) { c.ID = `c"` }),
		`ID of task "c\\"`:                     with(func(c *session.Task) { c.ID = `c\` }),
		`ID of task "c\xc3"`:                   with(func(c *session.Task) { c.ID = "c\xc3" }),
		`parent of task "c"`:                   with(func(c *session.Task) { c.Parent = "\t" }),
		`parent of a task "x"`:                 func(e *session.Edit) { e.Put(task("a", "")); e.Put(task("c", "x")) },
		`unknown field of task "c" "id"`:       with(func(c *session.Task) { c.Extra = field("id", "1") }),
		`unknown field of task "c" "children"`: with(func(c *session.Task) { c.Extra = field("children", "1") }),
		`unknown field x`:                      with(func(c *session.Task) { c.Extra = field("x", "{") }),
		`unknown field y`:                      with(func(c *session.Task) { c.Extra = field("y", "[1, 2]") }),
		`unknown field of task "c" "z"`:        with(func(c *session.Task) { c.Extra = append(field("z", "1"), field("z", "1")...) }),
		`unknown fields of task "c" "257"`:     with(func(c *session.Task) { c.Extra = make([]session.Field, 257) }),
		`status`:                               header(func(h *session.Header) { h.Status = "" }),
		`phase`:                                header(func(h *session.Header) { h.Phase = "x" }),
		`step`:                                 header(func(h *session.Header) { h.Step = "x" }),
		`exit reason`:                          header(func(h *session.Header) { h.ExitReason = "x" }),
		`component`:                            header(func(h *session.Header) { h.Component = strings.Repeat("x", 1<<10+1) }),
		`active task`:                          header(func(h *session.Header) { h.ActiveTask = "\x00" }),
		`header "\xff"`:                        header(func(h *session.Header) { h.Cwd = "\xff" }),
		`git`:                                  header(func(h *session.Header) { h.Git.Branch = "\xff" }),
		`commit`:                               header(func(h *session.Header) { h.Commits = &session.Commits{Branch: "b", Pending: "\x00"} }),
		`branch`:                               header(func(h *session.Header) { h.Commits = &session.Commits{} }),
		`held`:                                 header(func(h *session.Header) { h.Commits = &session.Commits{Branch: "b", Held: []string{"\xff"}} }),
		`settings`:                             header(func(h *session.Header) { h.Settings.Unit = "\xff" }),
		`command`:                              header(func(h *session.Header) { h.Settings.Command = []string{"a", "\xff"} }),
		`models`:                               header(func(h *session.Header) { h.Models = []string{"\xff"} }),
		`resource`:                             header(func(h *session.Header) { h.Resources = []session.Resource{{}, {Path: "\xff"}} }),
		`check`:                                header(func(h *session.Header) { h.Check = &session.CheckResult{Command: "\xff"} }),
		`check "\xfe"`:                         header(func(h *session.Header) { h.Check = &session.CheckResult{Task: "\xfe"} }),
		`time "10000-`:                         header(func(h *session.Header) { h.Check = &session.CheckResult{At: far} }),
		`time "`:                               header(func(h *session.Header) { h.RateLimit = &session.RateLimit{SeenAt: far} }),
		`time`:                                 header(func(h *session.Header) { h.UpdatedAt = far }),
		`createdAt or updatedAt`:               header(func(h *session.Header) { h.UpdatedAt = time.Time{} }),
		`lineage`:                              header(func(h *session.Header) { h.Lineage = &session.Lineage{Kind: "x"} }),
		`session ID`:                           header(func(h *session.Header) { h.Lineage = &session.Lineage{Kind: session.LineageForked} }),
		`total cost "NaN"`:                     header(func(h *session.Header) { h.TotalCostUSD = math.NaN() }),
		`total cost "+Inf"`:                    header(func(h *session.Header) { h.TotalCostUSD = math.Inf(1) }),
		`data "[]"`:                            header(func(h *session.Header) { h.Data = strictjson.Value(`[]`) }),
		`data "{}{}"`:                          header(func(h *session.Header) { h.Data = strictjson.Value(`{}{}`) }),
		`data "{\"a\":1,\"a\":1}"`:             header(func(h *session.Header) { h.Data = strictjson.Value(`{"a":1,"a":1}`) }),
		`data "{\"a\":\"xxx`: header(func(h *session.Header) {
			h.Data = strictjson.Value(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
		}),
		`data "{\"a\":{\"a\":`: header(func(h *session.Header) {
			h.Data = strictjson.Value(strings.Repeat(`{"a":`, 64) + "{}" + strings.Repeat("}", 64))
		}),
		`model config`:                            header(func(h *session.Header) { h.ModelConfig = strictjson.Value(`1`) }),
		`unknown field "seq"`:                     header(func(h *session.Header) { h.Extra = field("seq", "1") }),
		`tokens or duration of an iteration "-1"`: func(e *session.Edit) { e.AppendIteration(session.Iteration{InputTokens: -1}) },
		`tokens or duration of an iteration "-2"`: func(e *session.Edit) { e.AppendIteration(session.Iteration{Duration: -2}) },
		`cost of an iteration "-1"`:               func(e *session.Edit) { e.AppendIteration(session.Iteration{CostUSD: -1}) },
		`cost of an iteration "NaN"`:              func(e *session.Edit) { e.AppendIteration(session.Iteration{CostUSD: math.NaN()}) },
		`premium requests of an iteration`:        func(e *session.Edit) { e.AppendIteration(session.Iteration{PremiumRequests: math.Inf(1)}) },
		`task of an iteration`:                    func(e *session.Edit) { e.AppendIteration(session.Iteration{Task: "\n"}) },
		`model of an iteration`:                   func(e *session.Edit) { e.AppendIteration(session.Iteration{Model: "\xff"}) },
		`roots "2 listed"`:                        with(func(c *session.Task) { c.Parent = "" }),
		`roots "3 listed"`:                        func(e *session.Edit) { e.SetRoots([]string{"a", "b", "x"}) },
		`roots "c"`:                               func(e *session.Edit) { e.SetRoots([]string{"a", "c"}) },
		`roots "1 twice"`:                         func(e *session.Edit) { e.SetRoots([]string{"a", "a"}) },
		`children of task "a" "1 listed"`:         func(e *session.Edit) { e.Remove("c") },
		`children of task "a" "2 listed"`:         func(e *session.Edit) { e.Put(task("a", "", "c", "d")) },
		`children of task "b" "0 listed"`:         func(e *session.Edit) { e.Put(task("a", "")); e.Put(task("c", "b")) },
		`parents of task`: func(e *session.Edit) { // a and c are each other's
			e.Put(task("a", "c", "c"))
			e.Put(task("c", "a", "a"))
			e.SetRoots([]string{"b"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := family(t).Edit()
			change(e)
			_, err := e.State()
			var invalid *session.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.ErrorContains(t, err, "invalid "+name)
			require.Less(t, len(err.Error()), 500)
		})
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	// A chain of n tasks beneath b.
	chain := func(e *session.Edit, n int) {
		parent := "b"
		for i := range n {
			id := fmt.Sprint("n", i)
			p, _ := e.Task(parent)
			p.Children = []string{id}
			e.Put(p)
			e.Put(task(id, parent))
			parent = id
		}
	}
	e := family(t).Edit()
	chain(e, session.MaxTaskDepth)
	_, err := e.State()
	require.ErrorContains(t, err, "at most 64 levels")

	e = family(t).Edit()
	chain(e, session.MaxTaskDepth-1)
	st, err := e.State()
	require.NoError(t, err)

	// Moving the chain one level down takes its end over the bound, though only
	// its first task changes.
	e = st.Edit()
	e.Put(task("a", "", "c", "b"))
	b, _ := e.Task("b")
	b.Parent = "a"
	e.Put(b)
	e.SetRoots([]string{"a"})
	_, err = e.State()
	require.ErrorContains(t, err, "at most 64 levels")
}

func TestEditLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	e := family(t).Edit()
	h := e.Header()
	h.Settings.Command = []string{"sh"}
	h.RateLimit = &session.RateLimit{Limit: 1}
	data := []byte(`{ "a": 1 }`)
	h.Data = data
	st, err := e.State()
	require.NoError(t, err)

	h.RateLimit.Limit, h.Settings.Command[0] = 2, "rm"
	e.Header().RateLimit.Limit = 3
	data[2] = 'x'
	mine := st.Header()
	mine.RateLimit.Limit, mine.Settings.Command[0] = 4, "mv"
	require.EqualValues(t, 1, st.Header().RateLimit.Limit)
	require.Equal(t, "sh", st.Header().Settings.Command[0])
	require.JSONEq(t, `{"a":1}`, string(st.Header().Data))

	a, _ := st.Task("a")
	e = st.Edit()
	a.Children, a.Log = append(make([]string, 0, 9), "c"), append(make([]session.Attempt, 0, 9), session.Attempt{})
	a.DependsOn, a.Attempts = append(make([]string, 0, 9), "b"), 1
	e.Put(a)
	e.Header().UpdatedAt = at.Add(time.Hour)
	roots := []string{"b", "a"}
	e.SetRoots(roots)
	roots[0] = "x"
	next, err := e.State()
	require.NoError(t, err)
	a, _ = next.Task("a")
	require.Equal(t, 3, cap(a.Children)+cap(a.DependsOn)+cap(a.Log), "an append to what is handed out must copy")
	require.Equal(t, []string{"b", "a"}, next.Roots())
	require.Same(t, &st.Header().Data[0], &next.Header().Data[0], "what was not changed is neither checked again nor copied")
	require.Equal(t, 2, cap(st.Roots()), "likewise")

	_, err = e.State()
	require.ErrorContains(t, err, "spent")
}

func TestTimesAreNormal(t *testing.T) {
	t.Parallel()
	elsewhere := at.In(time.FixedZone("east", 3600))
	e := family(t).Edit()
	log := []session.Attempt{{StartedAt: elsewhere, EndedAt: time.Now()}}
	c, _ := e.Task("c")
	c.StartedAt, c.CompletedAt, c.Log = elsewhere, time.Now(), log
	e.Put(c)
	h := e.Header()
	h.CreatedAt, h.UpdatedAt, h.CompletedAt = elsewhere, elsewhere, elsewhere
	h.RateLimit, h.Check = &session.RateLimit{ResetsAt: elsewhere, SeenAt: elsewhere}, &session.CheckResult{At: elsewhere}
	e.AppendIteration(session.Iteration{StartedAt: elsewhere})
	st, err := e.State()
	require.NoError(t, err)
	got := st.Header()
	c, _ = st.Task("c")
	require.Equal(t, []time.Time{at, at, at, at, at, at, at, at},
		[]time.Time{got.CreatedAt, got.UpdatedAt, got.CompletedAt, got.RateLimit.ResetsAt, got.RateLimit.SeenAt, got.Check.At, c.StartedAt, c.Log[0].StartedAt})
	for it := range st.Iterations() {
		require.Equal(t, at, it.StartedAt)
	}
	require.NotContains(t, c.CompletedAt.String()+c.Log[0].EndedAt.String(), "m=")
	require.Equal(t, elsewhere, log[0].StartedAt, "the caller's own is left alone")

	e = st.Edit()
	e.Header().RateLimit = &session.RateLimit{}
	st, err = e.State()
	require.NoError(t, err)
	require.Nil(t, st.Header().RateLimit, "as it would be read again")
}

func TestEditCanBeMended(t *testing.T) {
	t.Parallel()
	e := family(t).Edit()
	e.Put(task("d", "b"))
	_, err := e.State()
	require.Error(t, err)
	e.Put(task("b", "", "d"))
	st, err := e.State()
	require.NoError(t, err)
	require.Equal(t, session.Progress{Total: 2}, st.Progress())
}

func TestPutOfTheSameChangesNothing(t *testing.T) {
	t.Parallel()
	st := family(t)
	e := st.Edit()
	c, _ := e.Task("c")
	c.StartedAt = time.Time{}.In(time.Local)
	e.Put(c)
	e.SetRoots([]string{"a", "b"})
	next, err := e.State()
	require.NoError(t, err)
	session.Diff(st, next, func(id string, _, _ *session.Task) bool {
		t.Errorf("%s differs", id)
		return true
	})
}

func TestRemoveKeepsWhatMovedAway(t *testing.T) {
	t.Parallel()
	e := family(t).Edit()
	e.Put(task("b", "", "c"))
	e.Put(task("c", "b"))
	e.Remove("a")
	e.Remove("a")
	e.SetRoots([]string{"b"})
	st, err := e.State()
	require.NoError(t, err)
	require.Equal(t, 2, st.NumTasks())
}

func TestStopInTheMiddle(t *testing.T) {
	t.Parallel()
	e := family(t).Edit()
	for range 70 {
		e.AppendIteration(session.Iteration{})
	}
	st, err := e.State()
	require.NoError(t, err)
	for want := range 3 {
		n := 0
		for range st.All() {
			if n == want {
				break
			}
			n++
		}
		require.Equal(t, want, n)
	}
	for want := range 70 {
		n := 0
		for it := range st.Iterations() {
			require.Equal(t, n+1, it.Number)
			if n == want {
				break
			}
			n++
		}
		require.Equal(t, want, n)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := session.New(session.ID{}, at)
	var invalid *session.InvalidError
	require.True(t, errors.As(err, &invalid))
	_, err = session.New(fresh(t).ID(), time.Time{})
	require.True(t, errors.As(err, &invalid))
	_, err = session.New(fresh(t).ID(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	require.True(t, errors.As(err, &invalid))
}

func TestCostOfAChange(t *testing.T) { // counts allocations, so nothing may run in parallel
	allocs := func(n int) float64 {
		st := flat(t, n)
		return testing.AllocsPerRun(20, func() {
			e := st.Edit()
			c, _ := e.Task("component")
			c.Attempts++
			e.Put(c)
			_, err := e.State()
			require.NoError(t, err)
		})
	}
	require.Less(t, allocs(50_000), allocs(10)+20, "a parent's change must not walk its children")
}
