package trust_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
)

func TestApprovalIsExact(t *testing.T) {
	t.Parallel()
	project, other := t.TempDir(), t.TempDir()
	dir := filepath.Join(t.TempDir(), "state", "lopen")
	s := trust.Open(dir)
	c := trust.Command{Argv: []string{"make", "test"}}
	ok, err := s.Approved(project, c)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, s.Approve(project, c))
	require.NoError(t, s.Approve(project, trust.Command{Shell: "make lint"}))
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
		ok, err := trust.Open(dir).Approved(q.folder, q.c)
		require.NoError(t, err)
		require.Equal(t, q.want, ok, "%s in %s", q.c, q.folder)
	}
	link := filepath.Join(other, "link")
	if os.Symlink(project, link) == nil {
		ok, err = s.Approved(link, c)
		require.NoError(t, err)
		require.True(t, ok, "a symlink to the folder is the folder")
	}
}

func TestFilesAreTheUsersAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "lopen")
	require.NoError(t, trust.Open(dir).Approve(t.TempDir(), trust.Command{Shell: "x"}))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	file, err := files[0].Info()
	require.NoError(t, err)
	if os.PathSeparator == '/' {
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		require.Equal(t, os.FileMode(0o600), file.Mode().Perm())
	}
}

func TestDamagedFileApprovesNothingAndIsReplaced(t *testing.T) {
	t.Parallel()
	dir, project := t.TempDir(), t.TempDir()
	s := trust.Open(dir)
	c := trust.Command{Shell: "x"}
	require.NoError(t, s.Approve(project, c))
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte(`{"commands":[`), 0o600))
	ok, err := s.Approved(project, c)
	require.False(t, ok)
	require.ErrorContains(t, err, "damaged")
	require.NoError(t, s.Approve(project, c))
	ok, err = s.Approved(project, c)
	require.NoError(t, err)
	require.True(t, ok)
}

func TestManyApproveAtOnce(t *testing.T) {
	t.Parallel()
	dir, project := t.TempDir(), t.TempDir()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			s := trust.Open(dir)
			if err := s.Approve(project, trust.Command{Shell: fmt.Sprint(i)}); err != nil {
				t.Error(err)
			}
			if _, err := s.Approved(project, trust.Command{Shell: "x"}); err != nil {
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

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", "two words", "it's", `"$HOME"`, "a\nb", "-n", "*", "ä", `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.ContainsRune(word, 0) {
			t.Skip("no argument can hold a NUL")
		}
		out, err := exec.Command("sh", "-c", "printf '%s|' "+trust.Quote([]string{word, "next"})).Output()
		require.NoError(t, err)
		require.Equal(t, word+"|next|", string(out))
	})
}
