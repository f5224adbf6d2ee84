package bench

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/fusedisk"
	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/writer"
)

// A project is a tree of 10,000 files that git knows as well, made once for all
// benchmarks of a process.
type project struct {
	dir   string
	root  writer.FS
	names []string
	// git runs git on the tree with nobody's settings, each write durable; nil where
	// there is none.
	git func(b *testing.B, args ...string)
}

var (
	projectOnce sync.Once
	theProject  project
	// hourAgo is old enough for everybody.
	hourAgo = time.Now().Add(-time.Hour)
)

// TestMain lets the test's program be a disk, too.
func TestMain(m *testing.M) {
	if ran, err := fusedisk.Serve(); ran {
		if err != nil {
			panic(err)
		}
		return
	}
	code := m.Run()
	if theProject.root != nil {
		_ = theProject.root.Close()
		_ = os.RemoveAll(filepath.Dir(theProject.dir))
	}
	os.Exit(code)
}

// openProject returns the project when no file of it is so young that its time says
// nothing.
func openProject(b *testing.B) *project {
	b.Helper()
	p := &theProject
	projectOnce.Do(func() { p.make(b) })
	require.NotNil(b, p.root, "the project was not made")
	time.Sleep(2100 * time.Millisecond) // a file's change time cannot be set
	return p
}

func (p *project) make(b *testing.B) {
	top, err := os.MkdirTemp("", "bench-project-")
	require.NoError(b, err)
	p.dir = filepath.Join(top, "tree")
	require.NoError(b, os.Mkdir(p.dir, 0o700))
	require.NoError(b, workload.Tree(p.dir, many(10_000)))
	require.NoError(b, filepath.WalkDir(p.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			p.names = append(p.names, name)
			err = os.Chtimes(name, hourAgo, hourAgo)
		}
		return err
	}))
	if path, err := exec.LookPath("git"); err == nil {
		git := func(b *testing.B, fsync string, args ...string) {
			cmd := exec.Command(path, append([]string{"--git-dir", filepath.Join(top, "git"), "--work-tree", p.dir, "-c", "core.fsync=" + fsync}, args...)...)
			cmd.Dir = p.dir
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
			out, err := cmd.CombinedOutput()
			require.NoError(b, err, "%s", out)
		}
		git(b, "none", "init", "-q")
		git(b, "none", "add", "-A") // not measured
		p.git = func(b *testing.B, args ...string) { git(b, "all", args...) }
	}
	p.root, err = writer.OpenFS(p.dir)
	require.NoError(b, err)
}
