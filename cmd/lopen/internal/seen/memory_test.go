package seen_test

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/seen"
)

func of(state, project string) files.Memory { return seen.Of(state, project, zerolog.Nop()) }

// notes returns the paths of the notes in a state folder.
func notes(t *testing.T, state string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(state, "seen", ".lopen", "*"))
	require.NoError(t, err)
	return all
}

func TestNoted(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	one, two := [32]byte{1}, [32]byte{2}
	m := of(state, "/p")
	require.False(t, m.Noted("k", [32]byte{}), "nothing is noted")
	m.Note("k", one)
	require.True(t, of(state, "/p").Noted("k", one))
	m.Note("k", two)
	require.True(t, m.Noted("k", two))
	require.False(t, m.Noted("k", one), "the last one counts")
	require.False(t, m.Noted("other", two))
	require.False(t, of(state, "/q").Noted("k", two), "another project")
	info, err := os.Stat(notes(t, state)[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// A note that is damaged, that of another snapshot, or that cannot be written is none.
func TestDamagedNotes(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	m := of(state, "/p")
	m.Note("k", [32]byte{1})
	mine := notes(t, state)[0]
	whole, err := os.ReadFile(mine)
	require.NoError(t, err)
	m.Note("other", [32]byte{1})
	for n := range whole {
		if n < len(whole)-2 { // but for the line feed, a cut is noticed
			require.NoError(t, os.WriteFile(mine, whole[:n], 0o600))
			require.False(t, m.Noted("k", [32]byte{1}), "%d bytes", n)
		}
	}
	for _, name := range notes(t, state) {
		if name != mine {
			require.NoError(t, os.Rename(name, mine))
		}
	}
	require.False(t, m.Noted("k", [32]byte{1}), "it is about another snapshot")
	m.Note("k", [32]byte{1})
	require.True(t, m.Noted("k", [32]byte{1}), "it is mended")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	of(file, "/p").Note("k", [32]byte{1})
	require.False(t, of(file, "/p").Noted("k", [32]byte{1}))
}

// Processes that note at once leave one of their notes whole.
func TestNotedAtOnce(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			m := of(state, "/p")
			m.Note("k", [32]byte{byte(n)})
			m.Note(string(rune('a'+n)), [32]byte{byte(n)})
		})
	}
	group.Wait()
	whole := 0
	for n := range 8 {
		require.True(t, of(state, "/p").Noted(string(rune('a'+n)), [32]byte{byte(n)}))
		if of(state, "/p").Noted("k", [32]byte{byte(n)}) {
			whole++
		}
	}
	require.Equal(t, 1, whole)
}

// What nobody replaced for long goes when something new is noted.
func TestOldNotesGo(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	m := of(state, "/p")
	m.Note("old", [32]byte{1})
	long := time.Now().AddDate(0, -6, 0)
	require.NoError(t, os.Chtimes(notes(t, state)[0], long, long))
	m.Note("new", [32]byte{1})
	require.False(t, m.Noted("old", [32]byte{1}))
	m.Note("other", [32]byte{1})
	require.True(t, m.Noted("new", [32]byte{1}))
	require.Len(t, notes(t, state), 2)
}

// A note that another user could have written is none.
func TestNotesOfOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("who may write is not known")
	}
	state := t.TempDir()
	m := of(state, "/p")
	m.Note("k", [32]byte{1})
	require.NoError(t, os.Chmod(notes(t, state)[0], 0o602))
	require.False(t, m.Noted("k", [32]byte{1}))
	require.NoError(t, os.Chmod(notes(t, state)[0], 0o600))
	require.True(t, m.Noted("k", [32]byte{1}))
}
