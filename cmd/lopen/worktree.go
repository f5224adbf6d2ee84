package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newWorktree(a *app) *cobra.Command {
	return group("worktree", "Show and remove the work trees of sessions", newWorktreeList(a), newWorktreeRemove(a))
}

// A worktreeRow is a work tree as `worktree list --json` prints it.
type worktreeRow struct {
	Session string `json:"session,omitempty"` // "" where none is known
	Module  string `json:"module,omitempty"`
	Status  string `json:"status,omitempty"`  // of the session
	Path    string `json:"path,omitempty"`    // "" for a branch without a work tree
	Branch  string `json:"branch,omitempty"`  // lopen's; of a work tree that a person made the one that is checked out
	Own     bool   `json:"own"`               // lopen made it
	Ahead   int    `json:"ahead"`             // commits that HEAD of the project does not have
	Merged  bool   `json:"merged"`            // HEAD has all of the branch
	Dirty   bool   `json:"dirty"`             // something there differs from HEAD, or is untracked and not ignored
	Holder  string `json:"holder,omitempty"`  // who works in it
	Problem string `json:"problem,omitempty"` // what is not as it should be

	tip string // the commit of the branch; "" if there is no such branch
}

// A worktreeView shows the work trees of a project.
type worktreeView struct {
	*app
	store *lifecycle.Store
	own   *repo.Repository
	trees []repo.Worktree
}

func (a *app) worktrees(ctx context.Context, store *lifecycle.Store) (*worktreeView, error) {
	own, err := a.openRepository(ctx, store.Project().Name())
	if err != nil {
		return nil, err
	}
	trees, err := own.Worktrees(ctx)
	return &worktreeView{app: a, store: store, own: own, trees: trees}, err
}

// all are the work trees of sessions, the newest session first, and then what has no session any
// more: work trees on branches of lopen's, and such branches.
func (v *worktreeView) all(ctx context.Context) ([]worktreeRow, error) {
	infos, err := v.store.List()
	if err != nil {
		return nil, err
	}
	rows := []worktreeRow{}
	known := map[string]bool{} // branches
	for _, info := range infos {
		st, _, _ := v.store.Read(info.ID) // what cannot be read says nothing of its work tree
		if st == nil || st.Header().Worktree == nil {
			continue
		}
		row, err := v.row(ctx, info.ID, st)
		if err != nil {
			return nil, err
		}
		known[row.Branch] = true
		if gone := row.Own && row.tip == "" && !row.there(); !gone || st.Status() != session.StatusComplete { // else it was removed
			rows = append(rows, row)
		}
	}
	left, err := v.leftovers(ctx, known)
	return append(rows, left...), err
}

// leftovers are the work trees on branches of lopen's, and such branches, whose session is not
// here any more: all but the known ones.
func (v *worktreeView) leftovers(ctx context.Context, known map[string]bool) (rows []worktreeRow, err error) {
	branches, err := v.own.Branches(ctx, loop.BranchPrefix)
	for _, branch := range branches {
		id, ours := strings.CutPrefix(branch, loop.BranchPrefix)
		if _, err := session.ParseID(id); known[branch] || !ours || err != nil {
			continue // else it is a person's branch, or one of another kind
		}
		row := worktreeRow{Branch: branch, Own: true, Problem: "its session is not here"}
		if i := slices.IndexFunc(v.trees, func(t repo.Worktree) bool { return t.Branch == branch }); i >= 0 {
			row.Path = v.trees[i].Path
		}
		if err := v.state(ctx, &row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, err
}

// row is the work tree of a session.
func (v *worktreeView) row(ctx context.Context, id session.ID, st *session.State) (worktreeRow, error) {
	w := st.Header().Worktree
	home := v.store.Project().Name()
	folder := w.Folder(home)
	row := worktreeRow{Session: id.String(), Module: id.Module, Status: string(st.Status()), Path: folder, Branch: w.Branch, Own: w.Branch != ""}
	if owner, err := v.store.Holder(id); err == nil && owner != nil {
		row.Holder = owner.String()
	} else if o, err := v.store.Abandoned(id); err == nil && o != nil {
		row.Holder = "a command of an earlier run"
	}
	var is *repo.Worktree
	if i := slices.IndexFunc(v.trees, func(t repo.Worktree) bool { return repo.Same(t.Path, topOf(v.own, folder)) }); i >= 0 {
		is = &v.trees[i]
	}
	if !row.Own && is != nil {
		row.Branch = is.Branch
	}
	row.Problem = v.problem(&row, is)
	return row, v.state(ctx, &row)
}

// problem says what is not as it should be with the folder of a row; is is what git knows there, or nil.
func (v *worktreeView) problem(row *worktreeRow, is *repo.Worktree) string {
	switch _, err := os.Stat(row.Path); {
	case is != nil && is.Making:
		return "it is not made yet"
	case errors.Is(err, os.ErrNotExist):
		return "the folder is gone"
	case err != nil:
		return err.Error()
	case worktreeOf(v.store.Project().Name(), row.Path) != nil:
		return "the folder is no work tree of this repository"
	case row.Own && is != nil && is.Branch == "":
		return "no branch is checked out there"
	case row.Own && is != nil && is.Branch != row.Branch:
		return "another branch is checked out there: " + is.Branch
	}
	return ""
}

// state adds to a row what git says of the branch and the files.
func (v *worktreeView) state(ctx context.Context, row *worktreeRow) error {
	add := func(problem string) { row.Problem = strings.TrimPrefix(row.Problem+"; "+problem, "; ") }
	if row.Branch != "" {
		var err error
		row.tip, err = v.own.Commit(ctx, "refs/heads/"+row.Branch)
		switch {
		case err != nil:
			return err
		case row.tip == "":
			add("the branch is gone")
		default:
			if row.Ahead, err = v.own.Ahead(ctx, "HEAD", row.Branch); err != nil {
				return err
			}
			row.Merged = row.Ahead == 0
		}
	}
	if row.Path == "" || row.Problem != "" && worktreeOf(v.store.Project().Name(), row.Path) != nil {
		return nil
	}
	there, err := git.Look(ctx, row.Path, v.environ)
	if row.Dirty = there.Dirty; err != nil {
		add("whether something there is not committed is not known: " + err.Error())
	}
	return nil
}

// uncommitted names what is not committed in a work tree; "" for nothing. Git runs the filters of
// the repository for it.
func (a *app) uncommitted(ctx context.Context, folder string) (string, error) {
	there, err := a.openRepository(ctx, folder)
	if err != nil {
		return "", err
	}
	paths, err := there.Uncommitted(ctx)
	if err != nil || len(paths) == 0 {
		return "", err
	}
	return fmt.Sprintf("%s (%s)", plain.Some(len(paths), "file"), firstOf(paths)), nil
}

// sayMerge says what a session has made on the branch of its own, and how that comes to the branch of
// the project's folder.
func (r *runCall) sayMerge(ctx context.Context, store *lifecycle.Store, sess *lifecycle.Session) {
	w := sess.State().Header().Worktree
	if w == nil || w.Branch == "" {
		return
	}
	if child.Killed() { // and every git would be
		fmt.Fprintf(r.stderr, "it worked on %s; see what there is to merge: lopen worktree list\n", shown(w.Branch))
		return
	}
	row := worktreeRow{Path: r.tree, Branch: w.Branch}
	v, err := r.worktrees(ctx, store)
	if err == nil {
		err = v.state(ctx, &row)
	}
	if err == nil && row.Problem != "" {
		err = errors.New(row.Problem)
	}
	left := ""
	if err == nil {
		left, err = r.uncommitted(ctx, r.tree)
	}
	if err != nil {
		fmt.Fprintf(r.stderr, "warning: what there is to merge is not known: %v\n", err)
		return
	}
	if left != "" {
		fmt.Fprintf(r.stderr, "not committed in the work tree: %s\n", left)
	}
	if row.Merged {
		fmt.Fprintf(r.stderr, "%s has no commit that is not merged\n", shown(w.Branch))
		return
	}
	fmt.Fprintf(r.stderr, "%s on %s; merge with: %s\n", plain.Some(row.Ahead, "commit"), shown(w.Branch), quoted([]string{"git", "merge", w.Branch}))
	switch paths, known := v.own.Conflicts(ctx, w.Branch); {
	case !known:
		fmt.Fprintln(r.stderr, "whether that conflicts is not known: git tells from version 2.38 on")
	case len(paths) > 0:
		fmt.Fprintf(r.stderr, "that would conflict now in %s: %s\n", plain.Some(len(paths), "file"), firstOf(paths))
	}
	if sess.State().Status() == session.StatusComplete {
		fmt.Fprintf(r.stderr, "and then: lopen worktree remove %s\n", sess.ID())
	}
}
