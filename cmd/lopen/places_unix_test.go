//go:build unix

package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var allHostile = flag.Bool("hostile", false, "have TestPlaces put every kind in every place, and both it and TestHostileSession run every command")

// secret is in what lies outside a project: no command may show it.
const secret = "what-lies-outside"

// kinds are what somebody may put in the place of a file or folder of a project. outside
// holds a file, a folder and a FIFO.
var kinds = map[string]func(path, outside string) error{
	"fifo":           func(path, _ string) error { return syscall.Mkfifo(path, 0o666) },
	"link to fifo":   func(path, outside string) error { return os.Symlink(filepath.Join(outside, "fifo"), path) },
	"link to file":   func(path, outside string) error { return os.Symlink(filepath.Join(outside, "file"), path) },
	"link to folder": func(path, outside string) error { return os.Symlink(filepath.Join(outside, "folder"), path) },
	"inner link": func(path, _ string) error {
		if err := syscall.Mkfifo(filepath.Join(filepath.Dir(path), "zz-fifo"), 0o666); err != nil {
			return err
		}
		return os.Symlink("zz-fifo", path)
	},
	"link to /dev/zero": func(path, _ string) error { return os.Symlink("/dev/zero", path) },
	"link to /dev/tty":  func(path, _ string) error { return os.Symlink("/dev/tty", path) },
	"device": func(path, _ string) error {
		err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) // /dev/zero
		if err != nil {
			return os.Symlink("/dev/zero", path) // only root makes devices
		}
		return nil
	},
	"socket": func(path, _ string) error { return unix.Mknod(path, unix.S_IFSOCK|0o666, 0) },
	"folder": func(path, _ string) error { return os.Mkdir(path, 0o755) },
	"file":   func(path, _ string) error { return os.WriteFile(path, []byte("x"), 0o644) },
}

// few are one kind that a call waits for, and one that leads outside.
var few = []string{"fifo", "link to folder"}

const placesRead = `
session list --long
session show m --format md
session show m --at 3
session log m
session verify
doctor
plan show m
section list docs/requirements/m/SPECIFICATION.md
section drift m
research list m
cache status
cache warm
files changed
config show
checkpoint list
checkpoint show 2
checkpoint cat 2 TODO.md
checkpoint diff 1 2
checkpoint diff 1
checkpoint rewind 1 --dry-run
session prune --dry-run
run m --dry-run -- true
`

const writing = `
init n
init --gitignore
plan create n --from TODO.md
plan tick m :2
plan skip m :2
research new m other
files record
config set unit leaf
checkpoint create
session fork m
session pause m
cache clear
checkpoint pin 1
checkpoint restore 1 TODO.md --yes
checkpoint rewind 1 --yes
undo --yes
session rename m x
session pin m
session recover m
assess lint -- true
run m --max-iterations 1 -- true
run m --no-save --max-iterations 1 -- true
run m --no-resume --max-iterations 1 -- true
session prune --yes
`

// TestPlaces puts a FIFO, a link and the like in the place of each file and folder of a
// project, one at a time, and runs the commands. None may hang, show what lies outside or
// touch it, or fail without a message. Without -hostile it takes one of two kinds in
// turn, and the commands that read.
func TestPlaces(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand commands, one after the other; -short")
	}
	project := t.TempDir()
	home := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	require.NoError(t, os.WriteFile(filepath.Join(project, "TODO.md"), []byte("- [ ] one\n- [ ] two\n- [ ] three\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(project, ".gitignore"), []byte("*.log\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(project, ".lopenignore"), []byte("*.tmp\n"), 0o644))
	for _, line := range []string{"init m", "plan create m --from TODO.md", "research new m topic", "config set unit leaf", "files record", "cache warm",
		"run m --transcript --max-iterations 2 -- sh -c echo"} {
		code, out := inProject(t, project, home, line)
		require.NotEqual(t, 1, code, "%s: %s", line, out)
		require.NotEqual(t, exitUsage, code, "%s: %s", line, out)
	}
	places := []string{".lopen/modules/m/decisions.json", ".lopen/corrupted", ".lopen/trash", "docs/requirements/n", ".git"}
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir(project, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(project, path)
		if base := filepath.Base(filepath.Dir(filepath.Dir(name))); base == "blobs" || filepath.Base(filepath.Dir(name)) == "blobs" && d.IsDir() {
			if seen[fmt.Sprint(base, d.IsDir())] { // one of the contents is as good as another
				return err
			}
			seen[fmt.Sprint(base, d.IsDir())] = true
		}
		if name != "." && !slices.Contains(places, name) {
			places = append(places, name)
		}
		return err
	}))
	commands := lines(placesRead)
	for _, line := range commands { // or it says nothing that they fail elsewhere
		code, out := inProject(t, project, home, line)
		require.Contains(t, []int{0, 3}, code, "%s: %s", line, out)
	}
	if *allHostile {
		commands = append(commands, lines(writing)...)
	}
	for i, place := range places {
		chosen := few[i%len(few):][:1]
		if *allHostile {
			chosen = slices.Sorted(maps.Keys(kinds))
		}
		for _, kind := range chosen {
			t.Run(place+"/"+kind, func(t *testing.T) { inPlace(t, project, home, place, kind, commands) })
		}
	}
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// inPlace runs the commands in a copy of the project in which something else is in a place.
func inPlace(t *testing.T, project, home, place, kind string, commands []string) {
	dir, outside := filepath.Join(t.TempDir(), "p"), t.TempDir()
	require.NoError(t, exec.Command("cp", "-a", project, dir).Run())
	require.NoError(t, syscall.Mkfifo(filepath.Join(outside, "fifo"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), []byte(`{"`+secret+`":1}`+"\n- [ ] "+secret+"\n"), 0o666))
	require.NoError(t, os.Mkdir(filepath.Join(outside, "folder"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "folder", "RESEARCH-"+secret+".md"), []byte("# "+secret+"\n"), 0o666))
	path := filepath.Join(dir, filepath.FromSlash(place))
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, kinds[kind](path, outside))
	before := listing(t, outside)
	for _, line := range commands {
		code, out := inProject(t, dir, home, line)
		require.NotContains(t, out, secret, line)
		if code != 0 && line != "cache warm" {
			require.NotEmpty(t, strings.TrimSpace(out), line)
		}
		require.Equal(t, before, listing(t, outside), "%s: %s", line, out)
	}
}

// inProject runs a command in the project. It fails the test where the command hangs.
func inProject(t *testing.T, dir, home, line string) (code int, out string) {
	t.Helper()
	type ended struct {
		code int
		out  string
	}
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	done := make(chan ended, 1)
	go func() {
		var b bytes.Buffer
		env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home}
		code := run(append([]string{"-C", dir}, strings.Fields(line)...), null, &b, &b, env)
		done <- ended{code, b.String()}
	}()
	select {
	case e := <-done:
		return e.code, e.out
	case <-time.After(15 * time.Second):
		t.Fatalf("%s hangs", line)
		return 0, ""
	}
}

// listing is what lies in a folder, with contents and times.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		var data []byte
		if info.Mode().IsRegular() {
			data, err = os.ReadFile(path)
		}
		fmt.Fprintf(&b, "%s %v %d %v %q\n", path, info.Mode(), info.Size(), info.ModTime(), data)
		return err
	}))
	return b.String()
}
