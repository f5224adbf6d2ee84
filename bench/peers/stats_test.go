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
	require.Equal(t, kindOf(Ours).Saved, table.Rows[0].Durable)
	require.Equal(t, Row{Name: "bbolt", Durable: durable, N: 3, P50: 300, P99: 3000, P999: 3000, Max: 3000, Low: 300, High: 3000, Ratio: 3}, table.Rows[1])
}

func TestFigures(t *testing.T) {
	t.Parallel()
	out := []byte(`goos: linux
pkg: github.com/lopen-dev/lopen/bench
BenchmarkList/sessions=10000-2         	       5	 150 ns/op	24653660 B/op	  279780 allocs/op
BenchmarkList/floor-2                  	       5	 100 ns/op
BenchmarkIdle-2                        	       1	  16 heap-MiB
BenchmarkPaced/lopen-2                 	       5	 50000 ns/op	 900 p50-ns
PASS
`)
	f := figures(out)
	require.Equal(t, 150.0, f["List/sessions=10000 ns/op"])
	require.Equal(t, 900.0, f["Paced/lopen p50-ns"])
	rows := pair([]map[string]float64{f, f})
	require.Len(t, rows, 2, "what has no other is no row")
	require.Equal(t, "List of 10,000 sessions", rows[0].Work)
	require.Equal(t, []float64{150, 100, 1.5}, []float64{rows[0].Figure, rows[0].OtherFigure, rows[0].Value})
	require.Equal(t, 16.0, rows[1].Value)
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
