package bench

import (
	"os"
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
	git   func(args ...string) error // as workload.Git has it
}

var (
	projectOnce sync.Once
	theProject  project
	// hourAgo is old enough for everybody.
	hourAgo = time.Now().Add(-time.Hour)
)

// TestMain lets the test's program be a disk, too.
func TestMain(m *testing.M) {
	fusedisk.Main(func() int {
		code := m.Run()
		if theProject.root != nil {
			_ = theProject.root.Close()
			_ = os.RemoveAll(filepath.Dir(theProject.dir))
		}
		return code
	})
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
	p.names, err = workload.Tree(p.dir, many(10_000))
	require.NoError(b, err)
	for _, name := range p.names {
		require.NoError(b, os.Chtimes(name, hourAgo, hourAgo))
	}
	if p.git = workload.Git(filepath.Join(top, "git"), p.dir); p.git != nil {
		require.NoError(b, p.git("init", "-q"))
		require.NoError(b, p.git("-c", "core.fsync=none", "add", "-A")) // not measured
	}
	p.root, err = writer.OpenFS(p.dir)
	require.NoError(b, err)
}
