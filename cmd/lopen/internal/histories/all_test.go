package histories

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/agents"
)

// A shelf is a store and many histories of Claude Code.
type shelf struct {
	*world
	dir string
}

func newShelf(t *testing.T, histories int) *shelf {
	s := &shelf{&world{t: t, project: t.TempDir()}, t.TempDir()}
	for i := range histories {
		s.fill(i, 1)
	}
	return s
}

// fill appends messages to a history.
func (s *shelf) fill(i, messages int) {
	s.path = filepath.Join(s.dir, fmt.Sprintf("%08d-x.jsonl", i))
	s.write(messages)
}

func (s *shelf) histories() []agents.History {
	s.t.Helper()
	l, err := agents.Open(s.t.Context(), agents.Claude, s.t.TempDir(), s.dir)
	require.NoError(s.t, err)
	return l.Histories
}

// take imports all, and checks that the results come in the order of the histories.
func (s *shelf) take(store *lifecycle.Store) (made, messages int, failed []error) {
	s.t.Helper()
	all, n := s.histories(), 0
	for res, err := range All(s.t.Context(), store, s.index(store), all) {
		require.Equal(s.t, all[n].ID, res.ID)
		if n++; err != nil {
			failed = append(failed, err)
			require.Zero(s.t, res.Messages)
			continue
		}
		if res.Made {
			made++
			_, err := store.OfAgent(agents.Module(res.Agent, res.ID), res.ID)
			require.NoError(s.t, err, "it is there when it is said")
		}
		messages += res.Messages
	}
	require.Len(s.t, all, n)
	return made, messages, failed
}

// TestAll imports small histories, a large one, one without a message and one of another agent, and
// again when some have grown.
func TestAll(t *testing.T) {
	t.Parallel()
	const many = batchLen + 3
	s := newShelf(t, many)
	s.fill(7, small/250) // it is imported alone
	large := s.lines - many
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "empty.jsonl"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "blank.jsonl"), []byte("\n\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "other.jsonl"), []byte(`{"type":"session_meta"}`+"\n"), 0o600))
	store := s.store()
	made, messages, failed := s.take(store)
	require.Equal(t, []int{many, many + large}, []int{made, messages})
	require.Len(t, failed, 2)
	require.ErrorContains(t, failed[0], "not a history of claude")
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, many)
	for _, info := range infos {
		require.NoError(t, info.Err)
		report, err := store.Verify(info.ID)
		require.NoError(t, err)
		require.Empty(t, report.Faults)
	}

	made, messages, _ = s.take(store)
	require.Zero(t, made+messages)
	s.fill(1, 2)
	s.fill(many, 3)
	made, messages, _ = s.take(store)
	require.Equal(t, []int{1, 5}, []int{made, messages})
}

// TestAllAtOnce imports the same histories with several stores at once. Each has one session, with
// everything once.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	const many = 16
	s := newShelf(t, many)
	var wg sync.WaitGroup
	for range 3 {
		store, all := s.store(), s.histories()
		x := s.index(store)
		wg.Go(func() {
			for _, err := range All(context.Background(), store, x, all) {
				if err != nil {
					assert.ErrorIs(t, err, lifecycle.ErrBusy)
				}
			}
		})
	}
	wg.Wait()
	store := s.store()
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, many)
	_, messages, failed := s.take(store)
	require.Empty(t, failed)
	require.Zero(t, messages)
	for _, info := range infos {
		st, _, err := store.Read(info.ID)
		require.NoError(t, err)
		require.EqualValues(t, 1, read(st).Messages)
	}
}

// TestAllGivenUp stops behind the first history. What was begun ends, nothing of it is left behind,
// and the next import takes the rest.
func TestAllGivenUp(t *testing.T) {
	t.Parallel()
	const many = batchLen + 10
	s := newShelf(t, many)
	store := s.store()
	for _, err := range All(t.Context(), store, s.index(store), s.histories()) {
		require.NoError(t, err)
		break
	}
	entries, err := os.ReadDir(store.Path())
	require.NoError(t, err)
	for _, e := range entries {
		require.NotContains(t, e.Name(), ".import-")
	}
	before, err := store.List()
	require.NoError(t, err)
	made, messages, failed := s.take(store)
	require.Empty(t, failed)
	require.Equal(t, many, len(before)+made)
	require.Equal(t, made, messages)
}
