package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// TestSearchOnAFullDisk searches where an index finds no room, at once or while it is made, and where nothing may be
// written: everything is read instead, the same is found, and what the index took is given back.
func TestSearchOnAFullDisk(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir := t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] verify signatures\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	want := must(t, dir, "search", "verify", "--json", "--no-index")
	require.Contains(t, want, "signatures")
	fill := filepath.Join(dir, "fill")
	fillUp(t, fill, 0)

	found := func(note string) {
		t.Helper()
		cmd := command(t, dir, "search", "verify", "--json")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, want, string(out))
		if note == "" {
			require.Empty(t, stderr.String())
			return
		}
		require.Contains(t, stderr.String(), note)
	}
	found("everything was read instead")
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	found("everything was read instead")
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""))
	require.NoError(t, os.Remove(fill))
	found("")

	must(t, dir, "cache", "clear")
	docs := filepath.Join(dir, "docs", "requirements", "m")
	require.NoError(t, os.MkdirAll(docs, 0o700))
	for i := range 2 {
		var text strings.Builder
		for n := range 300_000 {
			fmt.Fprintf(&text, "%d%c", n*(i+1)*7919%1_000_003, " \n"[n%20/19])
		}
		require.NoError(t, os.WriteFile(filepath.Join(docs, fmt.Sprintf("RESEARCH-%d.md", i)), []byte(text.String()), 0o600))
	}
	const room = 18 << 20
	fillUp(t, fill, room)
	found("there is no room for it: sqlite3: database or disk is full")
	require.Greater(t, freeBytes(t, dir), uint64(room)-1<<20)
	found("were too little")
	require.NoError(t, os.Remove(fill))
	found("")
}

func freeBytes(t *testing.T, dir string) uint64 {
	t.Helper()
	free, err := writer.FreeBytes(dir)
	require.NoError(t, err)
	return free
}

// fillUp writes a file that leaves so much room.
func fillUp(t *testing.T, file string, room uint64) {
	t.Helper()
	f, err := os.Create(file)
	require.NoError(t, err)
	for err == nil && freeBytes(t, filepath.Dir(file)) > room {
		_, err = f.Write(make([]byte, 4096))
	}
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
