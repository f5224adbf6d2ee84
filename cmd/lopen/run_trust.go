package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// approvedRun is what a run may run: agents, the check, and the command of on_event.
type approvedRun struct {
	agents  []*agent.Agent
	check   string
	onEvent string

	commit, branch bool // see runCall.commits
}

// trusted decides which agents and check the run uses. What was typed, or stands in the
// user's own config, is approved by that; what comes from inside the project (a session,
// config.json) runs only if this user approved exactly it for this project. A session
// has neither with its credentials: those are in the approval.
func (r *runCall) trusted(ctx context.Context, project string, old session.Settings, v *settings.Values, hide *redact.Redactor) (approvedRun, error) {
	var none approvedRun
	store, err := r.approvals()
	if err != nil {
		return none, err
	}
	id := r.identity(ctx, project)
	g := gate{runCall: r, store: store, project: trust.Project{Folder: project, Repository: id.String()}, hide: hide}
	r.used, r.began = nil, id
	approved := approvedRun{}
	shell := func(command string, own bool) (string, error) {
		c := trust.Command{Shell: command}
		if c.Shell == "" {
			return "", nil
		}
		return c.Shell, g.admit(ctx, &c, own)
	}
	if approved.check, err = shell(v.Check, r.checkTyped && !r.byAgent() || r.own(v, "check")); err != nil {
		return none, err
	}
	if approved.onEvent, err = shell(v.OnEvent, r.own(v, "on_event")); err != nil {
		return none, err
	}
	choices, err := r.choices(old, v)
	if err != nil {
		return none, err
	}
	for _, c := range choices {
		command := trust.Command{Argv: c.argv}
		if err := g.admit(ctx, &command, c.own); err != nil {
			return none, err
		}
		a, note, err := agent.Choose(c.name, command.Argv, c.recipes, approved.check)
		if err != nil {
			return none, &usageError{err}
		}
		if note != "" {
			fmt.Fprintln(r.stderr, note)
		}
		approved.agents = append(approved.agents, a)
	}
	approved.commit, approved.branch, err = r.commits(ctx, old, &g)
	return approved, err
}

// own says whether a setting's value is the user's and none of the project's.
func (r *runCall) own(v *settings.Values, name string) bool {
	s := v.Source(name)
	if s == settings.SourceFlag {
		return !r.byAgent()
	}
	return usersOwn(s) && (s != settings.SourceVariable || !r.byAgent())
}

// usersOwn says of the source of a setting that the user, and no project, has set it.
func usersOwn(s settings.Source) bool {
	return s == settings.SourceUser || s == settings.SourceHere || s == settings.SourceVariable || s == settings.SourceDefault
}

// admit lets a command through that is the user's own, or insists on an approval of it.
func (g *gate) admit(ctx context.Context, c *trust.Command, own bool) (err error) {
	if own {
		g.approve(g.store, g.project, *c)
	} else if *c, err = g.requireApproval(ctx, *c); err != nil {
		return err
	}
	g.used = append(g.used, *c)
	return nil
}

// A choice is an agent that a run is to use: its name, "" for the one of its command, and
// its command line.
type choice struct {
	name    string
	argv    []string
	own     bool // the user's, and none of the project's
	recipes map[string]agent.Profile
}

// choices are the agents of a run, the first one and those of --fallback. The first is
// what was typed, or --agent, or what the session remembers, or what the settings name.
func (r *runCall) choices(old session.Settings, v *settings.Values) ([]choice, error) {
	recipes, err := agent.Recipes(v.Agents)
	if err != nil {
		return nil, usagef("agents: %w", err)
	}
	first, err := r.firstChoice(old, v, recipes)
	if err != nil {
		return nil, err
	}
	all := []choice{first}
	for _, name := range v.Fallback {
		next, err := startChoice(name, r.own(v, "fallback"), recipes)
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return all, nil
}

// firstChoice is the agent that works unless it is limited.
func (r *runCall) firstChoice(old session.Settings, v *settings.Values, recipes map[string]agent.Profile) (choice, error) {
	name := v.Agent
	switch _, typed := r.flags["agent"]; {
	case len(r.command) > 0:
		if !typed && v.Source("agent") != settings.SourceVariable {
			name = "" // by the command
		}
		return choice{name, r.command, !r.byAgent(), recipes}, nil
	case typed && name != agent.None:
		return startChoice(name, !r.byAgent(), recipes)
	case len(old.Command) > 0:
		if !typed {
			name = old.Agent
		}
		return choice{name, old.Command, false, recipes}, nil
	case len(v.Command) > 0:
		return choice{name, v.Command, r.own(v, "command"), recipes}, nil
	case name != "" && name != agent.None:
		return startChoice(name, r.own(v, "agent"), recipes)
	}
	return choice{}, r.noCommand()
}

// startChoice is an agent with the command line that its name stands for.
func startChoice(name string, own bool, recipes map[string]agent.Profile) (choice, error) {
	argv, err := agent.Start(name, recipes)
	if err != nil {
		return choice{}, &usageError{err}
	}
	return choice{name, argv, own, recipes}, nil
}

func (r *runCall) noCommand() error {
	again := "lopen run " + r.module
	if r.crew != nil {
		again = "lopen work " + r.module
	}
	return usagef("no command to run: name an agent, %[1]s --agent claude, or type its command, %[1]s -- CMD", again)
}

// approveAgain remembers what a run used for the project as it is known by now: its
// first commit may be of this run.
func (r *runCall) approveAgain(ctx context.Context, project string) {
	defer r.crew.byItself()()
	store, err := r.approvals()
	if err != nil {
		return // the run has warned of it already
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
	hide    *redact.Redactor // hides credentials as in what the project stores of a command
}

// redacted is a command as a session has it.
func (g *gate) redacted(c trust.Command) trust.Command {
	c.Argv, _ = g.hide.Args(c.Argv)
	c.Shell, _ = g.hide.String(c.Shell)
	return c
}

// onAScreen is what of a question fits on a small terminal, in bytes. A
// longer one scrolls its beginning away and can spell a question of its own at its end,
// so that it has to be typed.
const onAScreen = 1000

// requireApproval returns the command that was approved as c, or is by a person now.
func (g *gate) requireApproval(ctx context.Context, c trust.Command) (trust.Command, error) {
	found, err := g.store.Approved(g.project, c, g.redacted)
	if err != nil {
		fmt.Fprintf(g.stderr, "warning: %v\n", err)
	}
	if found != nil {
		return *found, nil
	}
	typed := fmt.Sprintf("type it yourself to approve it: lopen run %s -- CMD, or --check CMD, or --commit, or lopen config set", g.module)
	if strings.Contains(c.String(), "[redacted:") {
		return c, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("of this command the session has no credentials, and none that was approved here fits it:\n  %s\n%s", c, typed)}
	}
	if !g.interactive() {
		return c, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("this command comes from inside the project and was never approved here:\n  %s\n%s", c, typed)}
	}
	question := fmt.Sprintf("This command comes from inside the project %s:\n  %s\nRun it, now and later?", shown(g.project.Folder), c)
	if n := len(c.String()); len(question) > onAScreen-len(" "+yesOrNo) {
		return c, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("this command comes from inside the project, was never approved here, and with %d bytes is too long to be asked about:\n  %s\n%s", n, c, typed)}
	}
	if yes, err := g.agreed(ctx, question); err != nil || !yes {
		return c, cmp.Or[error](err, &loop.Exit{Code: loop.ExitUser, Reason: "not approved, nothing was run"})
	}
	g.approve(g.store, g.project, c)
	return c, nil
}
