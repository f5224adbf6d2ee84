package lifecycle_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/journal"
)

// everyFile makes a small session that has every kind of file: it was recovered, has a
// name, two holders, a checkpoint, a snapshot, messages and events.
func everyFile(t *testing.T) (project string, id session.ID) {
	t.Helper()
	project = memory(t)
	store := storeWith(t, project, lifecycle.Policy{Interval: 4})
	write(t, filepath.Join(project, "a"), "a")
	first := create(t, store, "m")
	_, _, err := first.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, first.Close(t.Context()))
	r, err := store.Recover(t.Context(), first.ID().String(), "", false)
	require.NoError(t, err)
	for n := range 2 {
		sess, err := store.Open(r.ID)
		require.NoError(t, err)
		says(t, sess, fmt.Sprintf("m%d", n))
		require.NoError(t, sess.AppendEvent([]byte(`{"e":1}`)))
		require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
			e.Put(session.Task{ID: "t", Kind: session.KindTask, State: session.TaskPending, Attempts: n})
			e.SetRoots([]string{"t"})
			e.AppendIteration(session.Iteration{Task: "t", StartedAt: day})
			return nil
		}))
		if n == 1 {
			m, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
			require.NoError(t, err)
			require.NoError(t, sess.PinCheckpoint(t.Context(), m.ID, true))
			require.NoError(t, sess.Pause(t.Context(), session.TriggerPaused, session.ExitPaused))
		}
		require.NoError(t, sess.Close(t.Context()))
	}
	require.NoError(t, store.SetMeta(t.Context(), r.ID, func(m *lifecycle.Meta) error {
		m.Name, m.Pinned = "n", true
		return nil
	}))
	return project, r.ID
}

// requireGaps requires that each record that Log leaves out is in a gap, but for those at a torn end.
func requireGaps(t *testing.T, store *lifecycle.Store, id session.ID, last uint64, at int) {
	t.Helper()
	gaps, err := store.Gaps(id)
	require.NoError(t, err)
	there := map[uint64]bool{}
	if err := store.Log(id, 0, func(r record.Record) error { there[r.Seq] = true; return nil }); err != nil {
		return // which says that something is damaged
	}
	if _, seq, err := store.Read(id); err == nil {
		last = seq
	} else if !there[last] && len(gaps) == 0 {
		return
	}
	for n := uint64(1); n <= last; n++ {
		require.Equal(t, !there[n], slices.ContainsFunc(gaps, func(g journal.Gap) bool { return g.Has(n) }), "byte %d, record %d: %v", at, n, gaps)
	}
}

// Verify reports each bit that is flipped in a session's files. With -deep the test flips
// one bit of each byte; without, one bit of each eleventh byte.
func TestVerifyNoticesEveryFlip(t *testing.T) {
	t.Parallel()
	project, id := everyFile(t)
	folder := filepath.Join(".lopen/sessions", id.String())
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(filepath.Join(project, folder), func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		file, _ := filepath.Rel(filepath.Join(project, folder), name)
		files[filepath.ToSlash(file)] = string(data)
		return err
	}))
	const chain = "../../checkpoints/main.jsonl"
	data, err := os.ReadFile(filepath.Join(project, folder, chain))
	require.NoError(t, err)
	files[chain] = string(data)
	type place struct {
		file string
		at   int
	}
	var places []place
	for file, content := range files {
		end := len(strings.TrimRight(content, "\x00")) // segments are filled ahead
		for i := range content {
			if i < end+100 && i%every(11) == 0 || i%4096 == 0 {
				places = append(places, place{file, i})
			}
		}
	}
	untouched, err := lifecycle.Open(project, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	whole, err := untouched.Verify(id)
	require.NoError(t, err)
	require.Empty(t, whole.Faults)
	require.NoError(t, untouched.Close(t.Context()))
	var next atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	missed := map[string][]int{}
	for range runtime.GOMAXPROCS(0) {
		copied := memory(t)
		require.NoError(t, os.CopyFS(copied, os.DirFS(project)))
		store, err := lifecycle.Open(copied, lifecycle.Options{Now: clock()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close(context.Background()) })
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(places)); i = next.Add(1) - 1 {
				p := places[i]
				name := filepath.Join(copied, folder, p.file)
				data := []byte(files[p.file])
				data[p.at] ^= 1 << (p.at % 8)
				write(t, name, string(data))
				r, err := store.Verify(id)
				require.NoError(t, err)
				if r.Condition == repair.Intact && len(r.Faults) == 0 { // one behind the last record of a segment is reported, and costs nothing
					mu.Lock()
					missed[p.file] = append(missed[p.file], p.at)
					mu.Unlock()
				}
				if strings.HasPrefix(p.file, "journal") {
					requireGaps(t, store, id, whole.Seq, p.at)
				}
				write(t, name, files[p.file])
			}
		})
	}
	wg.Wait()
	delete(missed, ".lock") // a record for messages: what holds the session is the lock on the file
	for file, all := range missed {
		if end := strings.LastIndexByte(strings.TrimSuffix(files[file], "\n"), '\n'); file == chain && slices.Min(all) > end {
			continue // a last line that no journal names, the pin, looks as a crash leaves one
		}
		if strings.HasPrefix(file, "history/") && len(all) <= 4 {
			continue // bits that the compression does not use: the content's hash fits
		}
		slices.Sort(all)
		require.Fail(t, "not noticed", "%s: bytes %v of %.1000q", file, all, strings.TrimRight(files[file], "\x00"))
	}
}
