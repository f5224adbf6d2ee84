package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newWorktreeRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove SESSION...",
		Short: "Remove work trees, with their branches, that are merged and in which nothing is uncommitted",
		Long: `Remove the work tree that was made for a session, and its branch. That is refused while the
branch has commits that no other branch has, while something there is not committed, while
the session is not complete, and while a run or a command works there. What git ignores there goes as well. The session stays,
with its checkpoints. What has no session any more is named by its branch, lopen/SESSION.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editStore(func(store *lifecycle.Store) error {
				var errs []error
				for _, name := range args {
					errs = append(errs, a.removeWorktree(cmd.Context(), store, name))
				}
				return errors.Join(errs...)
			})
		},
	}
}

// removeWorktree removes one work tree and its branch. Git has the last word on both: it is never
// forced.
func (a *app) removeWorktree(ctx context.Context, store *lifecycle.Store, name string) error {
	if err := a.admitWorktree(ctx, store.Project().Name(), false); err != nil {
		return err
	}
	v, err := a.worktrees(ctx, store)
	if err != nil {
		return err
	}
	rows, err := v.all(ctx)
	if err != nil {
		return err
	}
	row, err := v.named(rows, name)
	if err != nil {
		return err
	}
	if row.Module != "" { // no run of it begins meanwhile
		lock, err := store.LockModule(row.Module)
		if err != nil {
			return err
		}
		defer func() { _ = lock.Unlock() }()
	}
	if err := v.removable(ctx, rows, row); err != nil {
		return err
	}
	if row.Path != "" {
		if err := v.removeFolder(ctx, topOf(v.own, row.Path)); err != nil {
			return err
		}
	}
	if tip, err := v.own.Commit(ctx, "refs/heads/"+row.Branch); err != nil || tip == "" {
		return err
	}
	if err := v.own.DeleteBranch(ctx, row.Branch); err != nil {
		return fmt.Errorf("the branch %s stays: %w", row.Branch, err)
	}
	fmt.Fprintf(a.stderr, "removed the branch %s\n", shown(row.Branch))
	return nil
}

// removeFolder removes a work tree, if it is there.
func (v *worktreeView) removeFolder(ctx context.Context, top string) error {
	there, err := v.own.Worktree(ctx, top)
	if err != nil {
		return err
	}
	if there != nil {
		if err := v.own.RemoveWorktree(ctx, top); err != nil {
			return err
		}
		fmt.Fprintf(v.stderr, "removed the work tree %s\n", shown(top))
	}
	if parent := filepath.Dir(top); parent == worktreesOf(v.own.Top) {
		_ = os.Remove(parent) // if it was the last one
	}
	return nil
}

// named is the work tree of a session, or the one on a branch of lopen's.
func (v *worktreeView) named(rows []worktreeRow, name string) (*worktreeRow, error) {
	if i := slices.IndexFunc(rows, func(r worktreeRow) bool { return r.Own && r.Branch == name && r.Session == "" }); i >= 0 {
		return &rows[i], nil
	}
	id, err := v.store.Resolve(strings.TrimPrefix(name, loop.BranchPrefix))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(rows, func(r worktreeRow) bool { return r.Session == id.String() })
	if i >= 0 {
		return &rows[i], nil
	}
	err = fmt.Errorf("session %s has no work tree of its own: %w", id, lifecycle.ErrNotFound)
	if i := slices.IndexFunc(rows, func(r worktreeRow) bool { return r.Module == id.Module }); i >= 0 { // an older one
		err = fmt.Errorf("%w; session %s has one", err, rows[i].Session)
	}
	return nil, err
}

// there says whether something is in the place of the folder.
func (r *worktreeRow) there() bool {
	_, err := os.Lstat(r.Path)
	return !errors.Is(err, os.ErrNotExist)
}

// clean returns an error that names what is not committed.
func (v *worktreeView) clean(ctx context.Context, row *worktreeRow) error {
	if row.Path == "" || !row.there() {
		return nil
	}
	left, err := v.uncommitted(ctx, row.Path)
	if err == nil && left != "" {
		err = fmt.Errorf("in %s is not committed: %s", shown(row.Path), left)
	}
	return err
}

// elsewhere returns an error unless HEAD or another branch has all commits of a branch.
func (v *worktreeView) elsewhere(ctx context.Context, row *worktreeRow) error {
	if row.Ahead == 0 {
		return nil
	}
	others, err := v.own.Others(ctx, row.Branch)
	if err != nil || len(others) > 0 {
		return err
	}
	remove := quoted([]string{"git", "branch", "-D", row.Branch})
	if row.Path != "" {
		remove = quoted([]string{"git", "worktree", "remove", row.Path}) + ", and then " + remove
	}
	return fmt.Errorf("no other branch has its %s; %s\n  if what they change is merged in another way (squash, rebase): %s", plain.Some(row.Ahead, "commit"), quoted([]string{"git", "merge", row.Branch}), remove)
}

// goesOn returns a session that is not complete and works in the work tree of a row, or nil. A fork
// shares that of the session that it comes from.
func goesOn(rows []worktreeRow, row *worktreeRow) *worktreeRow {
	i := slices.IndexFunc(rows, func(r worktreeRow) bool {
		return r.Session != "" && r.Branch == row.Branch && r.Status != string(session.StatusComplete)
	})
	if i < 0 {
		return nil
	}
	return &rows[i]
}

// removable returns an error that says what would be lost with a work tree.
func (v *worktreeView) removable(ctx context.Context, rows []worktreeRow, row *worktreeRow) error {
	refuse := func(format string, args ...any) error {
		return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%s is not removed: ", shown(row.Branch)) + fmt.Sprintf(format, args...)}
	}
	if !row.Own {
		return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%s was not made by lopen: %s removes it", shown(row.Path), quoted([]string{"git", "worktree", "remove", row.Path}))}
	}
	at := func(r worktreeRow) bool { return r.Holder != "" && row.Path != "" && repo.Same(r.Path, row.Path) }
	if i := slices.IndexFunc(rows, at); i >= 0 {
		return &loop.Exit{Code: loop.ExitBusy, Reason: fmt.Sprintf("%s is not removed: session %s works there: %s", shown(row.Branch), rows[i].Session, plain.Line(rows[i].Holder))}
	}
	if r := goesOn(rows, row); r != nil {
		then := row.Session // another session's, as long as it is there
		if row.Session == r.Session {
			then = row.Branch
		}
		return refuse("session %s is not complete and goes on there: lopen run %s\n  to give it up: lopen session delete %s, and then lopen worktree remove %s", r.Session, r.Module, plain.Quote(r.Session), plain.Quote(then))
	}
	if err := v.elsewhere(ctx, row); err != nil {
		return refuse("%v", err)
	}
	if row.Problem != "" && row.Session != "" && row.there() {
		return refuse("%s: %s", shown(row.Path), plain.Line(row.Problem))
	}
	if err := v.clean(ctx, row); err != nil {
		return refuse("%v", err)
	}
	if _, here, err := v.places(); err != nil || row.Path != "" && repo.Same(here, row.Path) {
		return errors.Join(err, refuse("this is the folder that would go"))
	}
	return nil
}
