package session_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

func appended(t require.TestingT, st *session.State, its ...session.Iteration) *session.State {
	e := st.Edit()
	for _, it := range its {
		e.AppendIteration(it)
	}
	next, err := e.State()
	require.NoError(t, err)
	return next
}

// TestIterationsFork appends to random earlier States: no list ever sees what
// another one continued.
func TestIterationsFork(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		states, models := []*session.State{fresh(t)}, [][]int{nil}
		for n := range rapid.IntRange(1, 20).Draw(t, "appends") {
			i := rapid.IntRange(0, len(states)-1).Draw(t, "from")
			var its []session.Iteration
			model := slices.Clone(models[i])
			for range rapid.IntRange(1, 40).Draw(t, "many") {
				its = append(its, session.Iteration{Turns: n, InputTokens: 1})
				model = append(model, n)
			}
			states, models = append(states, appended(t, states[i], its...)), append(models, model)
		}
		for i, st := range states {
			var got []int
			for it := range st.Iterations() {
				got = append(got, it.Turns)
				require.Len(t, got, it.Number)
			}
			require.Equal(t, models[i], got)
			require.Equal(t, len(got), st.NumIterations())
			require.EqualValues(t, len(got), st.Totals().InputTokens)
		}
	})
}

func TestTotalsStayAtTheLargest(t *testing.T) {
	t.Parallel()
	most := session.Iteration{InputTokens: math.MaxInt64, OutputTokens: 1, CachedTokens: math.MaxInt64 - 1, PremiumRequests: math.MaxFloat64, CostUSD: math.MaxFloat64, Duration: math.MaxInt64}
	st := appended(t, fresh(t), most, most)
	require.Equal(t, session.Totals{Iterations: 2, InputTokens: math.MaxInt64, OutputTokens: 2, CachedTokens: math.MaxInt64,
		PremiumRequests: math.MaxFloat64, CostUSD: math.MaxFloat64, Duration: math.MaxInt64}, st.Totals())
}

// TestAppendCostsTheSame compares what the 10,000th append allocates with what
// the first few appends allocate.
func TestAppendCostsTheSame(t *testing.T) { // counts allocations, so nothing may run in parallel
	cost := func(st *session.State) float64 {
		return testing.AllocsPerRun(50, func() { appended(t, st, session.Iteration{StartedAt: time.Unix(1, 0)}) })
	}
	e := fresh(t).Edit()
	for range 10_001 {
		e.AppendIteration(session.Iteration{})
	}
	long, err := e.State()
	require.NoError(t, err)
	require.InDelta(t, cost(appended(t, fresh(t), session.Iteration{})), cost(long), 1)
}

// Lists that are appended to and cut have in common exactly what was never changed, and
// the sums of what is in them.
func TestMetrics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all []session.Iteration
		for i := range rapid.IntRange(0, 100).Draw(t, "many") {
			all = append(all, session.Iteration{Number: i + 1, Turns: 1, OutputTokens: int64(i)})
		}
		whole, err := session.NewMetrics(all)
		require.NoError(t, err)
		require.Equal(t, len(all), whole.Len())
		n := rapid.IntRange(0, 110).Draw(t, "cut")
		short := whole.Truncate(n)
		left := min(n, len(all))
		require.Equal(t, left, short.Len())
		require.EqualValues(t, left*(left-1)/2, short.Totals().OutputTokens)
		require.Equal(t, left, whole.Shared(short))
		for range rapid.IntRange(0, 40).Draw(t, "more") {
			short, err = short.Append(session.Iteration{Turns: 2})
			require.NoError(t, err)
		}
		require.Equal(t, left, whole.Shared(short))
		require.Equal(t, left, short.Shared(whole))
		require.Equal(t, short.Len(), short.Shared(short))
		at := rapid.IntRange(0, short.Len()).Draw(t, "from")
		for it := range short.From(at) {
			at++
			require.Equal(t, at, it.Number)
			require.Equal(t, it.Number > left, it.Turns == 2)
		}
		require.Equal(t, short.Len(), at)
	})
}

func TestMetricsRefuse(t *testing.T) {
	t.Parallel()
	_, err := session.NewMetrics([]session.Iteration{{Number: 1}, {Number: 3}})
	require.ErrorContains(t, err, "iteration 3 stands at place 2")
	_, err = session.NewMetrics([]session.Iteration{{Number: 1, OutputTokens: -1}})
	require.ErrorContains(t, err, "invalid tokens")
	var none session.Metrics
	same, err := none.Append(session.Iteration{CostUSD: math.NaN()})
	require.ErrorContains(t, err, "invalid cost")
	require.Equal(t, none, same)
}
