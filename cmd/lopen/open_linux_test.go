package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRewindOfAnOpenFile keeps a file that this process has open for writing, says so before, then
// and in the log, and takes it with --force, which is said as well.
func TestRewindOfAnOpenFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("TODO.md", "- [ ] one\n- [ ] two\n")
	for _, name := range []string{"a", "log", "x.db-wal"} {
		write(name, "1")
	}
	write("x.db", "SQLite format 3\x00")
	write("y.db", "a text")
	write("y.db-wal", "1")
	write(".gitignore", "*.db\n")
	lopen := in(t, dir)
	lopen(0, "plan", "create", "mod", "--from", "TODO.md")
	lopen(2, "run", "mod", "--max-iterations", "1", "--", "sh", "-c", "for f in a log x.db-wal y.db-wal; do printf 2 > $f; done")
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close()
	who := fmt.Sprintf("%s, PID %d", filepath.Base(os.Args[0]), os.Getpid())
	for _, args := range [][]string{{"checkpoint", "rewind", "before:one", "--dry-run"}, {"checkpoint", "restore", "before:one", "log", "a", "--dry-run"}} {
		require.Contains(t, lopen(0, args...), "keep      log (open in "+who)
	}
	out := lopen(0, "checkpoint", "rewind", "before:one", "--force", "--dry-run")
	require.Contains(t, out, "--force replaces log, which is open for writing in "+who)
	require.Contains(t, out, ": what is written to it from then on is lost\n")

	var row rewindRow
	out = lopen(0, "checkpoint", "rewind", "before:one", "--yes", "--json")
	require.NoError(t, json.Unmarshal([]byte(out[strings.Index(out, "{"):strings.LastIndex(out, "}")+1]), &row))
	why := map[string]string{}
	for _, k := range row.Kept {
		why[k.Path] = k.Reason()
	}
	require.Contains(t, why["log"], "open in "+who)
	require.Equal(t, "with x.db, which stays", why["x.db-wal"])
	require.NotContains(t, why, "y.db")
	require.NotContains(t, why, "y.db-wal")
	require.Equal(t, "1 2 2 1", contents(t, dir, "a", "log", "x.db-wal", "y.db-wal"))
	require.Contains(t, lopen(0, "session", "log"), "kept, open in "+who)
	lopen(0, "undo", "--yes")
	require.Equal(t, "2 2", contents(t, dir, "a", "log"))

	require.NoError(t, os.Remove(filepath.Join(dir, "x.db")))
	out = lopen(0, "checkpoint", "rewind", "before:one", "--yes", "--force")
	require.Contains(t, out, "replaced log, which is open for writing in "+who)
	require.Equal(t, "1 1 1", contents(t, dir, "a", "log", "x.db-wal"))
}

// TestNightWithAnOpenFile has a task fail for good. Its files are set back but for what this process
// has open, which the run, its report and the log name, and the other tasks run.
func TestNightWithAnOpenFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ work, want, says string }{
		"one of its files": {"printf 2 > a; printf 2 >> app.db-wal", "1 12", "but for: app.db-wal (open in %s)"},
		"all of them":      {"printf 2 >> app.db-wal", "1 12", "Its files are as it left them: app.db-wal: open in %s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{"TODO.md": "- [ ] one\n- [ ] two\n", "a": "1", "app.db-wal": "1"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			f, err := os.OpenFile(filepath.Join(dir, "app.db-wal"), os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
			lopen := in(t, dir)
			lopen(0, "plan", "create", "mod", "--from", "TODO.md")
			out := lopen(2, "run", "mod", "--unattended", "--agent", "none", "--failure-threshold", "1", "--check", "! grep -q 2 app.db-wal || [ -e two ]", "--",
				"sh", "-c", "case $LOPEN_TASK_ID in *one) "+c.work+";; *) : > two;; esac")
			who := fmt.Sprintf("%s, PID %d", filepath.Base(os.Args[0]), os.Getpid())
			require.Contains(t, out, "app.db-wal: open in "+who)
			require.Equal(t, c.want, contents(t, dir, "a", "app.db-wal"))
			require.Contains(t, strings.Join(strings.Fields(lopen(0, "report")), " "), fmt.Sprintf(c.says, who))
			require.Contains(t, lopen(0, "session", "log"), "open in "+who)
		})
	}
}
