package main

import (
	"context"
	"fmt"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// trusted decides which command and check the run uses. What was typed is
// approved by having been typed; what comes from inside the project (a session,
// config.json) runs only if this user approved exactly it for this folder.
func (r *runCall) trusted(ctx context.Context, project string, old session.Settings, v *settings.Values) ([]string, string, error) {
	store, err := r.approvals()
	if err != nil {
		return nil, "", err
	}
	command := r.command
	if len(command) > 0 {
		r.approve(store, project, trust.Command{Argv: command})
	} else {
		if command = old.Command; len(command) == 0 {
			return nil, "", r.noCommand()
		}
		if err := r.insist(ctx, store, project, trust.Command{Argv: command}); err != nil {
			return nil, "", err
		}
	}
	check := v.String("check")
	switch {
	case check == "":
	case r.checkTyped || r.getenv("LOPEN_CHECK") == check:
		r.approve(store, project, trust.Command{Shell: check})
	default:
		if err := r.insist(ctx, store, project, trust.Command{Shell: check}); err != nil {
			return nil, "", err
		}
	}
	return command, check, nil
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

// approve remembers what a person typed. That it cannot be remembered costs a
// question next time, not this run.
func (a *app) approve(store *trust.Store, project string, c trust.Command) {
	if err := store.Approve(project, c); err != nil {
		fmt.Fprintf(a.stderr, "warning: the approval of %s could not be kept: %v\n", c, err)
	}
}

// insist returns nil when the command is approved, or a person approves it now.
func (r *runCall) insist(ctx context.Context, store *trust.Store, project string, c trust.Command) error {
	ok, err := store.Approved(project, c)
	if err != nil {
		fmt.Fprintf(r.stderr, "warning: %v\n", err)
	}
	if ok {
		return nil
	}
	if !r.interactive() {
		return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("this command comes from inside the project and was never approved here:\n  %s\ntype it yourself to approve it: lopen run %s -- CMD, or --check CMD", c, r.module)}
	}
	answer, err := r.ask(ctx, fmt.Sprintf("This command comes from inside the project %s:\n  %s\nRun it, now and later? [y/N] ", project, c))
	if err != nil {
		return err
	}
	if answer != "y" && answer != "Y" && answer != "yes" {
		return &loop.Exit{Code: loop.ExitUser, Reason: "not approved, nothing was run"}
	}
	r.approve(store, project, c)
	return nil
}
