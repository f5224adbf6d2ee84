//go:build unix

package checkpoint

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// diskBytes is the space that a file takes.
func diskBytes(t *testing.T, path string) int64 {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}
