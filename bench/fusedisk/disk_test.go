package fusedisk_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/fusedisk"
)

// TestMain lets the test's program be the disk, too.
func TestMain(m *testing.M) { fusedisk.Main(m.Run) }

func TestDisk(t *testing.T) {
	t.Parallel()
	d := fusedisk.Mount(t)
	f, err := os.Create(filepath.Join(d.Dir, "log"))
	require.NoError(t, err)
	save := func() time.Duration {
		_, err := f.WriteString("a record")
		require.NoError(t, err)
		begun := time.Now()
		require.NoError(t, f.Sync())
		return time.Since(begun)
	}
	before, err := d.Counts()
	require.NoError(t, err)
	require.NoError(t, d.Hold(30*time.Millisecond))
	require.GreaterOrEqual(t, save(), 30*time.Millisecond)
	require.NoError(t, d.Hold(0))
	require.NoError(t, d.Stall(60*time.Millisecond))
	require.GreaterOrEqual(t, save(), 50*time.Millisecond, "the stall has begun already")
	folder, err := os.Open(d.Dir)
	require.NoError(t, err)
	require.NoError(t, folder.Sync())
	require.NoError(t, folder.Close())
	after, err := d.Counts()
	require.NoError(t, err)
	require.Equal(t, fusedisk.Counts{Fsyncs: 3, Bytes: 16}, fusedisk.Counts{Fsyncs: after.Fsyncs - before.Fsyncs, Bytes: after.Bytes - before.Bytes})
	data, err := os.ReadFile(filepath.Join(d.Dir, "log"))
	require.NoError(t, err)
	require.Equal(t, "a recorda record", string(data))
	require.NoError(t, f.Close())
}
