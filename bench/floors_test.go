package bench

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/turns"
)

// appendFloor is one append and one fdatasync of so many bytes: what no durable save
// of them on this disk is faster than.
func appendFloor(b *testing.B, bytes int) turns.Side {
	b.Helper()
	f, err := os.Create(b.TempDir() + "/floor")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, f.Close()) })
	record, off := make([]byte, bytes), int64(0)
	return turns.Side{Name: "append", Do: func() {
		_, err := f.WriteAt(record, off)
		require.NoError(b, err)
		require.NoError(b, datasync(f))
		off += int64(bytes)
	}}
}

// statFloor asks the system about each file.
func statFloor(b *testing.B, names ...string) turns.Side {
	return turns.Side{Name: "stat", Do: func() {
		for _, name := range names {
			if _, err := os.Lstat(name); err != nil {
				require.NoError(b, err)
			}
		}
	}}
}
