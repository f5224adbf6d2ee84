package bench

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// What must hold on any machine, however fast it is. None of these tests is parallel:
// they count what the process does.

func TestSaveAllocates(t *testing.T) {
	st, _ := planState(t, 10)
	a := actors.Start(st, &null{}, actors.Options{})
	defer func() { require.NoError(t, a.Close(context.Background())) }()
	allocs := testing.AllocsPerRun(10_000, func() { _ = a.Save(st, session.TriggerStepCompleted) })
	require.LessOrEqual(t, allocs, 1.0)
}

// held is a Committer whose commits wait to be let go.
type held struct {
	null
	begun, letGo chan struct{}
}

func (h *held) Commit(b actors.Batch) (actors.Committed, error) {
	h.begun <- struct{}{}
	<-h.letGo
	return h.null.Commit(b)
}

// commitsAfterHeld is how many commits there are when 10,000 triggers came while the
// first one was held back.
func commitsAfterHeld(t testing.TB, st *session.State) int {
	h := &held{begun: make(chan struct{}, 8), letGo: make(chan struct{})}
	a := actors.Start(st, h, actors.Options{})
	require.NoError(t, a.Save(st, session.TriggerStepCompleted))
	<-h.begun
	for range 10_000 {
		require.NoError(t, a.Save(st, session.TriggerStepCompleted))
	}
	close(h.letGo)
	require.NoError(t, a.Sync(context.Background()))
	require.NoError(t, a.Close(context.Background()))
	return h.commits
}

func TestOneMoreCommit(t *testing.T) {
	st, _ := planState(t, 10)
	require.Equal(t, 2, commitsAfterHeld(t, st))
}

// counting is a folder that counts what a journal costs.
type counting struct {
	writer.FS
	writes, syncs *int
}

func (c counting) OpenFile(name string, flag int, perm os.FileMode) (writer.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	return countingFile{f, c}, err
}

type countingFile struct {
	writer.File
	of counting
}

func (f countingFile) WriteAt(p []byte, off int64) (int, error) {
	*f.of.writes++
	return f.File.WriteAt(p, off)
}

func (f countingFile) Write(p []byte) (int, error) {
	*f.of.writes++
	return f.File.Write(p)
}

func (f countingFile) Datasync() error {
	*f.of.syncs++
	return f.File.Datasync()
}

func (f countingFile) Sync() error {
	*f.of.syncs++
	return f.File.Sync()
}

func TestOneWriteAndOneSyncACommit(t *testing.T) {
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	var writes, syncs int
	w, err := journal.Create(counting{dir, &writes, &syncs}, "bench-20260214-1")
	require.NoError(t, err)
	writes, syncs = 0, 0
	for range 100 {
		_, err := w.Append(journal.Record{Body: []byte(`"ops":[]`)})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.Equal(t, 100, writes)
	require.Equal(t, 100, syncs)
}

// times says yes so often.
func times(n int) func() bool {
	return func() bool { n--; return n >= 0 }
}

// TestOneFsyncASave holds a busy loop to the fsyncs of its saves: what readers are shown
// meanwhile has next to none.
func TestOneFsyncASave(t *testing.T) {
	per := fsyncsOf(t, 200, times(400), func(sess *lifecycle.Session) func() { return saving(t, sess) })
	require.LessOrEqual(t, per, 1.05)
}

// TestOneFsyncAMessage holds a message that is waited for to one fsync.
func TestOneFsyncAMessage(t *testing.T) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		per := fsyncsOf(t, 200, times(100), func(sess *lifecycle.Session) func() {
			return func() {
				require.NoError(t, sess.Append(message(size)))
				require.NoError(t, sess.Sync(t.Context()))
			}
		})
		require.LessOrEqual(t, per, 1.25, "messages of %d bytes", size) // new segments and their room
	}
}

// TestBytesAChange holds the journal to the size of a change, whatever the plan's.
func TestBytesAChange(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand tasks; -short")
	}
	const steps = 20
	for _, n := range []int{10, 100_000} {
		dir := t.TempDir()
		sess := sessionIn(t, dir, n)
		before := journalBytes(t, dir)
		for i := range steps {
			require.NoError(t, sess.Change(session.TriggerStepCompleted, workload.StepOf(i, n).Apply))
			require.NoError(t, sess.Sync(t.Context()))
		}
		require.Less(t, (journalBytes(t, dir)-before)/steps, int64(500), "a change of one task of %d", n)
	}
}

func sessionIn(t testing.TB, dir string, tasks int) *lifecycle.Session {
	t.Helper()
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "bench")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close(context.Background())) })
	require.NoError(t, sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error { workload.Fill(e, tasks); return nil }))
	require.NoError(t, sess.Flush(t.Context()))
	return sess
}

func journalBytes(t testing.TB, dir string) (n int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, lifecycle.Dir, "sessions", "bench-*", "journal-*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		info, err := os.Stat(name)
		require.NoError(t, err)
		n += info.Size()
	}
	return n
}

// TestFlat compares a durable save in a small and in a large plan, in turns so that
// what else the machine does falls on both. Nested slices, or a file that is written
// whole, would be hundreds of times slower in the large one.
func TestFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand tasks; -short")
	}
	small, large := sessionIn(t, t.TempDir(), 10), sessionIn(t, t.TempDir(), 100_000)
	took := map[*lifecycle.Session][]time.Duration{}
	for i := range 60 {
		for sess, n := range map[*lifecycle.Session]int{small: 10, large: 100_000} {
			begun := time.Now()
			require.NoError(t, sess.Change(session.TriggerStepCompleted, workload.StepOf(i, n).Apply))
			require.NoError(t, sess.Sync(t.Context()))
			took[sess] = append(took[sess], time.Since(begun))
		}
	}
	median := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2]) }
	require.Less(t, median(took[large])/median(took[small]), 8.0)
}

func TestIdleSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred sessions; -short")
	}
	const sessions = 100
	heap, descriptors := idle(t, sessions)
	require.Less(t, heap/sessions, int64(20<<20/1000), "bytes of heap a session")
	require.LessOrEqual(t, descriptors, int64(3*sessions))
}

func TestBusySessions(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred sessions; -short")
	}
	const sessions = 100
	store, _, err := lifecycle.Init(t.TempDir(), lifecycle.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close(context.Background())) }()
	before := heapBytes()
	all := create(t, store, sessions, planTasks)
	for i := range 10 {
		for _, sess := range all {
			require.NoError(t, sess.Change(session.TriggerStepCompleted, workload.StepOf(i, planTasks).Apply))
		}
		for _, sess := range all {
			require.NoError(t, sess.Sync(t.Context()))
		}
	}
	require.LessOrEqual(t, (heapBytes()-before)/sessions, int64(40<<20/1000), "bytes of heap a session")
	runtime.KeepAlive(all)
}
