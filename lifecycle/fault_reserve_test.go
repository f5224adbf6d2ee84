package lifecycle_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A disk that is full until the reserve goes: the newest State is durable all the
// same, and the pause says so.
func TestFault09ReserveIsGivenUp(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	const reserve = ".lopen/ballast"
	require.NoError(t, writer.ReplaceFile(b.disk.FS(), reserve, []byte("room"), 0o600))
	b.fail(func(op crashfs.Op) bool {
		_, err := b.disk.FS().Lstat(reserve)
		return op.Call == "write" && err == nil
	}, errnoOf(syscall.ENOSPC))
	accepted(t, b.save(10))
	paused := pausedBy(t, b.sync(), lifecycle.ClassNoSpace, syscall.ENOSPC)
	require.True(t, paused.Durable)
	require.Equal(t, 2, b.found(t))
	b.acked.state = 2
	b.survives(t)
	require.NoError(t, b.unpause())
	require.NoError(t, b.close())
}
