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

// begun begins a script with all that git writes of a work tree before its files, as of version 2.39.
const begun = `git worktree add -q --no-checkout --lock --reason "lopen makes it" -b lopen/s "$W"; rm -rf "$G"/logs; `

// Whatever a cut leaves of a work tree that was being made, the next call makes it whole. What is
// somebody's stays.
func TestMakeWorktreeAfterACut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left   string // a script in the repository; $W is the work tree, and $G what git knows of it
		err    string
		others int // work trees
	}{
		"nothing":             {left: ":"},
		"the branch":          {left: `git branch lopen/s`},
		"a whole one, locked": {left: `git worktree add -q --lock --reason "lopen makes it" -b lopen/s "$W"`},
		"half of the files":   {left: `git worktree add -q --lock --reason "lopen makes it" -b lopen/s "$W" && rm "$W"/kept "$(git -C "$W" rev-parse --git-dir)/index"`},
		"no file":             {left: `git worktree add -q --no-checkout --lock --reason "lopen makes it" -b lopen/s "$W"`},
		"half of .git":        {left: `git worktree add -q --no-checkout --lock --reason "lopen makes it" -b lopen/s "$W" && : >"$W/.git"`},
		"an empty folder":     {left: `git worktree add -q --no-checkout --lock --reason "lopen makes it" -b lopen/s "$W" && rm "$W/.git"`},
		"no folder":           {left: `git worktree add -q --no-checkout --lock --reason "lopen makes it" -b lopen/s "$W" && rm -r "$W"`},

		// Between each two files that git writes for a work tree, and within each.
		"nothing of it but a folder": {left: begun + `rm -r "$W" "$G"/*`},
		"its lock, empty":            {left: begun + `rm -r "$W" "$G"/[!l]*; : >"$G/locked"`},
		"its lock":                   {left: begun + `rm -r "$W" "$G"/[!l]*`},
		"its name, empty":            {left: begun + `rm "$W/.git" "$G"/HEAD "$G"/commondir; : >"$G/gitdir"`},
		"its name":                   {left: begun + `rm "$W/.git" "$G"/HEAD "$G"/commondir`},
		"its .git, empty":            {left: begun + `rm "$G"/HEAD "$G"/commondir; : >"$W/.git"`},
		"its .git":                   {left: begun + `rm "$G"/HEAD "$G"/commondir`},
		"its HEAD, empty":            {left: begun + `rm "$G"/commondir; : >"$G/HEAD"`},
		"its HEAD":                   {left: begun + `rm "$G"/commondir; git rev-parse HEAD >"$G/HEAD"`},
		"the way back, empty":        {left: begun + `git rev-parse HEAD >"$G/HEAD"; : >"$G/commondir"`},
		"a HEAD without a branch":    {left: begun + `git rev-parse HEAD >"$G/HEAD"`},

		"another one's way back, empty": {left: `git worktree add -q --detach ../o; : >.git/worktrees/o/commondir`, others: 1},

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
			cut.Dir, cut.Env = p.dir, append(slices.Clip(p.environ), "W="+tree, "G="+filepath.Join(p.dir, ".git", "worktrees", "s"))
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
			require.Contains(t, all, repo.Worktree{Path: tree, Branch: "lopen/s"})
			require.Len(t, all, 1+c.others)
		})
	}
}
