package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// opens tells which files in a folder were opened.
type opens int

func watchOpens(t *testing.T, dir string) opens {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_OPEN)
	require.NoError(t, err)
	return opens(fd)
}

// names returns those that were opened since the last call.
func (o opens) names() (names []string) {
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(int(o), buf)
		if err != nil || n <= 0 {
			return names
		}
		for at := 0; at < n; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			at += unix.SizeofInotifyEvent
			if e.Mask&unix.IN_ISDIR == 0 {
				names = append(names, string(bytes.TrimRight(buf[at:at+int(e.Len)], "\x00")))
			}
			at += int(e.Len)
		}
	}
}

// longPlan makes a project with a plan of many tasks and a folder src of three files.
func longPlan(t *testing.T) string {
	dir := t.TempDir()
	var plan strings.Builder
	for n := range 100 {
		fmt.Fprintf(&plan, "- [ ] Task %d\n", n)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plan.md"), []byte(plan.String()), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "src"), 0o755))
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "src", name), []byte(name), 0o600))
	}
	must(t, dir, "plan", "create", "m", "--from", "plan.md")
	return dir
}

// A run of an unchanged tree opens none of its files, once they are older than the clock's tick.
func TestRunOfAnUnchangedTree(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"with a check": {"--check", "true"}, "another session": {"--check", "false", "--no-resume"}, "no checkpoints": {"--no-checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := longPlan(t)
			seen := watchOpens(t, filepath.Join(dir, "src"))
			run := append([]string{"run", "m", "--max-iterations", "1"}, args...)
			run = append(run, "--", "true")
			opened := func() []string {
				out, _ := command(t, dir, run...).CombinedOutput() // it stops before the plan is done
				require.Contains(t, string(out), "/100] Task", "a task is run")
				return seen.names()
			}
			require.Subset(t, opened(), []string{"a", "b", "c"}, "nothing is known")
			for end := time.Now().Add(30 * time.Second); len(opened()) > 0; {
				require.True(t, time.Now().Before(end), "each run opens the files")
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "src", "a"), []byte("changed"), 0o600))
			require.Subset(t, []string{"a", "a", "a", "a"}, opened())
		})
	}
}

// What an agent writes in the place of what was remembered hides nothing of what it changed.
func TestForgedMemory(t *testing.T) {
	t.Parallel()
	dir := longPlan(t)
	must(t, dir, "checkpoint", "create")
	root, err := writer.OpenFS(dir)
	require.NoError(t, err)
	defer root.Close()
	data, err := writer.ReadFile(root, ".lopen/checkpoints/main.files", files.MaxEncoded)
	require.NoError(t, err)
	before, err := files.Decode(data)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "src", "a"), []byte("malice"), 0o600))
	forged, err := files.Take(t.Context(), root, nil, files.Options{})
	require.NoError(t, err)
	for i := range forged.Files {
		if f := &forged.Files[i]; f.Path == "src/a" {
			f.Hash = before.Find(f.Path).Hash
		}
	}
	forged.At, forged.Stored = time.Now().Add(time.Hour), before.Stored
	require.NoError(t, writer.ReplaceFile(root, ".lopen/checkpoints/main.files", forged.Encode(), 0o600))
	must(t, dir, "checkpoint", "create")
	require.Equal(t, "malice", must(t, dir, "checkpoint", "cat", "2", "src/a"))
}
