package lifecycle_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A lockedBuffer takes the log of several goroutines and is read meanwhile.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // Guarded by mu.
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// What is released is read again, and nothing is forgotten with it: neither what was
// last seen of the files nor whose work they are.
func TestRelease(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	store, err := lifecycle.InitOn(crashfs.New(crashfs.Ext4).FS(), lifecycle.Options{Now: simOptions.Now, Logger: zerolog.New(&log)})
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "auth")
	dir := store.Project()
	put(t, dir, "mine", "1")
	changes, err := sess.Look(t.Context())
	require.NoError(t, err)
	require.Len(t, changes, 1)

	require.NoError(t, sess.Release())
	put(t, dir, "also", "1")
	changes, err = sess.Look(t.Context())
	require.NoError(t, err)
	require.Len(t, changes, 1, "since the last look, not since the last checkpoint")
	require.Equal(t, "also", changes[0].Path)

	require.NoError(t, sess.Release())
	put(t, dir, "third", "1")
	_, changes, err = sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)
	require.Len(t, changes, 1)

	require.NoError(t, sess.Release())
	dry := both
	dry.DryRun = true
	would, err := sess.Rewind(t.Context(), ids[0], dry)
	require.NoError(t, err)
	did, err := sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Equal(t, would.Changes, did.Changes)
	require.Equal(t, "0", got(t, dir, "a"))
	require.Equal(t, "1", got(t, dir, "mine"), "it is not the loop's")
	require.NoError(t, sess.Release())
	require.NoError(t, sess.Release(), "nothing is held")
	require.NoError(t, store.Close(t.Context()))
	require.Regexp(t, `"read":\d+,"held":[1-9]\d*,"message":"manifests released"`, log.String(), "doing it took what looking had read")
}

// A look that finds nothing new writes nothing: a loop looks before and after every
// task.
func TestLookWritesOnce(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, _ := agentWorked(t, store, "auth")
	look := func() (changes, writes int) {
		disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 && strings.Contains(op.Name, "files.json") {
				writes++
			}
			return crashfs.Fault{}
		}))
		defer disk.SetHook(nil)
		found, err := sess.Look(t.Context())
		require.NoError(t, err)
		return len(found), writes
	}
	changes, writes := look()
	require.Zero(t, changes+writes, "the checkpoint knows it")
	put(t, store.Project(), "a", "mine")
	changes, writes = look()
	require.Equal(t, 1, changes)
	require.NotZero(t, writes)
	changes, writes = look()
	require.Zero(t, changes+writes)
	require.NoError(t, sess.Release())
	changes, writes = look()
	require.Zero(t, changes+writes)
	require.NoError(t, store.Close(t.Context()))
}

// While a manifest cannot be read nobody knows which contents it needs: none is
// removed.
func TestUnreadManifestKeepsAllContents(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	require.NoError(t, sess.Close(t.Context()))
	other := made(t, store, "other")
	write(t, path(store, "sessions", sess.ID().String(), "checkpoints", ids[0].String(), "manifest.json"), "{")
	before, err := filepath.Glob(path(store, "blobs", "*", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, before)
	_, err = store.Delete(t.Context(), other)
	require.NoError(t, err)
	after, err := filepath.Glob(path(store, "blobs", "*", "*"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}
