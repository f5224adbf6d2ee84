package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/wal"
	bolt "go.etcd.io/bbolt"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// TestPeersStore checks that each contender keeps what it is measured for: a figure of
// one that does not would be worth nothing.
func TestPeersStore(t *testing.T) {
	const tasks, steps = 12, 5
	last := workload.StepOf(steps-1, tasks)
	want := [][]byte{recordOf(taskRecord, 0, taskOf(last.Task, last.Attempts)).value, recordOf(iterationRecord, 0, oneIteration).value}
	for _, k := range contenders {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p, err := peers[k.key](dir, tasks)
			require.NoError(t, err)
			for i := range steps {
				s := workload.StepOf(i, tasks)
				s.Iteration = true
				require.NoError(t, p.Save(s))
			}
			if a, ok := p.(Appender); ok {
				require.NoError(t, a.Append("hello"))
			}
			require.NoError(t, p.Sync())
			require.NoError(t, p.Close())
			switch k.key {
			case "lopen":
				requireSession(t, dir, steps)
			case "append":
				info, err := os.Stat(filepath.Join(dir, "log"))
				require.NoError(t, err)
				require.EqualValues(t, steps*recordBytes+len("hello"), info.Size())
			case "bbolt":
				db, err := bolt.Open(filepath.Join(dir, "state.db"), 0o600, nil)
				require.NoError(t, err)
				defer db.Close()
				require.NoError(t, db.View(func(tx *bolt.Tx) error {
					require.Equal(t, tasks+steps+1, tx.Bucket(bucket).Stats().KeyN)
					require.Equal(t, string(want[0]), string(tx.Bucket(bucket).Get([]byte{taskRecord, 0, 0, 0, byte(last.Task)})))
					return nil
				}))
			case "sqlite-full", "sqlite-normal":
				db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db"))
				require.NoError(t, err)
				defer db.Close()
				var value, mode string
				var n int
				require.NoError(t, db.QueryRow("SELECT value, (SELECT count(*) FROM records) FROM records WHERE kind = ? AND key = ?", taskRecord, last.Task).Scan(&value, &n))
				require.NoError(t, db.QueryRow("PRAGMA journal_mode").Scan(&mode))
				require.Equal(t, []any{string(want[0]), tasks + steps + 1, "wal"}, []any{value, n, mode})
			case "tidwall":
				l, err := wal.Open(dir, nil)
				require.NoError(t, err)
				data, err := l.Read(steps)
				require.NoError(t, err)
				require.Equal(t, string(bytes.Join(want, nil)), string(data))
				require.NoError(t, l.Close())
			case "raft-wal":
				// Close leaves the log's metadata locked, so a copy is opened.
				again := t.TempDir()
				require.NoError(t, os.CopyFS(again, os.DirFS(dir)))
				l, err := raftwal.Open(again)
				require.NoError(t, err)
				var entry raft.Log
				require.NoError(t, l.GetLog(steps, &entry))
				require.Equal(t, string(bytes.Join(want, nil)), string(entry.Data))
				require.NoError(t, l.Close())
			default:
				var doc document
				data, err := os.ReadFile(stateFile(dir))
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(data, &doc))
				require.Equal(t, last.Attempts, doc.Tasks[last.Task].Attempts)
				require.Len(t, doc.Iterations, steps)
			}
		})
	}
}

func requireSession(t *testing.T, dir string, steps int) {
	t.Helper()
	store, err := lifecycle.Open(dir, lifecycle.Options{})
	require.NoError(t, err)
	defer store.Close(t.Context())
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	st, _, err := store.Read(infos[0].ID)
	require.NoError(t, err)
	require.Equal(t, steps, st.NumIterations())
	var contents []any
	for m, err := range store.Messages(infos[0].ID) {
		require.NoError(t, err)
		contents = append(contents, m.Content)
	}
	require.Equal(t, []any{session.Text("hello")}, contents)
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
		"| List of 10,000 sessions | **151 ns**, p99 900 ns | serial open, read of 1 KiB and close of each: **1 µs** | 0.151 | 1 | kept |\n",
		"| Save back to back, a commit hangs, 10 tasks | **20 ns**, p99 700 ns |  |  | 100 ns, p99 500 ns | **missed** |\n",
		"| Heap of 1,000 live idle sessions, MiB | **16** |  |  | 20 | kept |\n",
		"| Allocations of a Save | not measured |",
		"| bbolt | 0 | 0..0 | 0 | durable |\n",
		"| model: channel of 256 | 3 µs | 3 µs..3 µs | 1.5 | **not durable**: survives a crash of the process |\n",
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
	require.NoError(t, again.write(dir, readme))
	twice, err := os.ReadFile(readme)
	require.NoError(t, err)
	require.Equal(t, string(text), string(twice))
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
