package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
)

func newTrust(a *app) *cobra.Command {
	return group("trust", "List and revoke the commands that you approved", newTrustList(a), newTrustRevoke(a))
}

func (a *app) approvals() (*trust.Store, error) { return trust.Open(a.getenv) }

// known is what a project's approvals are given for: its repository, else its folder. One
// that cannot be looked at has the approvals of its folder, which are none unless they
// were given like that.
func (a *app) known(ctx context.Context, project string) trust.Project {
	return trust.Project{Folder: project, Repository: a.identity(ctx, project).String()}
}

func (a *app) identity(ctx context.Context, project string) git.Identity {
	id, err := git.Identify(ctx, project, a.environ)
	if err != nil && !errors.Is(err, git.ErrNone) {
		a.logger.Info().Err(err).Msg("approvals are those of the folder")
	}
	return id
}

// keepHere notes that the person who typed this wants their agents' sessions kept in a project. What an agent typed is no such
// word.
func (a *app) keepHere(project string) {
	if a.approvesNothing() {
		return
	}
	approvals, err := a.approvals()
	if err == nil {
		var here trust.Here
		if here, err = approvals.Here(project); err == nil && here.Same(here.Kept) {
			return
		}
		err = approvals.SetHere(project, (*trust.Here).Keep)
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "warning: the hooks of agents keep nothing here: %v\n", err)
	}
}

// approve remembers what a person typed. That it cannot be remembered costs a
// question next time, not this run. What an agent typed, inside of a run or of a turn of its own, is not.
func (a *app) approve(store *trust.Store, project trust.Project, c trust.Command) {
	if a.approvesNothing() {
		return
	}
	if err := store.Approve(project, c); err != nil {
		if text := fmt.Sprintf("the approval of a command could not be kept: %v\n%s", err, hint(err)); text != a.warnedLast {
			fmt.Fprintf(a.stderr, "warning: %s", text)
			a.warnedLast = text
		}
	}
}
