package repo_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
)

// commitEnv makes the test binary a process that commits in the current folder, to be killed.
const commitEnv = "REPO_TEST_COMMIT"

func TestMain(m *testing.M) {
	if os.Getenv(commitEnv) != "" {
		r, err := repo.Open(context.Background(), ".", os.Environ())
		if err == nil {
			_, err = r.Git(context.Background(), repo.Command{Args: []string{"commit", "-q", "-a", "-m", "second"}})
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A project is a repository with the home of its person.
type project struct {
	t       *testing.T
	dir     string
	environ []string
}

// newProject makes a repository with one commit, which has the file "kept".
func newProject(t *testing.T) *project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	home := filepath.Join(top, "home")
	p := &project{t: t, dir: filepath.Join(top, "project")}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			p.environ = append(p.environ, kv)
		}
	}
	p.environ = append(p.environ, "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "XDG_STATE_HOME="+filepath.Join(home, "state"), "GIT_CONFIG_NOSYSTEM=1")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = P\n\temail = p@example.com\n[init]\n\tdefaultBranch = main\n"), 0o600))
	require.NoError(t, os.MkdirAll(p.dir, 0o755))
	p.git("init", "-q")
	p.write("kept", "kept\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "first")
	return p
}

// git runs git as the person does and returns what it prints.
func (p *project) git(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	require.NoError(p.t, err, "git %v: %s", args, out)
	return out
}

func (p *project) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = p.dir, p.environ
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (p *project) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o644))
}

// hook writes a hook of the repository.
func (p *project) hook(name, script string) {
	p.t.Helper()
	p.write(".git/hooks/"+name, "#!/bin/sh\n"+script+"\n")
	require.NoError(p.t, os.Chmod(filepath.Join(p.dir, ".git/hooks", name), 0o755))
}

func (p *project) open() *repo.Repository {
	p.t.Helper()
	r, err := repo.Open(p.t.Context(), p.dir, p.environ)
	require.NoError(p.t, err)
	return r
}
