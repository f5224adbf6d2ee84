package identity_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/internal/identity"
)

func stat(t *testing.T, name string) identity.Identity {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	return identity.Of(info)
}

// Whatever happens to a file shows, its time of modification set back or not.
func TestEveryChangeIsAnotherIdentity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, old := filepath.Join(dir, "f"), time.Now().Add(-time.Hour)
	write := func(content string) {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		require.NoError(t, os.Chtimes(name, old, old))
	}
	write("one")
	first := stat(t, name)
	require.Equal(t, first, stat(t, name), "a look changes nothing")
	require.EqualValues(t, 3, first.Size)
	require.Equal(t, old.UnixNano(), first.Modified)
	write("longer")
	require.NotEqual(t, first, stat(t, name))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "g"), []byte("two"), 0o600))
	other := stat(t, filepath.Join(dir, "g"))
	if other.Inode == 0 {
		t.Skip("this system tells no inode")
	}
	require.NotEqual(t, other.Inode, first.Inode)
	require.NotZero(t, other.Changed, "no program can set it")
}

func TestRacy(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1000, 0)
	at := func(t time.Time) int64 { return t.UnixNano() }
	for _, c := range []struct {
		id   identity.Identity
		racy bool
	}{
		{identity.Identity{Modified: at(begun.Add(-time.Minute)), Changed: at(begun.Add(-time.Minute))}, false},
		{identity.Identity{Modified: at(begun.Add(-2*time.Second - 1))}, false},
		{identity.Identity{Modified: at(begun.Add(-2 * time.Second))}, true},
		{identity.Identity{Modified: at(begun.Add(-time.Hour)), Changed: at(begun.Add(-time.Second))}, true},
		{identity.Identity{Modified: at(begun.Add(time.Hour))}, true},
	} {
		require.Equal(t, c.racy, c.id.Racy(begun), "%+v", c.id)
	}
}
