package loop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

func TestWaitsDouble(t *testing.T) {
	t.Parallel()
	for kind, want := range map[agent.Kind][]time.Duration{
		agent.Limit:    {time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute},
		agent.Overload: {15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute},
	} {
		var b backoff
		for i, d := range want {
			require.Equal(t, at.Add(d), b.until(at, &agent.Problem{Kind: kind}), "%s %d", kind, i)
		}
	}
}

func TestAWaitUntilTheTimeThatTheAgentNames(t *testing.T) {
	t.Parallel()
	var b backoff
	limit := func(d time.Duration) *agent.Problem { return &agent.Problem{Kind: agent.Limit, ResetAt: at.Add(d)} }
	require.Equal(t, at.Add(5*time.Hour), b.until(at, limit(5*time.Hour)))
	require.Equal(t, at.Add(2*time.Hour), b.until(at, limit(2*time.Hour)), "it may be another limit")
	require.Equal(t, at.Add(time.Minute), b.until(at, limit(time.Second)), "the last one did not help")
	require.Equal(t, at.Add(2*time.Minute), b.until(at, limit(-time.Hour)))
	b = backoff{}
	require.Equal(t, at, b.until(at, limit(-time.Hour)), "a time that is over is no wait, once")
	require.Equal(t, at.Add(time.Minute), b.until(at, limit(-time.Hour)))
	b = backoff{}
	never := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	require.Equal(t, never, b.until(at, &agent.Problem{Kind: agent.Limit, ResetAt: never}))
}

func TestWaitIsForAllWaitsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &runner{cfg: Config{Wait: time.Hour}}
		now := wallClock()
		require.Empty(t, r.tooLong(now.Add(time.Hour)))
		require.NotEmpty(t, r.tooLong(now.Add(time.Hour+1)))
		r.waited = 30 * time.Minute
		require.NotEmpty(t, r.tooLong(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)), "no Duration holds it")
		require.Equal(t, "longer than --wait 1h0m0s allows", r.tooLong(now.Add(31*time.Minute)))
		r.cfg.Budget.Until = now.Add(10 * time.Minute)
		require.Empty(t, r.tooLong(now.Add(9*time.Minute)))
		require.Contains(t, r.tooLong(now.Add(10*time.Minute)), "not before --until")
	})
}

// TestAWaitFollowsTheWallClock simulates a machine that sleeps: timers stand still, and the
// wall clock is hours later at the next look.
func TestAWaitFollowsTheWallClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		looks := 0
		clock := func() time.Time {
			looks++
			if looks > 3 {
				return wallClock().Add(8 * time.Hour)
			}
			return wallClock()
		}
		waitUntil(t.Context(), wallClock().Add(7*time.Hour), clock, nil, func() bool { return false })
		require.Equal(t, 3*time.Second, time.Since(begun))

		begun = time.Now()
		waitUntil(t.Context(), wallClock().Add(time.Hour), wallClock, nil, func() bool { return false })
		require.Equal(t, time.Hour, time.Since(begun))
	})
}

func TestAWaitEndsEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := func() bool { return false }
		pressed := make(chan struct{}, 1)
		begun := time.Now()
		go func() { time.Sleep(5 * time.Minute); pressed <- struct{}{} }()
		waitUntil(t.Context(), wallClock().Add(time.Hour), wallClock, pressed, never)
		require.Equal(t, 5*time.Minute, time.Since(begun), "by a key")

		begun = time.Now()
		asks := 0
		waitUntil(t.Context(), wallClock().Add(time.Hour), wallClock, nil, func() bool { asks++; return asks == 10 })
		require.Equal(t, 10*time.Second, time.Since(begun), "by a request")

		begun = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waitUntil(ctx, wallClock().Add(time.Hour), wallClock, nil, never)
		require.Equal(t, time.Minute, time.Since(begun), "by an interrupt")
	})
}

func TestTheFirstAgentThatIsNotLimitedWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := &worker{Agent: chosen(t, "claude")}, &worker{Agent: chosen(t, "codex")}
		r := &runner{cfg: Config{UI: still{}}, workers: []*worker{a, b}}
		limit := func(d time.Duration) *agent.Problem {
			return &agent.Problem{Kind: agent.Limit, ResetAt: wallClock().Add(d)}
		}
		require.Same(t, a, r.pick())
		require.Zero(t, r.setLimited(a, limit(time.Hour)), "another one is free")
		require.Same(t, b, r.pick())
		first := wallClock().Add(time.Hour)
		require.Equal(t, first, r.setLimited(b, limit(2*time.Hour)), "until the first of them is free")
		require.Same(t, a, r.pick())
		time.Sleep(time.Hour)
		require.Same(t, a, r.pick(), "it comes back")
	})
}

// still is a UI that shows nothing.
type still struct{ UI }

func (still) Say(string, ...any)  {}
func (still) Warn(string, ...any) {}

func chosen(t *testing.T, name string) *agent.Agent {
	t.Helper()
	a, _, err := agent.Choose(name, nil, nil, "")
	require.NoError(t, err)
	return a
}

func TestWhatIsContinued(t *testing.T) {
	t.Parallel()
	const id = "11111111-2222-4333-8444-555555555555"
	claude := &worker{Agent: chosen(t, "claude")}
	whole := lastStart{unit: "u", agent: "claude", session: id, then: record.Waits}
	with := func(change func(*lastStart)) lastStart { t := whole; change(&t); return t }
	for name, c := range map[string]struct {
		lastStart
		n    int
		want string
	}{
		"a wait":                      {whole, 1, id},
		"a wait of attempt three":     {whole, 3, id},
		"an interrupt":                {with(func(t *lastStart) { t.then = record.Interrupted }), 1, id},
		"a kill":                      {with(func(t *lastStart) { t.then = record.Killed }), 1, id},
		"attempt two":                 {with(func(t *lastStart) { t.then = record.Failed }), 2, id},
		"attempt three begins afresh": {with(func(t *lastStart) { t.then = record.Failed }), 3, ""},
		"a failure of an earlier run": {with(func(t *lastStart) { t.then = record.Failed }), 1, ""},
		"another unit":                {with(func(t *lastStart) { t.unit = "v" }), 1, ""},
		"another agent":               {with(func(t *lastStart) { t.agent = "codex" }), 1, ""},
		"files were changed":          {with(func(t *lastStart) { t.touched = true }), 1, ""},
		"it was done":                 {with(func(t *lastStart) { t.then = record.Done }), 1, ""},
		"no session":                  {with(func(t *lastStart) { t.session = "" }), 1, ""},
		"a flag":                      {with(func(t *lastStart) { t.session = "--dangerously-skip-permissions" }), 1, ""},
		"redacted":                    {with(func(t *lastStart) { t.session = "[redacted:uuid]" }), 1, ""},
	} {
		require.Equal(t, c.want, c.sessionFor(claude, "u", c.n), name)
	}
	none, _, err := agent.Choose(agent.None, []string{"sh"}, nil, "")
	require.NoError(t, err)
	whole.agent = agent.None
	require.Empty(t, whole.sessionFor(&worker{Agent: none}, "u", 1), "it has no sessions")
}
