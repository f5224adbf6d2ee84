//go:build unix

package process

import (
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

// Somebody who only looks is taken for no command, and keeps none from starting.
func TestLookingForAnOrphanDisturbsNobody(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	syscall.ForkLock.RLock()       // see nobody
	l, err := Hold(dir, childName) // its record is that of an unknown command
	require.NoError(t, err)
	require.NoError(t, l.File().Close())
	look := looking(t, dir)
	syscall.ForkLock.RUnlock()
	unlocked := make(chan error, 1)
	ends := time.AfterFunc(exclusively/10*probeDelay, func() { unlocked <- unlock(look) })
	nobody(t, dir)
	require.False(t, ends.Stop())
	require.NoError(t, <-unlocked)
	ok, err := tryFlock(look)
	require.NoError(t, err)
	require.True(t, ok)

	held := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		close(begun)
		l, err := Hold(dir, childName)
		if err == nil {
			err = l.File().Close()
		}
		held <- err
	}()
	<-begun
	select {
	case err := <-held:
		require.Fail(t, "it was held while somebody looked", "%v", err)
	default:
	}
	require.NoError(t, look.Close())
	require.NoError(t, <-held)
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
