package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// place is a folder with repositories, and the home of their user.
type place struct {
	t    *testing.T
	home string
	dir  string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := &place{t: t, home: filepath.Join(top, "home"), dir: filepath.Join(top, "at")}
	p.write(filepath.Join(p.home, ".gitconfig"), "[user]\n\tname = a\n\temail = a@example.com\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n")
	require.NoError(t, os.MkdirAll(p.dir, 0o755))
	return p
}

func (p *place) environ() []string {
	return append(os.Environ(), "HOME="+p.home, "XDG_CONFIG_HOME="+filepath.Join(p.home, ".config"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_DIR=/nowhere", "GIT_WORK_TREE=/nowhere", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.bare", "GIT_CONFIG_VALUE_0=true")
}

// git runs git itself in a folder of the place.
func (p *place) git(dir string, args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = p.path(dir)
	require.NoError(p.t, os.MkdirAll(cmd.Dir, 0o755))
	cmd.Env = append(os.Environ(), "HOME="+p.home, "XDG_CONFIG_HOME="+filepath.Join(p.home, ".config"), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

func (p *place) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

func (p *place) write(name, text string) {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Dir(p.path(name)), 0o755))
	require.NoError(p.t, os.WriteFile(p.path(name), []byte(text), 0o644))
}

// repository makes one with a commit and returns the commit's name.
func (p *place) repository(dir string) string {
	p.t.Helper()
	p.git(dir, "init", "-q")
	p.write(dir+"/file", dir+"\n")
	p.git(dir, "add", "-A")
	p.git(dir, "commit", "-q", "-m", "first of "+dir)
	return p.git(dir, "rev-parse", "HEAD")
}

func (p *place) look(dir string) State {
	p.t.Helper()
	s, err := Look(p.t.Context(), p.path(dir), p.environ())
	require.NoError(p.t, err)
	return s
}
