//go:build linux || darwin

package assess_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A FIFO holds nothing, but in the place of a file it is a change, and so is the
// file that takes its place.
func TestSpecial(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := filepath.Join(w.root, "fifo")
	w.ask(w.look())
	require.NoError(t, unix.Mkfifo(name, 0o600))
	require.False(t, w.ask(w.look()))
	require.True(t, w.ask(w.look()))
	require.NoError(t, os.Remove(name))
	w.write("fifo", "a file")
	require.False(t, w.ask(w.look()))
	require.True(t, w.ask(w.look()))
}
