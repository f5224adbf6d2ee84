package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/scratch"
	"github.com/lopen-dev/lopen/writer/mount"
)

// A Worktree is a linked work tree as git knows it.
type Worktree struct {
	Path   string // of its top
	Branch string // that is checked out, without refs/heads/; "" for a detached HEAD
	Making bool   // MakeWorktree has begun it and was cut off
}

// making is the reason of the lock that a work tree has while it is made. Nobody works in one that
// has it.
const making = "lopen makes it"

// ask starts a git that reads references and commits, so that it may be asked before anybody approved
// what the repository configures.
func (r *Repository) ask(ctx context.Context, args ...string) ([]byte, error) {
	return r.Git(ctx, Command{Args: args, Limit: openPatience, alone: true, inert: true})
}

// Worktrees returns the linked work trees of the repository, also those whose folder is gone.
func (r *Repository) Worktrees(ctx context.Context) (all []Worktree, err error) {
	list := []string{"worktree", "list", "--porcelain", "-z"}
	out, err := r.ask(ctx, list...)
	if err != nil && r.complete() {
		out, err = r.ask(ctx, list...)
	}
	if err != nil {
		return nil, err
	}
	for i, part := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00\x00") {
		var w Worktree
		for line := range strings.SplitSeq(part, "\x00") {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "worktree":
				w.Path = filepath.FromSlash(value)
			case "branch":
				w.Branch = strings.TrimPrefix(value, "refs/heads/")
			case "locked":
				w.Making = value == making
			}
		}
		if i > 0 && w.Path != "" { // the first one is the main work tree
			all = append(all, w)
		}
	}
	return all, nil
}

// complete writes what git was about to write into the file commondir of a work tree that is being
// made, and reports whether there was one. Git opens the file and then writes it. Between the two, and
// for good after a kill there, no git can list the work trees of the repository.
func (r *Repository) complete() (found bool) {
	trees := filepath.Join(r.Common, "worktrees")
	entries, _ := os.ReadDir(trees) // what cannot be read is the error of git
	for _, entry := range entries {
		name := filepath.Join(trees, entry.Name(), "commondir")
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			found = os.WriteFile(name, []byte("../..\n"), 0o666) == nil || found //nolint:gosec // the mode is git's
		}
	}
	return found
}

// Worktree returns the linked work tree whose top is path, or nil.
func (r *Repository) Worktree(ctx context.Context, path string) (*Worktree, error) {
	all, err := r.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(w Worktree) bool { return Same(w.Path, path) }); i >= 0 {
		return &all[i], nil
	}
	return nil, nil
}

// Same compares the paths of two folders that need not be there; what is above them is.
func Same(a, b string) bool {
	above := func(p string) string {
		dir, err := filepath.EvalSymlinks(filepath.Dir(p))
		if err != nil {
			dir = filepath.Dir(p)
		}
		return filepath.Join(dir, filepath.Base(p))
	}
	return above(a) == above(b)
}

// MakeWorktree makes a linked work tree at path, on a new branch that begins at the commit base.
// The branch may be there already, at base: a MakeWorktree that was cut off leaves it, and leaves
// a work tree that nobody has worked in, which is made anew. After an error there may be such ones.
// It waits for one in another process.
func (r *Repository) MakeWorktree(ctx context.Context, path, branch, base string) error {
	of := r
	r, release, err := of.held(ctx)
	if err != nil {
		return err
	}
	defer release()
	lock := r.holdMaking(ctx)
	if lock != nil {
		defer lock.Close()
	}
	left, err := r.Worktree(ctx, path)
	if err != nil {
		return err
	}
	if left != nil {
		if !left.Making {
			return fmt.Errorf("make work tree %s: it is there already, on the branch %q", path, left.Branch)
		}
		if err := r.removeUnmade(ctx, path); err != nil {
			return err
		}
	}
	args := []string{"worktree", "add", "--quiet", "--lock", "--reason", making}
	switch tip, err := r.Commit(ctx, "refs/heads/"+branch); {
	case err != nil:
		return err
	case tip == "":
		args = append(args, "--no-track", "-b", branch, path, base)
	case tip == base:
		args = append(args, path, branch)
	default:
		return fmt.Errorf("make work tree %s: the branch %s is there already, at another commit", path, branch)
	}
	add := Command{Args: args, inherit: lock}
	if r.frozen {
		err = of.addFrozen(ctx, path, add)
	} else {
		_, err = r.Git(ctx, add)
	}
	if err != nil {
		return err
	}
	_, err = r.Git(ctx, Command{Args: []string{"worktree", "unlock", path}})
	return err
}

// addFrozen has git make a work tree without files, for which it runs nothing, and then the files with the
// configuration of the Begin. Git would write the path of that, which goes at once, into the work tree.
func (r *Repository) addFrozen(ctx context.Context, path string, add Command) error {
	add.Args, add.inert = slices.Insert(add.Args, 2, "--no-checkout"), true
	if _, err := r.From(nil, nil).Git(ctx, add); err != nil {
		return err
	}
	tree, err := Open(ctx, path, r.environ)
	if err == nil {
		_, err = tree.From(r.begin, nil).Git(ctx, Command{Args: []string{"reset", "-q", "--hard"}})
	}
	return err
}

const (
	makingPatience = 5 * time.Second // a git that is asked to end has ended after grace
	makingDelay    = 10 * time.Millisecond
)

// holdMaking locks the folder that all work trees share. The git that makes one has the lock too, so
// that it is held until the git of a killed lopen has taken its half away. As a hook can leave a
// program that keeps it, the caller goes on without it after five seconds, as where the file system has
// no locks: then it is nil.
func (r *Repository) holdMaking(ctx context.Context) *os.File {
	dir, err := os.Open(r.Common)
	if err != nil {
		return nil // git says what is wrong with it
	}
	tick := time.NewTicker(makingDelay)
	defer tick.Stop()
	for begun := time.Now(); ; {
		held, err := scratch.Lock(dir)
		if held {
			return dir
		}
		if err != nil || time.Since(begun) > makingPatience || ctx.Err() != nil {
			_ = dir.Close()
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// removeUnmade removes a work tree that is being made. Git writes .git before all other files: where it
// is not whole, nothing else is there.
func (r *Repository) removeUnmade(ctx context.Context, path string) error {
	err := r.RemoveWorktree(ctx, path, "--force", "--force")
	if err == nil {
		return nil
	}
	if rerr := os.Remove(filepath.Join(path, ".git")); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		return errors.Join(err, rerr)
	}
	if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		return errors.Join(err, rerr)
	}
	return r.RemoveWorktree(ctx, path, "--force", "--force")
}

// RemoveWorktree has git remove a work tree, unless something is mounted in it: git would remove
// what is on the mount.
func (r *Repository) RemoveWorktree(ctx context.Context, path string, flags ...string) error {
	at, err := mount.FindAt(path)
	if at != "" {
		err = &fs.PathError{Op: "remove work tree", Path: filepath.Join(filepath.Dir(path), at), Err: mount.ErrMounted}
	}
	if err != nil {
		return err
	}
	_, err = r.Git(ctx, Command{Args: append(append([]string{"worktree", "remove"}, flags...), path)})
	return err
}

// Commit returns the commit that a name stands for, or "" if there is none of that name.
func (r *Repository) Commit(ctx context.Context, name string) (string, error) {
	out, err := r.ask(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if ExitOf(err) == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// Ahead returns how many commits a branch has that the commit of the name since does not have.
func (r *Repository) Ahead(ctx context.Context, since, branch string) (int, error) {
	out, err := r.ask(ctx, "rev-list", "--count", since+"..refs/heads/"+branch, "--")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// Conflicts returns the paths at which merging a branch into HEAD would conflict now. The boolean
// is false where git cannot say that, before version 2.38.
func (r *Repository) Conflicts(ctx context.Context, branch string) (paths []string, known bool) {
	_, paths, err := r.mergeTree(ctx, "HEAD", branch)
	return paths, err == nil
}

// Merge merges a branch into a commit, in no work tree. It returns the commit of the merge, which no
// branch has, or the paths at which they conflict. The error may be that git cannot do that,
// before version 2.38.
func (r *Repository) Merge(ctx context.Context, at, branch string) (commit string, conflicts []string, err error) {
	if n, err := r.Ahead(ctx, at, branch); err != nil || n == 0 {
		return at, nil, err
	}
	tree, conflicts, err := r.mergeTree(ctx, at, branch)
	if err != nil || len(conflicts) > 0 {
		return "", conflicts, err
	}
	out, err := r.Git(ctx, Command{Args: []string{"commit-tree", tree, "-p", at, "-p", "refs/heads/" + branch, "-m", "Merge branch '" + branch + "'"}})
	return strings.TrimSpace(string(out)), nil, err
}

// mergeTree returns the tree of a merge, or the paths at which it conflicts.
func (r *Repository) mergeTree(ctx context.Context, at, branch string) (tree string, conflicts []string, err error) {
	out, err := r.Git(ctx, Command{Args: []string{"merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", at, "refs/heads/" + branch}})
	tree, rest, _ := strings.Cut(string(out), "\x00")
	if ExitOf(err) != 1 {
		return strings.TrimSpace(tree), nil, err
	}
	for path := range strings.SplitSeq(rest, "\x00") {
		if path != "" && !slices.Contains(conflicts, path) {
			conflicts = append(conflicts, path)
		}
	}
	if len(conflicts) > 0 {
		err = nil
	}
	return tree, conflicts, err
}

// Others returns the references of the branches, also of remotes, that have all commits of a branch.
func (r *Repository) Others(ctx context.Context, branch string) (names []string, err error) {
	out, err := r.ask(ctx, "for-each-ref", "--format=%(refname)", "--contains=refs/heads/"+branch, "refs/heads", "refs/remotes")
	for name := range strings.FieldsSeq(string(out)) {
		if name != "refs/heads/"+branch {
			names = append(names, name)
		}
	}
	return names, err
}

// DeleteBranch deletes a branch whose commits HEAD or another branch has. Git compares with HEAD, or
// with what the branch is said to follow.
func (r *Repository) DeleteBranch(ctx context.Context, branch string) error {
	ahead, err := r.Ahead(ctx, "HEAD", branch)
	if err != nil {
		return err
	}
	var follow []string
	if ahead > 0 {
		others, err := r.Others(ctx, branch)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			follow = []string{"-c", "branch." + branch + ".remote=.", "-c", "branch." + branch + ".merge=" + others[0]}
		}
	}
	_, err = r.Git(ctx, Command{Args: append(follow, "branch", "--delete", branch)})
	return err
}

// Branches returns the branches whose names begin with a prefix.
func (r *Repository) Branches(ctx context.Context, prefix string) ([]string, error) {
	out, err := r.ask(ctx, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/"+prefix)
	return strings.Fields(string(out)), err
}

// Uncommitted returns the paths beneath the folder that was opened, relative to it, that differ from
// HEAD or are untracked and not ignored. Of an untracked folder it is the folder.
func (r *Repository) Uncommitted(ctx context.Context) ([]string, error) {
	return r.status(ctx, "--untracked-files=normal")
}
