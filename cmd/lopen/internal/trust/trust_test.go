package trust_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
)

// asIs keeps a command as it is.
func asIs(c trust.Command) trust.Command { return c }

func approved(t *testing.T, s *trust.Store, p trust.Project, c trust.Command) bool {
	t.Helper()
	found, err := s.Approved(p, c, asIs)
	require.NoError(t, err)
	return found != nil
}

// at opens the approvals in a folder.
func at(t *testing.T, dir string) *trust.Store {
	t.Helper()
	require.Equal(t, "lopen", filepath.Base(dir))
	s, err := trust.Open(func(key string) string { return map[string]string{"XDG_STATE_HOME": filepath.Dir(dir)}[key] })
	require.NoError(t, err)
	return s
}

// open opens the approvals in a new folder.
func open(t *testing.T) (s *trust.Store, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "lopen")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return at(t, dir), dir
}

func folder(path string) trust.Project { return trust.Project{Folder: path} }

func TestApprovalIsExact(t *testing.T) {
	t.Parallel()
	project, other := t.TempDir(), t.TempDir()
	s, dir := open(t)
	c := trust.Command{Argv: []string{"make", "test"}}
	require.False(t, approved(t, s, folder(project), c))
	require.NoError(t, s.Approve(folder(project), c))
	require.NoError(t, s.Approve(folder(project), trust.Command{Shell: "make lint"}))
	for _, q := range []struct {
		folder string
		c      trust.Command
		want   bool
	}{
		{project, c, true},
		{project, trust.Command{Shell: "make lint"}, true},
		{project, trust.Command{Shell: "make test"}, false},
		{project, trust.Command{Argv: []string{"make", "test "}}, false},
		{project, trust.Command{Argv: []string{"make test"}}, false},
		{other, c, false},
	} {
		require.Equal(t, q.want, approved(t, at(t, dir), folder(q.folder), q.c), "%s in %s", q.c, q.folder)
	}
	link := filepath.Join(other, "link")
	if os.Symlink(project, link) == nil {
		require.True(t, approved(t, s, folder(link), c), "a symlink to the folder is the folder")
	}
}

// What is approved for a repository is so wherever it lies, and for no other one that
// lies where it was.
func TestApprovalIsTheRepositorys(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	c := trust.Command{Shell: "make test"}
	here, there := t.TempDir(), t.TempDir()
	require.NoError(t, s.Approve(trust.Project{Folder: here, Repository: "one"}, c))
	require.True(t, approved(t, s, trust.Project{Folder: there, Repository: "one"}, c), "moved")
	require.False(t, approved(t, s, trust.Project{Folder: here, Repository: "two"}, c), "another one in its place")
	require.False(t, approved(t, s, folder(here), c), "a folder without a repository in its place")
	require.NoError(t, s.Approve(folder(there), c))
	require.False(t, approved(t, s, trust.Project{Folder: there, Repository: "two"}, c), "a repository where there was none")
}

// What the project keeps of a command has no credentials; the approval has, and the
// newest one that fits is meant.
func TestApprovedAsStored(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	p := folder(t.TempDir())
	kept := func(c trust.Command) trust.Command {
		c.Shell = strings.NewReplacer("first", "[x]", "second", "[x]").Replace(c.Shell)
		return c
	}
	for _, sh := range []string{"agent first", "agent second", "agent [y]"} {
		require.NoError(t, s.Approve(p, trust.Command{Shell: sh}))
	}
	for asked, want := range map[string]string{"agent [x]": "agent second", "agent first": "agent first", "agent [y]": "agent [y]"} {
		found, err := s.Approved(p, trust.Command{Shell: asked}, kept)
		require.NoError(t, err)
		require.Equal(t, &trust.Command{Shell: want}, found, asked)
	}
	found, err := s.Approved(p, trust.Command{Shell: "[x]"}, kept)
	require.NoError(t, err)
	require.Nil(t, found)
}

func TestListAndRevoke(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	s, dir := open(t)
	all, err := s.All()
	require.NoError(t, err)
	require.Empty(t, all)
	repo := trust.Project{Folder: b, Repository: "r"}
	require.NoError(t, s.Approve(folder(a), trust.Command{Shell: "one"}))
	require.NoError(t, s.Approve(folder(a), trust.Command{Argv: []string{"two"}}))
	require.NoError(t, s.Approve(repo, trust.Command{Shell: "three"}))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "approved-x.json"), []byte("{"), 0o600))
	all, err = s.All()
	require.ErrorContains(t, err, "approved-x.json")
	require.Len(t, all, 3)
	n, err := s.Revoke(folder(a).Is)
	require.Error(t, err)
	require.Equal(t, 2, n)
	require.False(t, approved(t, s, folder(a), trust.Command{Shell: "one"}))
	require.True(t, approved(t, s, repo, trust.Command{Shell: "three"}))
	n, _ = s.Revoke(folder(b).Is)
	require.Equal(t, 1, n, "a repository is found by its folder, too")
	require.False(t, approved(t, s, repo, trust.Command{Shell: "three"}))
}

func TestFilesAreTheUsersAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "lopen")
	require.NoError(t, at(t, dir).Approve(folder(t.TempDir()), trust.Command{Shell: "x"}))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	file, err := os.Stat(files[0])
	require.NoError(t, err)
	if os.PathSeparator == '/' {
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		require.Equal(t, os.FileMode(0o600), file.Mode().Perm())
	}
}

func TestDamagedFileApprovesNothingAndIsReplaced(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	s, dir := open(t)
	c := trust.Command{Shell: "x"}
	require.NoError(t, s.Approve(folder(project), c))
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte(`{"commands":[`), 0o600))
	found, err := s.Approved(folder(project), c, asIs)
	require.Nil(t, found)
	require.ErrorContains(t, err, "damaged")
	require.NoError(t, s.Approve(folder(project), c))
	require.True(t, approved(t, s, folder(project), c))
}

func TestManyApproveAtOnce(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	_, dir := open(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			s := at(t, dir)
			if err := s.Approve(folder(project), trust.Command{Shell: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
			if _, err := s.Approved(folder(project), trust.Command{Shell: "x"}, asIs); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	left, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDefaultDir(t *testing.T) {
	t.Parallel()
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	dir, err := trust.DefaultDir(func(k string) string { return env[k] })
	require.NoError(t, err)
	require.Equal(t, filepath.Join(env["XDG_STATE_HOME"], "lopen"), dir)
}
