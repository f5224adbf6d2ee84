package workload

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestFillAndStep(t *testing.T) {
	t.Parallel()
	id, err := session.NewID("bench", time.Unix(0, 0), 1)
	require.NoError(t, err)
	for _, n := range []int{1, 100, 101, 1000} {
		st, err := session.New(id, time.Unix(0, 0))
		require.NoError(t, err)
		e := st.Edit()
		Fill(e, n)
		st, err = e.State()
		require.NoError(t, err)
		seen := map[int]bool{}
		for i := range n {
			s := StepOf(i, n)
			seen[s.Task] = true
			s.Iteration = i == 0
			e := st.Edit()
			require.NoError(t, s.Apply(e))
			if i < 10 {
				next, err := e.State()
				require.NoError(t, err)
				changed := 0
				session.Diff(st, next, func(string, *session.Task, *session.Task) bool { changed++; return true })
				require.Equal(t, 1, changed)
			}
		}
		require.Len(t, seen, n, "every task has its turn")
		require.Error(t, Step{Task: n}.Apply(st.Edit()))
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	require.Len(t, Text(200, 1), 200)
	require.Equal(t, Text(4096, 3), Text(4096, 3))
	require.NotEqual(t, Text(4096, 3), Text(4096, 4))
}

func TestTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names, err := Tree(dir, 50)
	require.NoError(t, err)
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, name)
		}
		return err
	}))
	require.Len(t, names, 51)
	require.ElementsMatch(t, found, names)
	_, err = Tree(filepath.Join(dir, ".gitignore"), 1)
	require.Error(t, err, "there is a file in the way")
}

func TestGit(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	names, err := Tree(tree, 3)
	require.NoError(t, err)
	git := Git(filepath.Join(t.TempDir(), "git"), tree)
	if git == nil {
		t.Skip("no git here")
	}
	clean := []string{"diff", "--quiet"}
	require.Error(t, git(clean...), "there is no repository")
	require.NoError(t, git("init", "-q"))
	require.NoError(t, git("add", "-A"))
	require.NoError(t, git(clean...), "the files are in the index")
	require.NoError(t, os.WriteFile(names[1], []byte("changed"), 0o600))
	require.Error(t, git(clean...))
}
