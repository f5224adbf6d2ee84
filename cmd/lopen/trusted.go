package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// trusted decides which command and check the run uses. What was typed is
// approved by having been typed; what comes from inside the project (a session,
// config.json) runs only if this user approved exactly it for this project. A session
// has neither with its credentials: those are in the approval.
func (r *runCall) trusted(ctx context.Context, project string, old session.Settings, v *settings.Values, hide *redact.Redactor) ([]string, string, error) {
	store, err := r.approvals()
	if err != nil {
		return nil, "", err
	}
	id := r.identity(ctx, project)
	g := gate{runCall: r, store: store, project: trust.Project{Folder: project, Repository: id.String()}, hide: hide}
	command := trust.Command{Argv: r.command}
	if len(r.command) > 0 {
		r.approve(store, g.project, command)
	} else {
		if len(old.Command) == 0 {
			return nil, "", r.noCommand()
		}
		if command, err = g.insist(ctx, trust.Command{Argv: old.Command}); err != nil {
			return nil, "", err
		}
	}
	r.used, r.began = []trust.Command{command}, id
	check := trust.Command{Shell: v.String("check")}
	switch {
	case check.Shell == "":
		return command.Argv, "", nil
	case r.checkTyped || r.getenv("LOPEN_CHECK") == check.Shell || v.Source("check") == settings.SourceUser:
		r.approve(store, g.project, check)
	default:
		if check, err = g.insist(ctx, check); err != nil {
			return nil, "", err
		}
	}
	r.used = append(r.used, check)
	return command.Argv, check.Shell, nil
}

func (r *runCall) noCommand() error {
	return usagef("no command to run: type it after --, e.g. lopen run %s -- claude -p --permission-mode acceptEdits", r.module)
}

func (a *app) approvals() (*trust.Store, error) {
	dir, err := trust.DefaultDir(a.getenv)
	if err != nil {
		return nil, err
	}
	return trust.Open(dir), nil
}

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

// approve remembers what a person typed. That it cannot be remembered costs a
// question next time, not this run. What an agent typed, inside of a run, is not.
func (a *app) approve(store *trust.Store, project trust.Project, c trust.Command) {
	if a.getenv("LOPEN_SESSION_ID") != "" {
		return
	}
	if err := store.Approve(project, c); err != nil {
		fmt.Fprintf(a.stderr, "warning: the approval of a command could not be kept: %v\n", err)
	}
}

// approveAgain remembers what a run used for the project as it is known by now: its
// first commit may be of this run.
func (r *runCall) approveAgain(ctx context.Context, project string) {
	store, err := r.approvals()
	if err != nil {
		return // it was said when the run began
	}
	now := r.identity(ctx, project)
	if now == r.began || !now.Continues(r.began) {
		return
	}
	for _, c := range r.used {
		r.approve(store, trust.Project{Folder: project, Repository: now.String()}, c)
	}
}

// A gate lets those commands pass that the user approved for a project.
type gate struct {
	*runCall
	store   *trust.Store
	project trust.Project
	hide    *redact.Redactor // as in what the project keeps of a command
}

// kept is what a session has of a command.
func (g *gate) kept(c trust.Command) trust.Command {
	c.Argv, _ = g.hide.Args(c.Argv)
	c.Shell, _ = g.hide.String(c.Shell)
	return c
}

// onAScreen is what of a question fits on a small terminal, in bytes. A
// longer one scrolls its beginning away and can spell a question of its own at its end,
// so that it has to be typed.
const onAScreen = 1000

// insist returns the command that was approved as c, or is by a person now.
func (g *gate) insist(ctx context.Context, c trust.Command) (trust.Command, error) {
	found, err := g.store.Approved(g.project, c, g.kept)
	if err != nil {
		fmt.Fprintf(g.stderr, "warning: %v\n", err)
	}
	if found != nil {
		return *found, nil
	}
	typed := fmt.Sprintf("type it yourself to approve it: lopen run %s -- CMD, or --check CMD", g.module)
	if strings.Contains(c.String(), "[redacted:") {
		return c, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("of this command the session has no credentials, and none that was approved here fits it:\n  %s\n%s", c, typed)}
	}
	if !g.interactive() {
		return c, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("this command comes from inside the project and was never approved here:\n  %s\n%s", c, typed)}
	}
	question := fmt.Sprintf("This command comes from inside the project %s:\n  %s\nRun it, now and later? [y/N] ", shown(g.project.Folder), c)
	if n := len(c.String()); len(question) > onAScreen {
		return c, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("this command comes from inside the project, was never approved here, and with %d bytes is too long to be asked about:\n  %s\n%s", n, c, typed)}
	}
	answer, err := g.ask(ctx, question)
	if err != nil {
		return c, err
	}
	if answer != "y" && answer != "Y" && answer != "yes" {
		return c, &loop.Exit{Code: loop.ExitUser, Reason: "not approved, nothing was run"}
	}
	g.approve(g.store, g.project, c)
	return c, nil
}
