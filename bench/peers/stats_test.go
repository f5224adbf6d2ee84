package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	ten := []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	for q, want := range map[float64]float64{0: 1, 0.1: 1, 0.11: 2, 0.5: 5, 0.99: 10, 1: 10} {
		require.Equal(t, want, quantile(ten, q), q)
	}
}

// TestRatio has a machine that is ten times slower in one round: ratios do not move.
func TestRatio(t *testing.T) {
	t.Parallel()
	table := Table{Base: Ours}
	for round, slow := range []float64{1, 10, 1} {
		table.add(Ours, round, 100*slow, 100*slow)
		table.add("bbolt", round, 300*slow)
	}
	table.add("raft-wal", 0)
	table.saved = true
	table.finish()
	require.Len(t, table.Rows, 2)
	none := Table{Base: Ours}
	none.add(Ours, 0, 0)
	none.add("bbolt", 0, 7)
	none.finish()
	require.Zero(t, none.Rows[1].Ratio, "results.json has no infinite numbers")
	require.Equal(t, kindOf(Ours).Saved, table.Rows[0].Durable)
	require.Equal(t, Row{Name: "bbolt", Durable: durable, N: 3, P50: 300, P99: 3000, P999: 3000, Max: 3000, Low: 300, High: 3000, Ratio: 3}, table.Rows[1])
}

func TestPairs(t *testing.T) {
	t.Parallel()
	rounds := make([]map[string]float64, 2)
	for i, ns := range []string{"150", "300"} {
		rounds[i] = figures([]byte(`goos: linux
pkg: github.com/lopen-dev/lopen/bench
BenchmarkList-2         	       5	 ` + ns + ` lopen-p50-ns	 100 read-p50-ns	 900 lopen-p99-ns
BenchmarkSave/stalled-2 	       5	 20 tasks=10-p50-ns	 700 tasks=10-p99-ns
BenchmarkDurable-2      	       5	 40 tasks=10-p50-ns	 60 tasks=1000000-p50-ns	 20 append-p50-ns
BenchmarkPaced-2 	       5	 40 lopen-p50-ns	 0 send-p50-ns
BenchmarkIdle-2         	       1	 16 heap-MiB
PASS
`))
	}
	all := pair(rounds)
	require.Len(t, all, len(pairs), "what was not measured says so")
	var works []string
	var rows []PairRow
	for _, r := range all {
		if r.Rounds > 0 {
			works, rows = append(works, r.Bench+" "+r.Ours), append(rows, r)
		}
	}
	require.Equal(t, []string{"Save/stalled tasks=10", "Durable tasks=1000000", "List lopen", "Idle heap-MiB"}, works)
	require.False(t, rows[0].within(), "the 99th percentile")
	require.Equal(t, []float64{1.5, 3}, []float64{rows[1].Value, rows[1].FromFloor})
	require.Equal(t, []float64{150, 900, 100, 1.5, 1.5, 3}, []float64{rows[2].P50, rows[2].P99, rows[2].OtherP50, rows[2].Value, rows[2].Low, rows[2].High})
	require.False(t, rows[2].within())
	require.Equal(t, 16.0, rows[3].Value)
	require.True(t, rows[3].within())
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 0.00001234: "0.0000", 1.234: "1.23", 99.94: "99.9", 100.4: "100", 1234567: "1,234,567"} {
		require.Equal(t, want, number(v))
	}
	for ns, want := range map[float64]string{80: "80 ns", 1500: "1.5 µs", 2.5e6: "2.5 ms", 3e10: "30 s"} {
		require.Equal(t, want, amount(ns, "ns"))
	}
	require.Equal(t, "2 KiB", amount(2048, "bytes"))
}
