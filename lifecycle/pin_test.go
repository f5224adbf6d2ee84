package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// Once the call has returned, a pin that was set or removed survives a power cut. This holds
// for the pin of a checkpoint and for the pin of a session.
func TestPinsAreDurable(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	require.NoError(t, sess.Flush(t.Context()))
	for _, pinned := range []bool{true, false} {
		require.NoError(t, store.SetMeta(t.Context(), sess.ID(), func(m *lifecycle.Meta) error { m.Pinned = pinned; return nil }))
		require.NoError(t, sess.PinCheckpoint(t.Context(), ids[0], pinned))
		after, err := lifecycle.OpenOn(disk.Crash(crashfs.Variant{}).FS(), simOptions)
		require.NoError(t, err)
		require.Equal(t, pinned, cps(t, after)[0].Pinned)
		m, err := after.Meta(sess.ID())
		require.NoError(t, err)
		require.Equal(t, pinned, m.Pinned)
		require.NoError(t, after.Close(t.Context()))
	}
	require.NoError(t, store.Close(t.Context()))
}
