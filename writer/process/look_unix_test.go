//go:build unix

package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// looking is the lock that FindOrphan takes for a moment, held for longer.
func looking(t *testing.T, dir writer.FS) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir.Name(), childName), os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	ok, err := tryFlock(f)
	require.NoError(t, err)
	require.True(t, ok)
	return f
}

// An openedFS calls opened when a file is opened.
type openedFS struct {
	writer.FS
	opened func()
}

func (d openedFS) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	d.opened()
	return f, err
}

// Somebody who only looks is taken for no command, and keeps none from starting. The look
// ends a moment after the other one has opened the file, and so met it.
func TestLookingForAnOrphanDisturbsNobody(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	syscall.ForkLock.RLock() // see nobody
	l, err := Hold(dir, childName)
	require.NoError(t, err)
	require.NoError(t, l.Release()) // the record names no command, so that FindOrphan looks once
	look := looking(t, dir)
	syscall.ForkLock.RUnlock()
	ended := make(chan error, 1)
	nobody(t, openedFS{dir, func() {
		time.AfterFunc(exclusively/10*probeDelay, func() { ended <- unlock(look) })
	}})
	require.NoError(t, <-ended)

	ok, err := tryFlock(look)
	require.NoError(t, err)
	require.True(t, ok)
	l, err = Hold(openedFS{dir, func() {
		time.AfterFunc(exclusively/10*probeDelay, func() { ended <- look.Close() })
	}}, childName)
	require.NoError(t, err)
	require.NoError(t, <-ended)
	require.NoError(t, l.File().Close())
}

// Many look at once, and commands come and go beside them.
func TestManyLookForAnOrphan(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	l, err := Hold(dir, childName)
	require.NoError(t, err)
	require.NoError(t, l.Release())
	stop, ended := make(chan struct{}), make(chan error, 3)
	for range cap(ended) {
		go func() {
			for {
				select {
				case <-stop:
					ended <- nil
					return
				default:
				}
				if _, err := FindOrphan(dir, childName); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	for range 300 {
		l, err := Hold(dir, childName)
		require.NoError(t, err)
		require.NoError(t, l.Release())
	}
	close(stop)
	for range cap(ended) {
		require.NoError(t, <-ended)
	}
}
