package main

import (
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/wal"
	bolt "go.etcd.io/bbolt"

	"github.com/lopen-dev/lopen/bench/fusedisk"
	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// TestMain lets the test's program be the disk, too.
func TestMain(m *testing.M) {
	if ran, err := fusedisk.Serve(); ran {
		exit(err)
	}
	os.Exit(m.Run())
}

// TestPeersStore checks that each contender keeps what it is measured for: a figure of
// one that does not would be worth nothing.
func TestPeersStore(t *testing.T) {
	const tasks, steps = 12, 5
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p, err := k.Open(dir, tasks)
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
			if k.Name == Ours {
				requireLopen(t, dir, steps)
			}
			require.NoError(t, p.Close())
			last := workload.StepOf(steps-1, tasks)
			switch k.Name {
			case Ours:
			case Floor:
				info, err := os.Stat(filepath.Join(dir, "log"))
				require.NoError(t, err)
				require.EqualValues(t, steps*recordBytes+len("hello"), info.Size())
			case "bbolt":
				requireBolt(t, dir, last)
			case "SQLite FULL", "SQLite NORMAL":
				requireSQLite(t, dir, last, steps)
			case "tidwall/wal":
				l, err := wal.Open(dir, nil)
				require.NoError(t, err)
				data, err := l.Read(steps)
				require.NoError(t, err)
				requireChange(t, data, last)
				require.NoError(t, l.Close())
			case "raft-wal":
				// Close leaves the log's metadata locked, so a copy is opened.
				again := t.TempDir()
				require.NoError(t, os.CopyFS(again, os.DirFS(dir)))
				l, err := raftwal.Open(again)
				require.NoError(t, err)
				var entry raft.Log
				require.NoError(t, l.GetLog(steps, &entry))
				requireChange(t, entry.Data, last)
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

func requireChange(t *testing.T, data []byte, last workload.Step) {
	t.Helper()
	var c change
	require.NoError(t, json.Unmarshal(data, &c))
	require.Equal(t, taskOf(last.Task, last.Attempts), c.Task)
	require.Equal(t, &oneIteration, c.Iteration)
}

func requireLopen(t *testing.T, dir string, steps int) {
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
	n := 0
	for m, err := range store.Messages(infos[0].ID) {
		require.NoError(t, err)
		require.Equal(t, session.Text("hello"), m.Content)
		n++
	}
	require.Equal(t, 1, n)
}

func requireBolt(t *testing.T, dir string, last workload.Step) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "state.db"), 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		var have task
		require.NoError(t, json.Unmarshal(tx.Bucket(tasksBucket).Get(binary.BigEndian.AppendUint32(nil, uint32(last.Task))), &have))
		require.Equal(t, taskOf(last.Task, last.Attempts), have)
		return nil
	}))
}

func requireSQLite(t *testing.T, dir string, last workload.Step, steps int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db"))
	require.NoError(t, err)
	defer db.Close()
	var attempts, iterations int
	var mode string
	require.NoError(t, db.QueryRow("SELECT attempts, (SELECT count(*) FROM iterations) FROM tasks WHERE n = ?", last.Task).Scan(&attempts, &iterations))
	require.NoError(t, db.QueryRow("PRAGMA journal_mode").Scan(&mode))
	require.Equal(t, []any{last.Attempts, steps, "wal"}, []any{attempts, iterations, mode})
}

// TestDisk checks the disk that everybody is held back by.
func TestDisk(t *testing.T) {
	d := disk(t)
	before, err := d.Counts()
	require.NoError(t, err)
	p, err := openFloor(d.Dir, 0)
	require.NoError(t, err)
	require.NoError(t, d.Hold(30*time.Millisecond))
	begun := time.Now()
	require.NoError(t, p.Save(workload.Step{}))
	require.GreaterOrEqual(t, time.Since(begun), 30*time.Millisecond)
	require.NoError(t, d.Hold(0))
	begun = time.Now()
	require.NoError(t, d.Stall(60*time.Millisecond))
	require.NoError(t, p.Save(workload.Step{}))
	require.GreaterOrEqual(t, time.Since(begun), 60*time.Millisecond)
	after, err := d.Counts()
	require.NoError(t, err)
	require.Equal(t, fusedisk.Counts{Fsyncs: 3, Bytes: 2 * recordBytes}, fusedisk.Counts{Fsyncs: after.Fsyncs - before.Fsyncs, Bytes: after.Bytes - before.Bytes}, "the folder's, and two")
	require.NoError(t, p.Close())
}

func disk(t *testing.T) *fusedisk.Disk {
	t.Helper()
	d, err := fusedisk.Mount(t.TempDir())
	if err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestMeasure runs everything but the Go benchmarks once, small, and reads what was
// written.
func TestMeasure(t *testing.T) {
	scale := Scale{Budget: time.Minute, Rounds: 2, Turn: time.Millisecond, Paced: 20 * time.Millisecond, Sizes: []int{10, 200}, Triggers: 20, Hold: time.Millisecond, Stall: 100 * time.Millisecond, Iterations: 20, Sessions: 2}
	res, err := measure(scale, t.TempDir(), "", t.Logf)
	require.NoError(t, err)
	out := t.TempDir()
	require.NoError(t, res.write(out, ""))
	var back Results
	data, err := os.ReadFile(filepath.Join(out, "results.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &back))
	page, err := os.ReadFile(filepath.Join(out, "RESULTS.md"))
	require.NoError(t, err)
	for _, table := range back.Tables {
		require.Contains(t, string(page), "## "+table.Title)
		require.NotEmpty(t, table.Rows)
		for _, r := range table.Rows {
			require.NotEmpty(t, r.Durable, "%s in %s", r.Name, table.Title)
			require.LessOrEqual(t, r.P50, r.Max)
		}
	}
	for _, chart := range []string{"durable-by-size.svg", "burst.svg", "caller-waits.svg"} {
		info, err := os.Stat(filepath.Join(out, chart))
		require.NoError(t, err)
		require.NotZero(t, info.Size())
	}
}

// TestPeople runs what people notice once, small, and puts it where a readme has its
// marks.
func TestPeople(t *testing.T) {
	b := &bench{dir: t.TempDir(), until: time.Now(), Scale: Scale{Rounds: 2, Home: Home{30, 3, 200 << 10}}}
	require.NoError(t, b.people(".."))
	res := &Results{Scale: b.Scale}
	for _, table := range b.tables {
		table.finish()
		require.Equal(t, Ours, table.Rows[0].Name, table.Title)
	}
	res.Tables = b.tables
	readme := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(readme, []byte("before\n"), 0o600))
	require.Error(t, res.intoReadme(readme), "there are no marks")
	require.NoError(t, os.WriteFile(readme, []byte("before\n"+readmeBegin+"\nof another run\n"+readmeEnd+"\nafter\n"), 0o600))
	require.NoError(t, res.intoReadme(readme))
	once, err := os.ReadFile(readme)
	require.NoError(t, err)
	require.NoError(t, res.intoReadme(readme))
	again, err := os.ReadFile(readme)
	require.NoError(t, err)
	require.Equal(t, string(once), string(again))
	require.NotContains(t, string(once), "of another run")
	require.Regexp(t, "(?s)^before\n<!--.*`lopen session list`, 3 sessions.*-->\nafter\n$", string(once))
}
