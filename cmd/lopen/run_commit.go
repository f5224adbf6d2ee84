package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A committing repository is the one that a run commits to.
type committing struct {
	*repo.Repository
	run     *runCall
	project string
	fresh   bool // nobody has worked in its work tree
}

// Begin is as [loop.Repository] says. What git runs in a work is what it ran when the work began, and an agent
// of another module may have changed that since.
func (c *committing) Begin(ctx context.Context, changed func(names []string)) error {
	begun, err := c.Repository.Begin(ctx)
	if err != nil {
		return err
	}
	r := c.run
	if home := r.begun; home != nil || r.tree != c.project {
		main, err := r.openRepository(ctx, c.project)
		if err != nil {
			return err
		}
		if home == nil {
			if home, err = main.Begin(ctx); err != nil {
				return err
			}
		}
		if begun = begun.In(home, c.fresh && r.crew != nil); len(main.Changed(ctx)) > 0 {
			begun = home
		}
	}
	r.begun, c.Repository = begun, c.From(begun, changed)
	if r.tree == c.project {
		r.sayOthers(c.project, begun.Sum())
	}
	return nil
}

// sayOthers says that git runs others than at the last run that committed to a project: an agent may have made them since.
func (r *runCall) sayOthers(project, now string) {
	approvals, err := r.approvals()
	if err != nil {
		return
	}
	here, err := approvals.Here(project)
	if err != nil || here.Commits == now {
		return // the settings say what is wrong with it
	}
	if here.Commits != "" {
		fmt.Fprintln(r.stderr, "warning: hooks, filters, attributes or names of git are not those of the last run with --commit; they run now: see git config --list, and the hooks")
	}
	if !r.byAgent() {
		err = approvals.SetHere(project, func(h *trust.Here) { h.Commits = now })
	}
	if err != nil {
		r.logger.Info().Err(err).Msg("what git runs is not noted")
	}
}

// openRepository opens the repository of a folder. Once a run has begun, git runs there what it ran then.
func (a *app) openRepository(ctx context.Context, folder string) (*repo.Repository, error) {
	found, err := repo.Open(ctx, folder, a.environ)
	if err != nil {
		return nil, err
	}
	return found.From(a.begun, nil), nil
}

// CommitFiles is [repo.Repository.CommitFiles].
func (c *committing) CommitFiles(ctx context.Context, what repo.Commit) (repo.Made, error) {
	made, err := c.Repository.CommitFiles(ctx, what)
	if err == nil && made.First { // which makes the project another one for approvals
		c.run.approveAgain(context.WithoutCancel(ctx), c.project)
	}
	return made, err
}

// gitCommit stands for the hooks and the signing program of a project's repository in the
// user's approvals: whoever typed --commit there has approved them, as with git commit.
var gitCommit = trust.Command{Argv: []string{"git", "commit"}}

// commits decides whether a run commits: what was typed, or what the session remembers. What
// only the session says runs if this user approved it for this project, as a command does.
func (r *runCall) commits(ctx context.Context, old session.Settings, g *gate) (commit, branch bool, err error) {
	typed := (r.commitTyped || r.worktree) && !r.byAgent() // the latter implies it
	if commit = old.Commit || r.worktree; r.commitTyped {
		commit = r.commit
	}
	if branch = commit && old.Branch; r.branchTyped {
		branch = r.branch
	}
	if branch && !commit {
		return false, false, usagef("--branch needs --commit")
	}
	if commit {
		command := gitCommit
		err = g.admit(ctx, &command, typed)
	}
	return commit, branch, err
}

// canCommit refuses --commit where no commit can be made, before anything is made. A nil store
// is one that is not made yet: no session remembers anything.
func (r *runCall) canCommit(ctx context.Context, store *lifecycle.Store) (err error) {
	switch {
	case store == nil && r.branch && !r.commit && !r.worktree:
		err = usagef("--branch needs --commit")
	case r.commit && !r.worktree: // in the work tree nothing is in progress
		_, err = r.repository(ctx, r.branch)
	}
	return err
}

// commitsTo has a run commit to the repository of its work tree, which is known when the
// session is.
func (r *runCall) commitsTo(ctx context.Context, project string, sess *lifecycle.Session, cfg *loop.Config) error {
	if !cfg.Commit {
		return nil
	}
	found, err := r.repository(ctx, cfg.Branch)
	cfg.Repository = &committing{found, r, project, unused(sess.State())}
	return err
}

// repository returns the repository of the run's work tree, if commits can be made in it now,
// with branch on a branch of the session's own.
func (r *runCall) repository(ctx context.Context, branch bool) (*repo.Repository, error) {
	refused := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &loop.Exit{Code: loop.ExitUser, Reason: strings.TrimRight(fmt.Sprintf("--commit: %v\n%s", err, hint(err)), "\n")}
	}
	if _, err := trust.DefaultDir(r.getenv); err != nil { // git gets its configuration there
		return nil, refused(err)
	}
	found, err := r.openRepository(ctx, r.tree)
	if err != nil {
		return nil, refused(err)
	}
	if err := found.CanCommit(ctx); err != nil {
		return nil, refused(err)
	}
	head, err := found.Head(ctx)
	if err == nil && head.Branch == "" && !branch {
		err = fmt.Errorf("HEAD of %s is detached, so no branch would have the commits: %s, or run with --commit --branch", shown(r.tree), quoted([]string{"git", "-C", r.tree, "switch", "BRANCH"}))
	}
	if err != nil {
		return nil, refused(err)
	}
	return found, nil
}

// sayCommits says how to get what a run committed on a branch of its own.
func (r *runCall) sayCommits(ctx context.Context, store *lifecycle.Store, sess *lifecycle.Session) {
	r.sayMerge(ctx, store, sess)
	if c := sess.State().Header().Settings; c.Commit && c.Branch {
		branch := loop.BranchOf(sess.ID())
		fmt.Fprintf(r.stderr, "commits:  git log %s; to have them elsewhere: git switch BRANCH && git merge %s\n", plain.Quote(branch), plain.Quote(branch))
	}
}
