package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/workload"
)

// TestPeersStore checks that each contender keeps what it is measured for: a figure of
// one that does not would be worth nothing.
func TestPeersStore(t *testing.T) {
	t.Parallel()
	const tasks, steps = 12, 5
	last := workload.StepOf(steps-1, tasks)
	for _, c := range open(t, t.TempDir(), tasks, contenders...) {
		for i := range steps {
			s := workload.StepOf(i, tasks)
			s.Iteration = true
			require.NoError(t, c.Save(s), c.key)
		}
		c.say("hello")
		c.end()
		kept := contents(t, c.dir)
		require.Contains(t, kept, "hello", c.key)
		switch c.key {
		case "append":
			require.Len(t, kept, steps*recordBytes+len("hello"))
			continue
		case "lopen":
			require.Contains(t, kept, fmt.Sprintf(`"attempts":%d`, last.Attempts))
			require.Contains(t, kept, fmt.Sprintf(`"totals":{"iterations":%d,`, steps))
			continue
		case "sqlite-full", "sqlite-normal":
			require.Equal(t, "\x02\x02", kept[18:20], "a database in write-ahead mode")
		}
		require.Contains(t, kept, string(taskItem(last.Task, last.Attempts).value), c.key)
		require.GreaterOrEqual(t, strings.Count(kept, string(must(json.Marshal(oneIteration)))), steps, c.key)
	}
}

// contents are those of all files below a folder.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all []byte
	require.NoError(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		data, _ := os.ReadFile(name) // a folder has none
		all = append(all, data...)
		return err
	}))
	return string(all)
}

// TestReport reads what benchmarks print and looks at what is written about it.
func TestReport(t *testing.T) {
	t.Parallel()
	r := &Results{Machine: map[string]string{"machine": "a quiet one"}}
	for _, slow := range []string{"1", "10", "1"} { // a machine that is ten times slower in one round: ratios do not move
		figures := map[string]float64{}
		read([]byte(`goos: linux
BenchmarkList-2         	       5	 15`+slow+` lopen-p50-ns	 100`+slow+` read-p50-ns	 900 lopen-p99-ns
BenchmarkSave/stalled-2 	       5	 20 tasks=10-p50-ns	 700 tasks=10-p99-ns
BenchmarkIdle-2         	       1	 16 heap-MiB
BenchmarkPeerStall-2    	       1	 90 lopen-saves	 0 bbolt-saves
BenchmarkPeerDurable/tasks=40-2 	 1	 2000 lopen-p50-ns	 6000 bbolt-p50-ns	 3000 channel-p50-ns
PASS
`), figures)
		r.Rounds = append(r.Rounds, figures)
	}
	dir := t.TempDir()
	readme := filepath.Join(dir, "README.md")
	require.NoError(t, os.WriteFile(readme, []byte("before\n"), 0o600))
	require.Error(t, r.write(dir, readme), "there are no marks")
	marked := "before\n<!-- written by make bench: begin -->\nof another run\n<!-- written by make bench: end -->\nafter\n"
	require.NoError(t, os.WriteFile(readme, []byte(marked), 0o600))
	require.NoError(t, r.write(dir, readme))
	page, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	require.NoError(t, err)
	for _, want := range []string{
		"| **List of 10,000 sessions** | 151 ns | 900 ns | 151 ns..1.51 µs | 1 | 1: kept |  |\n" +
			"| serial open, read of 1 KiB and close of each | 1 µs |  | 1 µs..10 µs | 0.151 |  |  |\n",
		"| **Save back to back, a commit hangs, 10 tasks** | 20 ns | 700 ns | 20 ns..20 ns | 1 | 100 ns, p99 500 ns: **missed** |  |\n",
		"| **Heap of 1,000 live idle sessions, MiB** | 16 |  | 16..16 | 1 | 20: kept |  |\n",
		"| not measured: Allocations of a Save |",
		"| bbolt | 0 |  | 0..0 |  |  | durable |\n",
		"| model: channel of 256 | 3 µs |  | 3 µs..3 µs | 0.667 |  | **not durable**: survives a crash of the process |\n",
	} {
		require.Contains(t, string(page), want)
	}
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	require.NotContains(t, string(text), "of another run")
	require.Regexp(t, "(?s)^before\n<!--.*One save of a plan of 40 tasks until durable:\n\n- lopen: \\*\\*2 µs\\*\\*.*- not measured\n.*-->\nafter\n$", string(text))
	data, err := os.ReadFile(filepath.Join(dir, "results.json"))
	require.NoError(t, err)
	again := new(Results)
	require.NoError(t, json.Unmarshal(data, again))
	require.Equal(t, r, again)
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 1.234: "1.23", 99.94: "99.9", 100.4: "100", 1234567: "1,234,567"} {
		require.Equal(t, want, number(v))
	}
	for ns, want := range map[float64]string{80: "80 ns", 1500: "1.5 µs", 2.5e6: "2.5 ms", 3e10: "30 s"} {
		require.Equal(t, want, row{}.amount(ns))
	}
	require.Equal(t, "2.0 KiB", row{stat: "bytes"}.amount(2048))
}
