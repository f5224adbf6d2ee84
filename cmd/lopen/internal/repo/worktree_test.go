package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
)

// Whatever a cut leaves of a work tree that was being made, the next call makes it whole. What is
// somebody's stays.
func TestMakeWorktreeAfterACut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left string // a script in the repository; $W is the work tree
		err  string
	}{
		"nothing":             {left: ":"},
		"the branch":          {left: `git branch lopen/s`},
		"a whole one, locked": {left: `git worktree add -q --lock --reason "lopen makes it" -b lopen/s "$W"`},
		"half of the files":   {left: `git worktree add -q --lock --reason "lopen makes it" -b lopen/s "$W" && rm "$W"/kept "$(git -C "$W" rev-parse --git-dir)/index"`},
		"no file":             {left: `git worktree add -q --no-checkout --lock --reason "lopen makes it" -b lopen/s "$W"`},
		"half of .git":        {left: `git worktree add -q --no-checkout --lock --reason "lopen makes it" -b lopen/s "$W" && : >"$W/.git"`},
		"an empty folder":     {left: `git worktree add -q --no-checkout --lock --reason "lopen makes it" -b lopen/s "$W" && rm "$W/.git"`},
		"no folder":           {left: `git worktree add -q --no-checkout --lock --reason "lopen makes it" -b lopen/s "$W" && rm -r "$W"`},

		"another branch of the name": {left: `git commit -q --allow-empty -m two && git branch lopen/s && git reset -q --hard HEAD~`, err: "is there already, at another commit"},
		"somebody's work tree":       {left: `git worktree add -q -b own "$W" && echo mine >"$W/a"`, err: "it is there already"},
		"somebody's folder":          {left: `mkdir -p "$W" && echo mine >"$W/a"`, err: "already exists"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			p.write("a", "committed\n")
			p.git("add", "a")
			p.git("commit", "-qm", "second")
			r, err := repo.Open(t.Context(), p.dir, p.environ)
			require.NoError(t, err)
			tree := filepath.Join(filepath.Dir(p.dir), "trees", "s")
			cut := exec.Command("sh", "-ec", c.left)
			cut.Dir, cut.Env = p.dir, append(slices.Clip(p.environ), "W="+tree)
			out, err := cut.CombinedOutput()
			require.NoError(t, err, "%s", out)
			base, err := r.Commit(t.Context(), "HEAD")
			require.NoError(t, err)
			err = r.MakeWorktree(t.Context(), tree, "lopen/s", base)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				if data, err := os.ReadFile(filepath.Join(tree, "a")); err == nil {
					require.Equal(t, "mine\n", string(data))
				}
				return
			}
			require.NoError(t, err)
			require.Empty(t, p.git("-C", tree, "status", "--porcelain"))
			require.Equal(t, "lopen/s", p.git("-C", tree, "symbolic-ref", "--short", "HEAD"))
			all, err := r.Worktrees(t.Context())
			require.NoError(t, err)
			require.Equal(t, []repo.Worktree{{Path: tree, Branch: "lopen/s"}}, all)
		})
	}
}
