package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSearchOnAFullDisk searches where an index finds no room, and where nothing may be written: everything
// is read instead, and the same is found.
func TestSearchOnAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir := t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] verify signatures\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	want := must(t, dir, "search", "verify", "--json", "--no-index")
	require.Contains(t, want, "signatures")
	fill := filepath.Join(dir, "fill")
	f, err := os.Create(fill)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Close())

	found := func(note string) {
		t.Helper()
		cmd := command(t, dir, "search", "verify", "--json")
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, want, string(out))
		all, err := command(t, dir, "search", "verify", "--json").CombinedOutput()
		require.NoError(t, err)
		if note == "" {
			require.Equal(t, want, string(all))
			return
		}
		require.Contains(t, string(all), note)
	}
	found("everything was read instead")
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	found("everything was read instead")
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""))
	require.NoError(t, os.Remove(fill))
	found("")
}
