//go:build unix

package owner_test

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
)

// file is a file of some user's.
type file struct {
	fs.FileInfo
	sys any
}

func (f file) Sys() any { return f.sys }

func of(uid int) file { return file{sys: &syscall.Stat_t{Uid: uint32(uid)}} }

// TestOwner changes the environment, so that it is not parallel.
func TestOwner(t *testing.T) {
	t.Setenv("SUDO_UID", "")
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	own, err := os.Stat(path)
	require.NoError(t, err)
	me := os.Geteuid()
	other, unknown := of(me+1), file{}

	require.False(t, owner.Foreign(own))
	require.True(t, owner.Foreign(other))
	require.False(t, owner.Foreign(unknown), "a file without an owner is nobody else's")

	require.True(t, owner.Mine(own))
	require.False(t, owner.Mine(other))
	require.False(t, owner.Mine(unknown))

	require.True(t, owner.Same(own, of(me)))
	require.False(t, owner.Same(own, other))
	require.False(t, owner.Same(unknown, unknown), "two unknown owners may be two")

	t.Setenv("SUDO_UID", strconv.Itoa(me+1))
	require.Equal(t, me != 0, owner.Foreign(other), "only root works for the user of sudo")
	require.False(t, owner.Mine(other), "what that user owns is not root's")
	require.True(t, owner.Foreign(of(me+2)))
}

func TestName(t *testing.T) {
	t.Parallel()
	me := os.Geteuid()
	want := "uid " + strconv.Itoa(me)
	if u, err := user.LookupId(strconv.Itoa(me)); err == nil {
		want = u.Username + " (" + want + ")"
	}
	require.Equal(t, want, owner.Name(of(me)))
	require.Equal(t, "uid 4123456789", owner.Name(of(4123456789)))
	require.Equal(t, "an unknown user", owner.Name(file{}))
}
