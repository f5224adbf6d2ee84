package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/lifecycle"
)

func workerOf(t *testing.T, name string, argv ...string) *worker {
	t.Helper()
	a, _, err := agent.Choose(name, argv, nil, "")
	require.NoError(t, err)
	return &worker{Agent: a}
}

func TestALimitIsThatOfAllRunsWithTheAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewShared(2)
		run := func(module string, workers ...*worker) *runner {
			return &runner{cfg: Config{Shared: s, Module: module}, workers: workers}
		}
		one := run("one", workerOf(t, "claude", "claude", "-p"))
		two := run("two", workerOf(t, "", "claude", "-p", "--model", "x"))
		both := run("both", workerOf(t, "claude", "claude", "-p"), workerOf(t, "codex", "codex", "exec", "-"))
		script, other := run("script", workerOf(t, "", "./agent.sh", "a")), run("other", workerOf(t, "", "./agent.sh", "b"))
		limited := func(r *runner) bool { _, w := r.allLimited(); return w != nil }

		one.setLimited(one.workers[0], &agent.Problem{Kind: agent.Limit, ResetAt: time.Now().Add(time.Hour)})
		require.True(t, limited(two), "the same agent")
		require.False(t, limited(both), "its second agent is free")
		require.False(t, limited(script))
		l, _ := two.allLimited()
		require.Equal(t, "one", l.module)

		both.setLimited(both.workers[1], &agent.Problem{Kind: agent.Overload})
		l, w := both.allLimited()
		require.Equal(t, "codex", w.Name(), "which is free first")
		require.Equal(t, agent.Overload, l.kind)

		script.setLimited(script.workers[0], &agent.Problem{Kind: agent.Limit})
		require.False(t, limited(other), "another command")

		two.setLimited(two.workers[0], &agent.Problem{Kind: agent.Overload}) // of an attempt that was in progress
		require.Equal(t, l.until, both.cfg.Shared.limitOf(both.workers[1]).until)
		l, _ = one.allLimited()
		require.Equal(t, time.Now().Add(time.Hour).Round(0), l.until, "the later end counts")

		s.lift(one.workers)
		require.False(t, limited(two), "a person ended the wait")
		one.setLimited(one.workers[0], &agent.Problem{Kind: agent.Limit})
		require.True(t, limited(two))
		time.Sleep(3 * time.Hour)
		require.False(t, limited(two))
	})
}

func TestTheAttemptsInProgressStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	s := NewShared(2)
	run := func() *runner {
		return &runner{cfg: Config{Shared: s, MaxIterations: 5, Budget: Budget{Cost: 10, Tokens: 1000}}}
	}
	a, b := run(), run()
	require.InDelta(t, 5, s.take(a, spent{}, spent{}).left, 1e-9, "as if the other began now")
	require.InDelta(t, 5, s.take(b, spent{}, spent{}).left, 1e-9)

	// a has used what it was given. b may need the rest.
	got := s.take(a, spent{cost: 5}, spent{})
	require.NotNil(t, got.wait)
	select {
	case <-got.wait:
		t.Fatal("nothing has ended")
	default:
	}
	s.spent[b] = spent{cost: 1}
	delete(s.given, b)
	close(s.ended)
	<-got.wait
	s.ended = make(chan struct{})
	require.InDelta(t, 2, s.take(a, spent{cost: 5}, spent{}).left, 1e-9, "half of what is left")

	require.Equal(t, "the runs together have used 1000 tokens, and max_tokens is 1000", s.take(b, spent{cost: 1, tokens: 1000}, spent{}).why)
	require.Contains(t, s.UsedUp(a.cfg.Budget, 0).Reason, "1000 tokens")
	require.Equal(t, &Exit{ExitUser, "3 starts of the command (max_iterations)"}, s.UsedUp(Budget{}, 3))
	require.Nil(t, s.UsedUp(Budget{}, 4))
	s.take(b, spent{}, spent{})
	require.Equal(t, 0, s.take(b, spent{}, spent{}).starts)
	require.Equal(t, 5, s.take(a, spent{cost: 5}, spent{}).starts, "all runs together")

	none := &runner{cfg: Config{Shared: s}}
	require.Equal(t, share{}, s.take(none, spent{cost: 1e6}, spent{}), "without a limit there is none")
}

func TestOneRunSaysThatTheDiskIsFull(t *testing.T) {
	t.Parallel()
	s := NewShared(2)
	first, over := s.storage(lifecycle.ClassNoSpace)
	second, over2 := s.storage(lifecycle.ClassNoSpace)
	denied, _ := s.storage(lifecycle.ClassDenied)
	require.Equal(t, []bool{true, false, true}, []bool{first, second, denied}, "a file that may not be written is another one for each")
	over()
	over2()
	again, _ := s.storage(lifecycle.ClassNoSpace)
	require.True(t, again)
	alone, _ := (*Shared)(nil).storage(lifecycle.ClassNoSpace)
	require.True(t, alone)
}
