package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

var evening = time.Date(2026, 2, 13, 22, 0, 0, 0, time.UTC)

// after is so many minutes after the evening.
func after(minutes int) time.Time { return evening.Add(time.Duration(minutes) * time.Minute) }

// state is a State with tasks in states, "core/a failed" each.
func state(t testing.TB, status session.Status, why session.ExitReason, all ...string) *session.State {
	id, err := session.ParseID("night-20260213-1")
	require.NoError(t, err)
	st, err := session.New(id, evening)
	require.NoError(t, err)
	e := st.Edit()
	e.Header().Status, e.Header().ExitReason = status, why
	var ids []string
	for _, text := range all {
		id, is, _ := strings.Cut(text, " ")
		ids = append(ids, id)
		e.Put(session.Task{ID: id, Name: strings.ToUpper(id), Kind: session.KindTask, State: session.TaskState(is)})
	}
	e.SetRoots(ids)
	st, err = e.State()
	require.NoError(t, err)
	return st
}

// attempt is a record of a start of the command from minute to minute.
func attempt(task, then string, from, to int, more ...func(*record.Attempt)) record.Record {
	a := record.Attempt{Task: task, Then: then, StartedAt: after(from), EndedAt: after(to), Agent: "claude"}
	for _, fn := range more {
		fn(&a)
	}
	return record.Record{At: a.EndedAt, Attempts: []record.Attempt{a}}
}

func used(in, out, cached int64, cost float64) func(*record.Attempt) {
	return func(a *record.Attempt) { a.Input, a.Output, a.Cached, a.CostUSD = in, out, cached, cost }
}

func files(paths ...string) func(*record.Attempt) {
	return func(a *record.Attempt) {
		for _, p := range paths {
			a.Files = append(a.Files, record.FileChange{Path: p, Change: "modified"})
		}
	}
}

func problem(kind, said string, retry int) func(*record.Attempt) {
	return func(a *record.Attempt) {
		a.Problem, a.AgentError = kind, said
		if retry > 0 {
			at := after(retry)
			a.RetryAt = &at
		}
	}
}

func red(failure, tail string) func(*record.Attempt) {
	return func(a *record.Attempt) {
		a.Failure, a.CheckTail, a.Tail = failure, tail, "agent's talk"
		a.Check = &record.CheckRun{Command: "go test ./...", Exit: 1, Ms: 30_000}
	}
}

func ends(minute int, to session.Status) record.Record {
	return record.Record{At: after(minute), Ops: []record.Op{{Name: record.OpStatusChanged, To: string(to)}}}
}

func read(since time.Time, all ...record.Record) *Reader {
	r := &Reader{Since: since}
	for _, rec := range all {
		r.Add(rec)
	}
	return r
}

func TestReportOfANight(t *testing.T) {
	t.Parallel()
	const flag = `Bash: go test ./... (--allowedTools 'Bash(go test ./...)')`
	denied := func(a *record.Attempt) { a.Denied = []string{flag} }
	log := []record.Record{
		{At: evening, Event: record.EventCreated},
		attempt("core/a", record.Done, 0, 5, used(1000, 200, 9000, 0.25), files("a.go", "a_test.go")),
		attempt("core/b", record.Failed, 5, 6, used(100, 20, 0, 0.5), files("b.go"), red("the check: exit 2", "other")),
		attempt("core/b", record.Waits, 6, 7, problem("limit", "resets 1am", 30)),
		attempt("core/b", record.Failed, 31, 33, used(10, 2, 0, 0.125), files("b.go", "c.go"), denied, red("the check: exit 1", "--- FAIL: TestB (0.00s)\n    b_test.go:7: no\nFAIL\n")),
		{At: after(34), Event: record.EventRewindEnd, Rewind: &session.Rewinding{Task: "core/b", To: strings.Repeat("ab", 16), After: "cd", Files: true}},
		attempt("core/c", record.Failed, 35, 36, denied, red("the check: exit 1", "")),
		{At: after(36), Ops: []record.Op{{Name: record.OpNotSetBack, Task: "core/c", To: "HEAD moved"}}},
		{At: after(50), Event: record.EventResumed},
		attempt("core/d", record.Waits, 51, 52, problem("overload", "", 53)),
		attempt("core/d", record.Done, 60, 61, func(a *record.Attempt) { a.NoCost = true }),
		ends(62, session.StatusPaused),
	}
	st := state(t, session.StatusPaused, session.ExitFailed, "core/a complete", "core/b failed", "core/c failed", "core/d complete", "core/e pending")
	rep := read(time.Time{}, log...).Report(st, false, after(600))

	require.Equal(t, "paused", rep.Status)
	require.Equal(t, "failed", rep.Ended)
	require.Equal(t, "tasks failed", rep.Why)
	require.Equal(t, evening, rep.From)
	require.Equal(t, after(62), rep.To)
	require.Equal(t, 1, rep.Kills)
	require.Equal(t, session.Progress{Done: 2, Total: 5, Failed: 2}, rep.Progress)

	require.Len(t, rep.Failures, 2)
	b := rep.Failures[0]
	require.Equal(t, Task{
		Usage: Usage{Starts: 3, Seconds: 4*60 + 2*30, Input: 110, Output: 22, CostUSD: 0.625},
		Task:  "core/b", Name: "CORE/B", State: "failed", Attempts: 2, Files: 2, At: after(33),
	}, b.Task)
	require.Equal(t, "the check: exit 1", b.Message)
	require.Equal(t, []string{"--- FAIL: TestB (0.00s)", "    b_test.go:7: no"}, b.Lines)
	require.Equal(t, "failed:core/b", b.Kept)
	require.Equal(t, []string{
		"lopen checkpoint diff abababab failed:core/b --session night-20260213-1",
		"lopen checkpoint restore failed:core/b --session night-20260213-1",
	}, b.Commands)
	c := rep.Failures[1]
	require.Equal(t, []string{"agent's talk"}, c.Lines) // its check printed nothing
	require.Equal(t, "HEAD moved", c.Left)
	require.Empty(t, c.Kept)

	require.Equal(t, []Wait{
		{Problem: "limit", Agent: "claude", Task: "core/b", Said: "resets 1am", From: after(7), To: after(31), Seconds: 24 * 60},
		{Problem: "overload", Agent: "claude", Task: "core/d", From: after(52), To: after(60), Seconds: 8 * 60},
	}, rep.Waits)
	require.Equal(t, []Waited{{"limit", 1, 24 * 60}, {"overload", 1, 8 * 60}}, rep.Waited)
	require.Equal(t, []Denied{{flag, 2, []string{"core/b", "core/c"}}}, rep.Denied)
	require.Len(t, rep.Done, 2)
	require.Equal(t, []string{"core/d"}, rep.Unchanged)

	// The totals are the sums of the records' own numbers.
	sum := Usage{}
	for _, rec := range log {
		for i := range rec.Attempts {
			sum.add(&rec.Attempts[i])
		}
	}
	require.Equal(t, sum, rep.Totals.Usage)
	require.Equal(t, Usage{Starts: 7, Seconds: 12*60 + 3*30, Input: 1110, Output: 222, Cached: 9000, CostUSD: 0.875, NoCost: 1}, rep.Totals.Usage)
	require.Equal(t, map[string]int{"done": 2, "failed": 3, "waits": 2}, rep.Totals.Then)
	require.Equal(t, []Step{
		{"read what a task printed", []string{"lopen session output core/b --session night-20260213-1"}},
		{"mend what failed, and run again", []string{"lopen run night"}},
		{"1 done without changing a file; to have one done again", []string{"lopen plan untick night core/d"}},
	}, rep.Next)

	// Since: what was before is not counted.
	late := read(after(40), log...).Report(st, false, after(600))
	require.Equal(t, after(50), late.From)
	require.Empty(t, late.Failures)
	require.Equal(t, 2, late.Totals.Starts)

	// No list is null.
	data, err := json.Marshal(read(time.Time{}).Report(st, false, evening))
	require.NoError(t, err)
	require.NotContains(t, string(data), "null")
}

// A task that failed and was done since, or that a person skipped, is no failure.
func TestWhatIsMendedIsNoFailure(t *testing.T) {
	t.Parallel()
	r := read(time.Time{},
		attempt("core/a", record.Failed, 0, 1, red("exit 1", "")), attempt("core/a", record.Done, 1, 2, files("a")),
		attempt("core/b", record.Failed, 2, 3, red("exit 1", "")),
		attempt("core/c", record.Failed, 3, 4, red("exit 1", "")),
		attempt("core/d", record.Done, 4, 5, files("d")),
	)
	st := state(t, session.StatusPaused, session.ExitPaused, "core/a complete", "core/b skipped", "core/c complete", "core/d pending")
	rep := r.Report(st, false, after(9))
	require.Empty(t, rep.Failures)
	var done []string
	for _, d := range rep.Done {
		done = append(done, d.Task+" "+d.State)
	}
	require.Equal(t, []string{"core/a complete", "core/c complete", "core/d pending"}, done) // b runs again only when a person says so
}

// Blocked is what waits for a failure, however long the chain.
// TestWhatTheLogLost reports on a session that was made again from memory: its State knows
// of a failed task and of starts that its log does not have.
func TestWhatTheLogLost(t *testing.T) {
	t.Parallel()
	st := state(t, session.StatusPaused, session.ExitFailed, "a failed", "b complete")
	e := st.Edit()
	a, _ := e.Task("a")
	a.LastError, a.Attempts = "the check: exit 1", 3
	e.Put(a)
	for n := range 4 {
		e.AppendIteration(session.Iteration{Task: "a", Attempt: n + 1})
	}
	st, err := e.State()
	require.NoError(t, err)
	r := &Reader{}
	r.Add(attempt("b", record.Done, 1, 2, files("b.go")))
	rep := r.Report(st, false, after(9))
	require.Equal(t, 3, rep.Lost)
	require.Len(t, rep.Failures, 1)
	require.Equal(t, "the check: exit 1", rep.Failures[0].Message)
	require.Equal(t, 3, rep.Failures[0].Attempts)
	var b bytes.Buffer
	require.NoError(t, rep.Markdown(&b, time.UTC))
	require.Contains(t, b.String(), "Of 3 starts before them the log is lost")
	r = &Reader{}
	r.Add(record.Record{At: after(0), Event: record.EventForked})
	r.Add(attempt("b", record.Done, 1, 2, files("b.go")))
	rep = r.Report(st, false, after(9))
	require.Zero(t, rep.Lost, "they are in the log of the session that it was forked from")
	require.Len(t, rep.Failures, 1)
	r = &Reader{Since: after(1)}
	require.Empty(t, r.Report(st, false, after(9)).Failures, "of what came before nothing is told")
}

func TestBlocked(t *testing.T) {
	t.Parallel()
	e := state(t, session.StatusPaused, session.ExitFailed, "a pending", "b pending", "c pending", "d pending").Edit()
	for id, on := range map[string]string{"b": "c", "c": "a"} {
		is, _ := e.Task(id)
		is.DependsOn = []string{on}
		e.Put(is)
	}
	st, err := e.State()
	require.NoError(t, err)
	require.Zero(t, blocked(st)) // they wait for their turn
	e = st.Edit()
	a, _ := e.Task("a")
	a.State = session.TaskFailed
	e.Put(a)
	st, err = e.State()
	require.NoError(t, err)
	require.Equal(t, 2, blocked(st))
}

// What the circuit breaker took back is no failure, and what failed before it stays one.
func TestWhatTheCircuitBreakerTookBack(t *testing.T) {
	t.Parallel()
	empty := func(a *record.Attempt) { a.Failure = "exit 1" }
	r := read(time.Time{},
		attempt("core/a", record.Failed, 0, 1, files("a"), red("the check: exit 1", "error: a")),
		attempt("core/a", record.Failed, 1, 2, empty), attempt("core/b", record.Failed, 2, 3, empty),
		attempt("core/b", record.Uncounted, 3, 4, empty, problem("", "no such host", 20)),
		attempt("core/b", record.Uncounted, 20, 21, empty),
		ends(22, session.StatusPaused),
	)
	rep := r.Report(state(t, session.StatusPaused, session.ExitFailed, "core/a pending", "core/b pending"), false, after(30))
	require.Len(t, rep.Failures, 1)
	require.Equal(t, "the check: exit 1", rep.Failures[0].Message)
	require.Equal(t, 1, rep.Failures[0].Attempts)
	require.Equal(t, []Attempt{{"core/a", after(2), "exit 1"}, {"core/b", after(3), "exit 1"}, {"core/b", after(4), "no such host"}, {"core/b", after(21), "exit 1"}}, rep.TakenBack)
	require.Equal(t, []Waited{{"circuit breaker", 1, 16 * 60}}, rep.Waited)
	require.Equal(t, "the agent fails at every task", rep.Why)

	// A budget that ended an attempt takes nothing else back.
	r = read(time.Time{}, attempt("core/a", record.Failed, 1, 2, empty), attempt("core/b", record.Failed, 2, 3, empty),
		attempt("core/c", record.Uncounted, 3, 4, used(1, 1, 0, 2), empty))
	rep = r.Report(state(t, session.StatusPaused, session.ExitMaxIterations, "core/a pending", "core/b pending", "core/c pending"), false, after(9))
	require.Len(t, rep.Failures, 2)
	require.Len(t, rep.TakenBack, 1)
}

// A wait ends with the next start, when the run ends, or not yet; of one that a kill cut
// off nobody knows more than until when it was to last.
func TestHowAWaitEnds(t *testing.T) {
	t.Parallel()
	active := state(t, session.StatusActive, "", "core/a pending")
	wait := attempt("core/a", record.Waits, 0, 1, problem("limit", "", 60))
	for _, c := range []struct {
		about string
		log   []record.Record
		held  bool
		now   int
		to    int
		open  bool
		ended string
	}{
		{"goes on", []record.Record{wait}, true, 10, 60, true, ""},
		{"is over, and the next start has no record yet", []record.Record{wait}, true, 70, 70, true, ""},
		{"killed", []record.Record{wait}, false, 10, 10, false, "crashed"},
		{"killed, looked at later", []record.Record{wait}, false, 100, 60, false, "crashed"},
		{"killed, and resumed", []record.Record{wait, {At: after(30), Event: record.EventResumed}}, true, 40, 30, false, ""},
		{"killed, and resumed later", []record.Record{wait, {At: after(90), Event: record.EventResumed}}, true, 99, 60, false, ""},
		{"paused", []record.Record{wait, ends(20, session.StatusPaused)}, true, 40, 20, false, ""},
		{"another agent at once", []record.Record{wait, attempt("core/a", record.Done, 1, 9)}, true, 40, 1, false, ""},
	} {
		rep := read(time.Time{}, c.log...).Report(active, c.held, after(c.now))
		require.Len(t, rep.Waits, 1, c.about)
		w := rep.Waits[0]
		require.Equal(t, after(c.to), w.To, c.about)
		require.Equal(t, c.open, w.Open, c.about)
		require.InDelta(t, min(w.To.Sub(w.From).Seconds(), after(c.now).Sub(w.From).Seconds()), w.Seconds, 0.001, c.about)
		require.Equal(t, c.ended, rep.Ended, c.about)
	}
}

// A later run begins with the same event after a kill and after a pause.
func TestOnlyAKillIsCounted(t *testing.T) {
	t.Parallel()
	active := state(t, session.StatusActive, "", "core/a pending")
	resumed := func(sec int) record.Record { return record.Record{At: after(sec), Event: record.EventResumed} }
	done := attempt("core/a", record.Done, 0, 1)
	for _, c := range []struct {
		about string
		since time.Time
		kills int
		log   []record.Record
	}{
		{"killed", time.Time{}, 1, []record.Record{done, resumed(9)}},
		{"killed twice", time.Time{}, 2, []record.Record{done, resumed(9), resumed(10)}},
		{"paused", time.Time{}, 0, []record.Record{done, ends(5, session.StatusPaused), resumed(9), ends(10, session.StatusActive)}},
		{"paused, and again without a task", time.Time{}, 0, []record.Record{done, ends(5, session.StatusPaused), resumed(9), resumed(10)}},
		{"paused, then killed", time.Time{}, 1, []record.Record{done, ends(5, session.StatusPaused), resumed(9), ends(10, session.StatusActive), resumed(11)}},
		{"paused before the report begins", after(7), 0, []record.Record{done, ends(5, session.StatusPaused), resumed(9)}},
	} {
		require.Equal(t, c.kills, read(c.since, c.log...).Report(active, true, after(20)).Kills, c.about)
	}
}

func TestWhyARunEnded(t *testing.T) {
	t.Parallel()
	needs := attempt("core/a", record.Needed, 0, 1, problem("login", "Invalid API key", 0))
	done := attempt("core/a", record.Done, 0, 1)
	for why, c := range map[string]struct {
		exit session.ExitReason
		last record.Record
	}{
		"a person is needed (login): Invalid API key":   {session.ExitFailed, needs},
		"the agent's limit lasted too long: resets 3am": {session.ExitAgentLimit, attempt("core/a", record.Waits, 0, 1, problem("limit", "resets 3am", 0))},
		"all is done":             {session.ExitComplete, done},
		"it was paused":           {session.ExitPaused, done},
		"a person interrupted it": {session.ExitInterrupted, done},
		"it could not go on":      {session.ExitFailed, done},
		"of a storage error":      {session.ExitStorageError, done},
		"the command was started as often as max_iterations allows": {session.ExitMaxIterations, done},
	} {
		rep := read(time.Time{}, c.last).Report(state(t, session.StatusPaused, c.exit, "core/a pending"), false, after(9))
		require.Equal(t, why, rep.Why)
	}
	st := state(t, session.StatusPaused, session.ExitFailed, "core/a complete", "core/b failed")
	e := st.Edit()
	e.Header().Check = &session.CheckResult{Command: "make", Exit: 2, At: after(5), Task: "core/a"}
	st, err := e.State()
	require.NoError(t, err)
	rep := read(time.Time{}, done, attempt("core/b", record.Failed, 2, 3, red("exit 1", ""))).Report(st, false, after(9))
	require.Equal(t, "the check of core/a is red after core/b failed", rep.Why)
}

// The night of 40 tasks is about a page, and no line is wider than a terminal should be.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	evil := "x\x1b2J\n## forged " + strings.Repeat("wide | ", 60)
	log := []record.Record{{At: evening, Event: record.EventCreated}}
	var all []string
	for i := range 37 {
		id := "core/task-" + string(rune('a'+i%26)) + strings.Repeat("-and-on", i)
		all = append(all, id+" complete")
		log = append(log, attempt(id, record.Done, 10*i, 10*i+9, used(123_456, 7_890, 2_345_678, 1.5), files("f")))
	}
	for _, id := range []string{"core/x", "core/y", "core/z"} {
		all = append(all, id+" failed")
		log = append(log, attempt(id, record.Failed, 370, 372, red(evil, "--- FAIL: T\n"+strings.Repeat("    t_test.go:1: "+evil+"\n", 3))))
	}
	for range 12 {
		log = append(log, attempt("core/z", record.Waits, 372, 373, problem("overload", evil, 375)))
	}
	log = append(log, ends(380, session.StatusPaused))
	var b bytes.Buffer
	require.NoError(t, read(time.Time{}, log...).Report(state(t, session.StatusPaused, session.ExitFailed, all...), false, after(999)).Markdown(&b, time.UTC))
	text := b.String()
	require.True(t, strings.HasPrefix(text, `# night: 37 of 40 tasks done, 3 failed

Session night-20260213-1, 13 Feb 22:00 to 14 Feb 04:20 (6 h 20 min). It ended because tasks failed.

## Failed

- **core/x** (1 attempt, 2 min 30 s, check exit 1 after 30 s): x\x1b2J\n## forged wide | wide | wide`), text)
	require.Contains(t, text, "\n## Waited 7 min 0 s in 12 waits of overload\n")
	require.Contains(t, text, "- and 2 more\n")
	require.Contains(t, text, "| 9 min 0 s | 123.5k | 7.9k |   2.3M | $1.50 |     1 | core/task-a |\n")
	require.Contains(t, text, "| core/task-j-and-on-an…-and-on-and-on-and-on |\n")
	require.Contains(t, text, "- mend what failed, and run again: `lopen run night`\n")
	require.Contains(t, text, "\nTotal: 52 starts of the command, ")
	lines := strings.Split(text, "\n")
	require.Less(t, len(lines), 110)
	for _, l := range lines {
		require.LessOrEqual(t, utf8.RuneCountInString(l), width, l)
		require.False(t, strings.HasPrefix(l, "## forged"), l)
	}
}
