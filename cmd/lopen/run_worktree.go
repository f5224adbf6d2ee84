package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// createSession makes a session: in the work tree in which the run was called, or in one of its own. That
// one is made after it. So whenever a kill comes, a session names the work tree and the branch, and
// the next run makes what is missing.
func (r *runCall) createSession(ctx context.Context, store *lifecycle.Store) (*lifecycle.Session, error) {
	home, own := store.Project().Name(), (*repo.Repository)(nil)
	base := ""
	if r.worktree {
		if err := r.admitWorktree(ctx, home, true); err != nil {
			return nil, err
		}
		var err error
		if own, base, err = r.beside(ctx, home); err != nil {
			return nil, err
		}
	}
	return store.CreateWith(ctx, r.module, func(id session.ID, h *session.Header) {
		if own == nil {
			h.Worktree = r.called(home)
			return
		}
		w := session.WorktreeAt(resolved(home), filepath.Join(worktreesOf(own.Top), id.String(), filepath.FromSlash(own.Prefix)))
		w.Branch, w.Base = loop.BranchOf(id), base
		h.Worktree = &w
	})
}

// called is the linked work tree in which the run was called, or nil.
func (r *runCall) called(home string) *session.Worktree {
	if r.tree == home {
		return nil
	}
	w := session.WorktreeAt(resolved(home), resolved(r.tree))
	return &w
}

// worktreesOf is the folder beside a repository's that holds the work trees of its sessions.
func worktreesOf(top string) string { return top + "-worktrees" }

// beside returns the project's repository and the commit at which a work tree beside it begins. It
// fails where none could be made.
func (r *runCall) beside(ctx context.Context, home string) (*repo.Repository, string, error) {
	own, err := r.openRepository(ctx, home)
	if err != nil {
		return nil, "", &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("--worktree: %v", err)}
	}
	if own.Dir != own.Common {
		return nil, "", &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("--worktree: the project %s is in a linked work tree, as all are of a bare repository: lopen makes some only beside the main one\n  to work in this one: the same command without --worktree", shown(home))}
	}
	base := r.base
	if base == "" {
		base = "HEAD"
	}
	if base, err = own.Commit(ctx, base); err == nil && base == "" {
		err = &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("--worktree: the repository of %s has no commit yet: git commit first", shown(home))}
	}
	if err != nil {
		return nil, "", err
	}
	return own, base, makeTrees(worktreesOf(own.Top))
}

// makeTrees makes the folder of the work trees, unless it is there.
func makeTrees(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--worktree: make the folder of the work trees, beside the project: %w", err)
	}
	return ownTrees(dir)
}

// ownTrees refuses a folder of work trees in which another user could put something in the place of one: CMD and
// the check would run on their files. Who may write above it can do that to the project as well.
func ownTrees(dir string) error {
	err := owner.Alone(dir)
	var exposed *owner.Error
	if !errors.As(err, &exposed) {
		return nil // what is not there is named as the work tree
	}
	mend := "have its owner or root remove it, or put the project into a folder of your own: the next run makes one"
	if exposed.Mend != nil {
		mend = quoted(exposed.Mend)
	}
	return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("--worktree: %v: another user could put other files in the place of a work tree there\n  %s", exposed, mend)}
}

// resolved is a path without symlinks: a work tree has one name, whichever way leads to it.
func resolved(path string) string {
	if straight, err := filepath.EvalSymlinks(path); err == nil {
		return straight
	}
	return path
}

// workTree returns the folder in whose files a session works. One that lopen is to make is made
// unless something was started in it: what is gone then is for the person to bring back.
func (r *runCall) workTree(ctx context.Context, store *lifecycle.Store, sess *lifecycle.Session) (string, error) {
	home, st := store.Project().Name(), sess.State()
	w := st.Header().Worktree
	folder := w.Folder(home)
	if w == nil {
		return folder, nil
	}
	if w.Branch != "" {
		if err := r.ownTree(ctx, home, folder, st); err != nil {
			return "", err
		}
	}
	if err := worktreeOf(home, folder); err != nil {
		return "", &lifecycle.WorktreeError{Folder: folder, Worktree: *w, Err: err}
	}
	return folder, nil
}

// ownTree makes the work tree that lopen is to make for a session, and insists on that nobody else can replace it.
func (r *runCall) ownTree(ctx context.Context, home, folder string, st *session.State) error {
	if err := r.admitWorktree(ctx, home, r.worktree); err != nil {
		return err
	}
	w := st.Header().Worktree
	if err := ownTrees(treesAbove(w, folder)); err != nil || !unused(st) {
		return err
	}
	if err := makeTrees(treesAbove(w, folder)); err != nil {
		return err
	}
	return r.makeTree(ctx, home, folder, w)
}

// treesAbove is the folder of the work trees in which lopen made the one that has a folder.
func treesAbove(w *session.Worktree, folder string) string {
	made := strings.TrimPrefix(w.Branch, loop.BranchPrefix)
	for dir := folder; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) == made {
			return filepath.Dir(dir)
		}
	}
	return filepath.Dir(folder)
}

// unused says of a session that nothing was started in it.
func unused(st *session.State) bool { return st.NumIterations() == 0 && st.ActiveTask() == "" }

// gitWorktree stands for the hooks and filters of a project's repository in the user's approvals:
// whoever typed --worktree there has approved them, as with git worktree add.
var gitWorktree = trust.Command{Argv: []string{"git", "worktree", "add"}}

// admitWorktree approves, or insists on an approval, that git makes and removes work trees of a
// project: that runs what its repository configures.
func (a *app) admitWorktree(ctx context.Context, home string, typed bool) error {
	store, err := a.approvals()
	if err != nil {
		return err
	}
	project := trust.Project{Folder: home, Repository: a.identity(ctx, home).String()}
	if typed && !a.byAgent() {
		a.approve(store, project, gitWorktree)
		return nil
	}
	found, err := store.Approved(project, gitWorktree, func(c trust.Command) trust.Command { return c })
	if err == nil && found == nil {
		err = &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("git would run the hooks and filters of the repository of %s, and that was never approved here\n  approve it: lopen run MODULE --worktree", shown(home))}
	}
	return err
}

// makeTree makes the work tree of a session, unless it is there.
func (r *runCall) makeTree(ctx context.Context, home, folder string, w *session.Worktree) error {
	defer r.crew.byItself()() // for as long as it takes: the lock of MakeWorktree has a limit
	own, err := r.openRepository(ctx, home)
	if err != nil {
		return err
	}
	top := topOf(own, folder)
	there, err := own.Worktree(ctx, top)
	if err != nil {
		return err
	}
	if there != nil && !there.Making && worktreeOf(home, folder) == nil {
		return nil
	}
	if err = own.MakeWorktree(ctx, top, w.Branch, w.Base); err != nil {
		return fmt.Errorf("%w\n  begin another session, in a work tree of its own: lopen run %s --worktree --no-resume", err, r.module)
	}
	changed, err := own.Uncommitted(ctx)
	if err == nil && len(changed) > 0 {
		fmt.Fprintf(r.stderr, "warning: not in the work tree, because it is not committed: %s (%s)\n", plain.Some(len(changed), "file"), firstOf(changed))
	}
	return err
}

// topOf is the top of the work tree that has the project's folder at the same place as its main one.
func topOf(own *repo.Repository, folder string) string {
	for range strings.Count(own.Prefix, "/") {
		folder = filepath.Dir(folder)
	}
	return folder
}

// backAgain says how a work tree comes back.
func backAgain(e *lifecycle.WorktreeError) string {
	if !errors.Is(e.Err, fs.ErrNotExist) {
		return fmt.Sprintf("  if the project was moved: %s\n", quoted([]string{"git", "worktree", "repair", e.Folder}))
	}
	add, anew := []string{"git", "worktree", "add", e.Folder}, ""
	if e.Branch != "" {
		add = append(add, e.Branch)
		anew = fmt.Sprintf("  if its branch was too: git worktree prune, and then %s\n", quoted([]string{"git", "worktree", "add", "-b", e.Branch, e.Folder}))
	}
	return fmt.Sprintf("  if it was moved:   %s, from where it is now\n  if it was removed: git worktree prune, and then %s\n"+anew, quoted([]string{"git", "worktree", "move", "FROM", e.Folder}), quoted(add))
}

// sameTree refuses to resume a session that works in other files than those of the run: a work tree of
// its own was asked for, or the run was called in another one. What lopen made for the session is
// the exception: nobody else works there.
func (r *runCall) sameTree(store *lifecycle.Store, old lifecycle.Info) error {
	if r.noResume {
		return nil
	}
	st, _, err := store.Read(old.ID)
	if err != nil {
		return nil //nolint:nilerr // opening it says what is wrong with it
	}
	w := st.Header().Worktree
	folder := w.Folder(store.Project().Name())
	if w != nil && w.Branch != "" || !r.worktree && git.Same(folder, r.tree) {
		return nil
	}
	here, flags := "this is "+shown(r.tree), []string{"--no-resume"}
	if r.worktree {
		here, flags = "not in a work tree of its own", []string{"--worktree", "--no-resume"}
	}
	return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("the unfinished session %s of module %s works in %s, and %s\n  go on with it:  %s\n  begin anew:     lopen run %s %s",
		old.ID, r.module, shown(folder), here, quoted([]string{"lopen", "-C", folder, "run", r.module}), r.module, quoted(flags))}
}
