package turns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRun has a quick side and a slow one, and looks at who had how many turns.
func TestRun(t *testing.T) {
	t.Parallel()
	var order []string
	call := func(what string) func() { return func() { order = append(order, what) } }
	res := testing.Benchmark(func(b *testing.B) {
		order = nil
		Run(b, Side{Name: "few", Before: call("before"), After: call("after"), Block: 2, Calls: 10, Do: call("few")},
			Side{Name: "paced", For: 5 * time.Millisecond, Pace: time.Millisecond, Do: call("paced")})
	})
	require.Equal(t, []string{"before", "few", "few", "after", "paced"}, order[:5])
	require.Positive(t, res.Extra["few-p50-ns"])
	require.Positive(t, res.Extra["paced-p50-ns"])
	require.Positive(t, res.Extra["few-p99-ns"], "a benchmark of a second has 300 samples")
	again := 0 // paced calls that follow another one
	for i, what := range order[1:] {
		if what == "paced" && order[i] == "paced" {
			again++
		}
	}
	require.Positive(t, again, "five calls in each turn, and fewer on a busy machine")
}
