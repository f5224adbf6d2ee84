package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
)

func TestBreakerOpens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		units string // one a start
		want  []bool
	}{
		"three at two tasks":       {"aab", []bool{false, false, true}},
		"three at three":           {"abc", []bool{false, false, true}},
		"one task alone":           {"aaaaa", []bool{false, false, false, false, false}},
		"one task, then a second":  {"aaab", []bool{false, false, false, true}},
		"it stays open for probes": {"abab", []bool{false, false, true, true}},
	} {
		var b breaker
		var got []bool
		for _, u := range c.units {
			got = append(got, b.blame(string(u), []string{string(u)}, nil, false))
		}
		require.Equal(t, c.want, got, name)
	}
}

func TestBreakerCountsWhatIsToBeGivenBack(t *testing.T) {
	t.Parallel()
	var b breaker
	before := []prompt.Failure{{Failure: "exit 4"}}
	b.blame("a", []string{"a"}, before, true)
	b.blame("a", []string{"a"}, []prompt.Failure{{Failure: "exit 1"}}, true)
	b.blame("b", []string{"b"}, nil, false)
	require.Equal(t, 2, b.units["a"].counts)
	require.Equal(t, before, b.units["a"].last, "as it was before the streak")
	require.Zero(t, b.units["b"].counts, "the last one never counted")
}

func TestProbesWaitLongerEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		for _, d := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
			require.Equal(t, wallClock().Add(d), b.wait())
		}
	})
}

func TestBudget(t *testing.T) {
	t.Parallel()
	b := Budget{Cost: 5, Tokens: 1000, DayCost: 8, DayTokens: 5000}
	for _, c := range []struct {
		run, day spent
		want     string
		left     float64
	}{
		{spent{4, 999}, spent{6, 4999}, "", 1},
		{spent{4, 999}, spent{7.5, 4999}, "", 0.5},
		{spent{5, 0}, spent{5, 0}, "this run has cost $5.00, and max_cost is $5.00", 0},
		{spent{0, 1000}, spent{}, "this run has used 1000 tokens, and max_tokens is 1000", 0},
		{spent{0, 0}, spent{9, 0}, "the runs of today have cost $9.00, and day_cost is $8.00", 0},
		{spent{0, 0}, spent{0, 5000}, "the runs of today have used 5000 tokens, and day_tokens is 5000", 0},
	} {
		got := b.usedUp("this run has", c.run, c.day)
		require.Equal(t, c.want, got)
		if got == "" {
			require.InDelta(t, c.left, b.left(c.run, c.day), 1e-9)
		}
	}
	none := Budget{}
	require.Empty(t, none.usedUp("", spent{1e6, 1e9}, spent{1e6, 1e9}))
	require.Zero(t, none.left(spent{1e6, 1e9}, spent{}))
}

func TestUntilStartsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := Budget{Until: time.Now().Add(time.Hour)}
		require.Empty(t, b.usedUp("this run has", spent{}, spent{}))
		time.Sleep(time.Hour)
		require.Contains(t, b.usedUp("this run has", spent{}, spent{}), "the time of --until")
	})
}
