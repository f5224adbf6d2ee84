package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// What the checkpoints take is bounded, the oldest but the session's first one go first, and the room is there at
// once: a disk that fills up at night must not wait for the end of the run.
func TestCheckpointsAreBounded(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	const limit = 4*size + 32<<10
	store := storeWith(t, t.TempDir(), lifecycle.Policy{CheckpointBytes: limit})
	sess := create(t, store, "auth")
	noise := rand.NewChaCha8([32]byte{})
	for i := range 6 {
		content := make([]byte, size)
		_, _ = noise.Read(content)
		put(t, store.Project(), "a", string(content))
		_, changes, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
		if i > 0 {
			require.Len(t, changes, 1)
		}
		taken := int64(0)
		for _, n := range blobFiles(t, store) {
			taken += n
		}
		require.LessOrEqual(t, taken, int64(limit))
		usage, err := store.CheckpointUsage()
		require.NoError(t, err)
		lock, err := os.Stat(path(store, "blobs", ".lock"))
		require.NoError(t, err)
		require.Equal(t, taken+lock.Size()+int64(len("*\n")), usage.Blobs, "to the byte")
	}
	require.Zero(t, sess.CheckpointsOver())
	var left []uint64
	for _, e := range cps(t, store) {
		left = append(left, e.Number)
	}
	require.Equal(t, []uint64{1, 4, 5, 6}, left)
	require.NoError(t, sess.Close(t.Context()))
	freed, err := store.Delete(t.Context(), sess.ID())
	require.NoError(t, err)
	require.Greater(t, freed, int64(3*size))
	require.Empty(t, blobFiles(t, store), "a deleted session's contents go with it")
}

// A content above the limit costs no checkpoint without it: while the project has the content nothing
// is removed, because that would free nothing, and then the checkpoints that have it go.
func TestAContentAboveTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 200 << 10
	store := storeWith(t, t.TempDir(), lifecycle.Policy{CheckpointBytes: limit})
	sess := create(t, store, "auth")
	numbers := func(n int, file func() string) (left []uint64) {
		for i := range n {
			put(t, store.Project(), file(), fmt.Sprint(i))
			_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
			require.NoError(t, err)
		}
		for _, e := range cps(t, store) {
			left = append(left, e.Number)
		}
		return left
	}
	numbers(4, func() string { return "a" })
	content := make([]byte, 2*limit)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // it cannot be compressed
	put(t, store.Project(), "model", string(content))
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7}, numbers(3, func() string { return "b" }))
	require.Greater(t, sess.CheckpointsOver(), int64(limit))
	require.NoError(t, os.Remove(filepath.Join(store.Project().Name(), "model")))
	require.Equal(t, []uint64{1, 2, 3, 4, 8, 9}, numbers(2, func() string { return "c" }))
	require.Zero(t, sess.CheckpointsOver())
	for name, n := range blobFiles(t, store) {
		require.Less(t, n, int64(limit), name)
	}
	require.NoError(t, sess.Close(t.Context()))
}

// What counts is what the contents take on the disk, compressed.
func TestCompressedCheckpointsCount(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	store := storeWith(t, t.TempDir(), lifecycle.Policy{CheckpointBytes: 3 * size})
	sess := create(t, store, "auth")
	for i := range 6 {
		put(t, store.Project(), "a", strings.Repeat(fmt.Sprint(i), size))
		_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
	}
	require.Len(t, cps(t, store), 6)
	require.NoError(t, sess.Close(t.Context()))
}

// Whatever the policy allows, the checkpoints leave most of the disk to others.
func TestCheckpointsLeaveRoom(t *testing.T) {
	t.Parallel()
	store := storeWith(t, t.TempDir(), lifecycle.Policy{CheckpointBytes: 1 << 60})
	free, err := writer.FreeBytes(store.Path())
	if err != nil {
		t.Skip(err)
	}
	sess := create(t, store, "auth")
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	all, err := store.Checkpoints(nil)
	require.NoError(t, err)
	defer all.Close()
	limit, err := store.CheckpointLimit(all)
	require.NoError(t, err)
	require.Less(t, uint64(limit), free/5, "a tenth, but for what others write meanwhile")
	require.NoError(t, sess.Close(t.Context()))
}

// What undo needs stays, even if it alone exceeds the limit. This is reported.
func TestCheckpointsThatMustStay(t *testing.T) {
	t.Parallel()
	store := storeWith(t, t.TempDir(), lifecycle.Policy{CheckpointBytes: 1})
	sess := create(t, store, "auth")
	put(t, store.Project(), "a", "1")
	for range 2 {
		_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
	}
	require.Positive(t, sess.CheckpointsOver())
	require.NoError(t, sess.Close(t.Context()))
}

// The limit never removes a pinned checkpoint.
func TestPinnedCheckpointsStay(t *testing.T) {
	t.Parallel()
	store := storeWith(t, t.TempDir(), lifecycle.Policy{CheckpointBytes: 1})
	sess := create(t, store, "auth")
	for i := range 5 {
		put(t, store.Project(), "a", fmt.Sprint(i))
		e, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
		if i == 0 {
			require.NoError(t, sess.PinCheckpoint(t.Context(), e.ID, true))
		}
	}
	var left []uint64
	for _, e := range cps(t, store) {
		left = append(left, e.Number)
	}
	require.Equal(t, []uint64{1, 4, 5}, left)
	require.NoError(t, sess.Close(t.Context()))
}

// On a full disk a checkpoint makes room: it removes what the limit does not keep.
func TestAFullDiskFreesOldCheckpoints(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	opts := simOptions
	store, err := lifecycle.InitOn(disk.FS(), opts)
	require.NoError(t, err)
	sess := create(t, store, "sim")
	keep := func(n int) error {
		put(t, store.Project(), "a", strings.Repeat(fmt.Sprint(n), 100<<10))
		_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		return err
	}
	for n := range 4 {
		require.NoError(t, keep(n))
	}
	require.NoError(t, store.Close(t.Context()))
	opts.Policy.CheckpointBytes = 1
	store, err = lifecycle.OpenOn(disk.FS(), opts)
	require.NoError(t, err)
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	full := true
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 && op.Call == "remove" && strings.Contains(op.Name, "blobs") && !strings.Contains(op.Name, "tmp") {
			full = false // something was freed
		}
		if full && op.Call == "create" && strings.Contains(op.Name, "blobs/") {
			return crashfs.Fault{Err: syscall.ENOSPC}
		}
		return crashfs.Fault{}
	}))
	require.NoError(t, keep(4))
	require.False(t, full)
	disk.SetHook(nil)
	require.NoError(t, store.Close(t.Context()))
}
