package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFullDiskWhereItIsCarriedTo fills the disk that an export, an import, a restore or a backup
// writes to. Each says so, before it begins or in the middle, leaves nothing that looks whole, and
// works once there is space.
func TestFullDiskWhereItIsCarriedTo(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	from, disk, outside := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	require.NoError(t, os.WriteFile(filepath.Join(from, "TODO.md"), []byte("- [ ] one\n- [ ] two\n"), 0o600))
	must(t, from, "plan", "create", "m", "--from", "TODO.md")
	cmd := command(t, from, "run", "m", "--max-iterations", "1", "--", "sh", "-c", "head -c 4000000 /dev/urandom >large")
	require.Error(t, cmd.Run())
	require.Equal(t, 2, cmd.ProcessState.ExitCode())
	bundle, kept := filepath.Join(outside, "bundle"), filepath.Join(outside, "kept")
	must(t, from, "session", "export", "-o", bundle)
	must(t, from, "backup", kept)

	in := func(names ...string) string { return filepath.Join(append([]string{disk}, names...)...) }
	noSession := func() {
		found, err := filepath.Glob(in("to", ".lopen", "sessions", "[^.]*"))
		require.NoError(t, err)
		require.Empty(t, found)
	}
	for _, c := range []struct {
		dir  string
		args []string
		then func() // asserts what a failure leaves
	}{
		{from, []string{"session", "export", "-o", in("bundle")}, func() {
			found, err := os.ReadDir(disk)
			require.NoError(t, err)
			require.Len(t, found, 1, "what fills the disk")
		}},
		{in("to"), []string{"session", "import", bundle}, noSession},
		{in("to"), []string{"backup", "restore", kept}, noSession},
		{from, []string{"backup", in("kept")}, func() {
			require.Equal(t, "0\n", must(t, from, "backup", "list", in("kept"), "--jq", "length"))
		}},
	} {
		all, err := filepath.Glob(in("*"))
		require.NoError(t, err)
		for _, name := range all {
			require.NoError(t, os.RemoveAll(name))
		}
		if c.dir != from {
			require.NoError(t, os.Mkdir(c.dir, 0o700))
		}
		require.NoError(t, os.WriteFile(in("fill"), make([]byte, 5<<20), 0o600))
		cmd := command(t, c.dir, c.args...)
		cmd.Env = append(cmd.Env, "TMPDIR="+outside)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "%s", out)
		require.Equal(t, 14, cmd.ProcessState.ExitCode(), "%s", out)
		require.Contains(t, string(out), "free space on this disk")
		c.then()
		require.NoError(t, os.Remove(in("fill")))
		must(t, c.dir, c.args...)
	}
}
