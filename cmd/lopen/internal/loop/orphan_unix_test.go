//go:build unix

package loop

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
)

// quiet is a UI that must not announce the end of a command.
type quiet struct{ UI }

// The first run holds a session and its command. The second run has the lock of the
// module, as when the lock file was removed. It must leave the command alone.
func TestEndOrphansLeavesACommandOfAHeldSession(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	first, _, err := lifecycle.Init(project, lifecycle.Options{Command: "lopen run auth"})
	require.NoError(t, err)
	defer first.Close(t.Context())
	sess, err := first.Create(t.Context(), "auth")
	require.NoError(t, err)
	child, err := sess.HoldChild()
	require.NoError(t, err)
	second, err := lifecycle.Open(project, lifecycle.Options{})
	require.NoError(t, err)
	defer second.Close(t.Context())
	lock, err := second.LockModule("auth")
	require.NoError(t, err)
	defer lock.Unlock()

	var exit *Exit
	require.ErrorAs(t, EndOrphans(t.Context(), second, "auth", false, quiet{}), &exit)
	require.Equal(t, ExitBusy, exit.Code)
	require.Contains(t, exit.Reason, sess.ID().String()+" is held by pid")
	require.Contains(t, exit.Reason, "lopen run auth")
	require.NoError(t, child.Release())
	syscall.ForkLock.RLock() // between a fork and its exec, what another test starts has the lock too
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, EndOrphans(t.Context(), second, "auth", false, quiet{}))
}
