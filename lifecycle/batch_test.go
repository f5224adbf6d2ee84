package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

var batched = []string{"claude-a", "claude-b", "claude-a"}

// placeBatch makes a session of each module with four messages and an event, and places them.
func placeBatch(ctx context.Context, store *lifecycle.Store) (err error) {
	b, err := store.Batch(ctx, batched)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for i := range batched {
		sess, err := b.Create(i, fmt.Sprint("of the agent ", i), "it has a name", func(h *session.Header) {
			h.Origin, h.Status, h.Phase, h.ExitReason = session.OriginImport, session.StatusComplete, session.PhaseComplete, session.ExitComplete
		})
		if err != nil {
			return err
		}
		for n := range 4 {
			err = errors.Join(err, sess.Append(&session.Message{ID: fmt.Sprint("m", n), Role: session.RoleUser, Content: session.Text(strings.Repeat("x", 700))}))
		}
		err = errors.Join(err, sess.AppendEvent([]byte(`{"type":"mode"}`)), sess.Sync(ctx), sess.Close(ctx))
		if err != nil {
			return err
		}
	}
	_, err = b.Place(ctx, func(int) bool { return true })
	return err
}

// requireBatch checks that each session that is visible is whole, and returns how many there are.
func requireBatch(t *testing.T, store *lifecycle.Store) int {
	t.Helper()
	infos, err := store.List()
	require.NoError(t, err)
	for _, info := range infos {
		requireIntact(t, store, info.ID)
		meta, err := store.Meta(info.ID)
		require.NoError(t, err)
		require.Equal(t, "it has a name", meta.Name)
		require.Equal(t, session.StatusComplete, info.Status)
		n := 0
		for _, err := range store.Messages(info.ID) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 4, n)
	}
	return len(infos)
}

// TestPowerCutInABatch cuts the power at every call: a session is there whole or not at all, and all
// are once Place has returned. What is left is cleared by the next batch.
func TestPowerCutInABatch(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	var points []*crashfs.Disk
	places := 0 // the point from which on sessions come into place
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 {
			points = append(points, disk.Snapshot())
		}
		if places == 0 && op.Call == "rename" && strings.HasPrefix(op.Name, lifecycle.Dir+"/sessions/claude-") {
			places = len(points)
		}
		return crashfs.Fault{}
	}))
	require.NoError(t, placeBatch(t.Context(), store))
	disk.SetHook(nil)
	require.NotZero(t, places)
	points = append(points, disk.Snapshot())
	require.NoError(t, store.Close(t.Context()))
	seen := map[int]int{}
	for i, p := range points {
		if i < places-1 && i%every(8) != 0 {
			continue
		}
		for k, v := range outcomes(p, i) {
			if i < places-1 && k%every(4) != 0 {
				continue
			}
			crashStates.Add(1)
			after, err := lifecycle.OpenOn(p.Crash(v).FS(), simOptions)
			require.NoError(t, err)
			n := requireBatch(t, after)
			seen[n]++
			if i == len(points)-1 {
				require.Equal(t, len(batched), n, v.Name)
			}
			_, err = after.Prune(t.Context(), lifecycle.Retention{}, false)
			require.NoError(t, err)
			for _, name := range visible(t, after) {
				require.NotContains(t, name, ".import-")
			}
			require.NoError(t, after.Close(t.Context()))
		}
	}
	require.NotZero(t, seen[0])
	require.NotZero(t, seen[1]+seen[2], "some come alone")
	require.NotZero(t, seen[len(batched)])
}

// TestBatchOnABadDisk fails each call: what is visible is whole, and is all unless an error says
// otherwise. The next batch works.
func TestBatchOnABadDisk(t *testing.T) {
	t.Parallel()
	for n, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for k, ended := uint64(1), false; !ended; k++ {
			if !*deep && k%8 != uint64(n)*4 {
				continue
			}
			disk := crashfs.New(crashfs.Ext4)
			store, err := lifecycle.InitOn(disk.FS(), simOptions)
			require.NoError(t, err)
			call, n := "", uint64(0)
			disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
				if op.N == 0 || op.Call == "remove" || op.Call == "removeall" || strings.Contains(op.Name, "segments") { // a full disk may have no list
					return crashfs.Fault{}
				}
				if n++; n == k {
					call = op.Call + " " + op.Name
					return crashfs.Fault{Err: fault}
				}
				return crashfs.Fault{}
			}))
			err = placeBatch(context.Background(), store)
			disk.SetHook(nil)
			ended = call == ""
			there := requireBatch(t, store)
			if err == nil {
				require.Equal(t, len(batched), there, call)
			}
			for _, name := range visible(t, store) {
				require.NotContains(t, name, ".import-", call)
			}
			_ = store.Close(context.Background()) // says again what is wrong with a session
			after, err := lifecycle.OpenOn(disk.Crash(crashfs.Variant{}).FS(), simOptions)
			require.NoError(t, err)
			requireBatch(t, after)
			require.NoError(t, placeBatch(context.Background(), after), call)
			require.NoError(t, after.Close(context.Background()))
		}
	}
}
