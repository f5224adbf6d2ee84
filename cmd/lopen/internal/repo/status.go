package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/writer/plain"
)

// A Head is where HEAD is.
type Head struct {
	Commit string // "" before the first commit
	Branch string // without refs/heads/; "" if HEAD is detached
	tree   string // of the commit; the empty one before the first commit
}

// Head returns where HEAD is.
func (r *Repository) Head(ctx context.Context) (h Head, err error) {
	out, err := r.Git(ctx, Command{Args: []string{"rev-parse", "HEAD^{commit}", "HEAD^{tree}", "--symbolic-full-name", "HEAD"}})
	if words := strings.Fields(string(out)); err == nil && len(words) == 3 {
		h.Commit, h.tree = words[0], words[1]
		h.Branch = branchOf(words[2])
		return h, nil
	}
	if ctx.Err() != nil {
		return h, ctx.Err()
	}
	ref, noRef := r.line(ctx, "symbolic-ref", "-q", "HEAD")
	if h.Branch = branchOf(ref); noRef != nil || h.Branch == "" {
		return h, err
	}
	if _, err := r.line(ctx, "rev-parse", "-q", "--verify", "HEAD"); ExitOf(err) != 1 { // 1: there is no commit yet
		return h, fmt.Errorf("HEAD of %s is not understood: %w", r.Top, err)
	}
	h.tree, err = r.line(ctx, "hash-object", "-t", "tree", os.DevNull)
	return h, err
}

// branchOf returns the branch of a reference, "" for HEAD itself.
func branchOf(ref string) string {
	branch, _ := strings.CutPrefix(ref, "refs/heads/")
	if branch == "HEAD" {
		return ""
	}
	return branch
}

// unfinished are the files and folders of a git directory that stand for something that has
// begun and that only the person can end.
var unfinished = []struct{ name, what string }{
	{"MERGE_HEAD", "a merge"}, {"rebase-merge", "a rebase"}, {"rebase-apply", "a rebase"}, {"CHERRY_PICK_HEAD", "a cherry-pick"},
	{"REVERT_HEAD", "a revert"}, {"BISECT_LOG", "a bisect"}, {"sequencer", "a cherry-pick or revert"},
}

// Unfinished returns what is in progress in the work tree and forbids a commit, as in "a
// rebase", or "".
func (r *Repository) Unfinished() string {
	for _, u := range unfinished {
		if _, err := os.Lstat(filepath.Join(r.Dir, u.name)); err == nil {
			return u.what
		}
	}
	return ""
}

// CanCommit returns an error if git could not make a commit: something is in progress, or
// git does not know who the person is. Hooks and signing are not tried.
func (r *Repository) CanCommit(ctx context.Context) error {
	if what := r.Unfinished(); what != "" {
		return fmt.Errorf("%s is in progress in %s: end it first", what, r.Top)
	}
	_, err := r.Git(ctx, Command{Args: []string{"var", "GIT_COMMITTER_IDENT"}})
	return err
}

// Differing returns the paths beneath the folder that was opened, relative to it, that differ
// from HEAD in the work tree or in the index, or are untracked and not ignored.
func (r *Repository) Differing(ctx context.Context) ([]string, error) {
	return r.status(ctx, "--untracked-files=all", "--ignore-submodules=dirty")
}

// status returns the paths that git status names beneath the folder that was opened, relative to
// it.
func (r *Repository) status(ctx context.Context, options ...string) (paths []string, err error) {
	args := append([]string{"--no-optional-locks", "status", "--porcelain=v1", "-z", "--no-renames"}, options...)
	out, err := r.Git(ctx, Command{Args: append(args, "--", ".")})
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if len(entry) > 3 { // two letters and a space
			paths = append(paths, strings.TrimPrefix(entry[3:], r.Prefix))
		}
	}
	return paths, nil
}

// Switch puts HEAD on a branch without changing a file: a new branch begins at HEAD, and one
// that HEAD contains is moved forward to it. Any other branch is refused.
func (r *Repository) Switch(ctx context.Context, branch string) error {
	head, err := r.Head(ctx)
	if err != nil || head.Branch == branch {
		return err
	}
	if head.Commit == "" {
		_, err := r.Git(ctx, Command{Args: []string{"symbolic-ref", "HEAD", "refs/heads/" + branch}})
		return err
	}
	switch _, err := r.Git(ctx, Command{Args: []string{"rev-parse", "-q", "--verify", "refs/heads/" + branch}}); ExitOf(err) {
	case 1:
		_, err = r.Git(ctx, Command{Args: []string{"checkout", "-q", "--no-track", "-b", branch}})
		return err
	case -1:
		if err != nil {
			return err
		}
	default:
		return err
	}
	if _, err := r.Git(ctx, Command{Args: []string{"merge-base", "--is-ancestor", "refs/heads/" + branch, "HEAD"}}); ExitOf(err) == 1 {
		return fmt.Errorf("branch %s has commits that HEAD has not: type git switch %s", branch, plain.Quote(branch))
	} else if err != nil {
		return err
	}
	_, err = r.Git(ctx, Command{Args: []string{"checkout", "-q", "--no-track", "-B", branch}})
	return err
}
