package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A gateKind says what an agent may do with a command. It is an agent that calls one inside a run, or
// below its process in a turn that the hooks keep, with or without a terminal.
type gateKind uint8

const (
	// reads: a command or flag changes nothing that is the person's.
	reads gateKind = iota + 1
	// starts: it starts agents. Nothing that was typed is an approval, and a flag only tightens.
	starts
	// alters: it changes what the project keeps for the person. It is refused in a run or a turn of that project.
	alters
	// owns: it changes the user's own state, approvals or programs. It is refused in a run or a turn of any project.
	owns
)

// gates has each command, and each flag that makes less or more of one. A command that is not here
// fails its test, and is owned.
var gates = map[string]gateKind{
	"lopen": reads, "lopen assess": reads, "lopen backup list": reads, "lopen backup verify": reads, "lopen bundle verify": reads,
	"lopen cache clear": reads, "lopen cache status": reads, "lopen cache warm": reads, "lopen checkpoint cat": reads,
	"lopen checkpoint diff": reads, "lopen checkpoint list": reads, "lopen checkpoint show": reads, "lopen config show": reads, "lopen doctor": reads,
	"lopen files changed": reads, "lopen fleet doctor": reads, "lopen fleet sql": reads, "lopen fleet status": reads, "lopen hook": reads,
	"lopen mcp": reads, "lopen plan list": reads, "lopen plan show": reads, "lopen prompt": reads, "lopen report": reads, "lopen research list": reads,
	"lopen research new": reads, "lopen search": reads, "lopen section drift": reads, "lopen section list": reads, "lopen section show": reads,
	"lopen session export": reads, "lopen session list": reads, "lopen session log": reads, "lopen session output": reads,
	"lopen session show": reads, "lopen session verify": reads, "lopen session watch": reads, "lopen skill": reads, "lopen transaction log": reads,
	"lopen transaction status": reads, "lopen trust list": reads, "lopen version": reads, "lopen worktree list": reads,

	"lopen run": starts, "lopen session resume": starts, "lopen work": alters,

	"lopen checkpoint create": alters, "lopen checkpoint pin": alters, "lopen checkpoint restore": alters, "lopen checkpoint rewind": alters,
	"lopen checkpoint unpin": alters, "lopen files record": alters, "lopen plan add": alters, "lopen plan create": alters, "lopen plan mark": alters,
	"lopen plan move": alters, "lopen plan push": alters, "lopen plan remove": alters, "lopen plan rename": alters, "lopen plan revive": alters,
	"lopen plan skip": alters, "lopen plan tick": alters, "lopen plan untick": alters, "lopen plan update": alters, "lopen session delete": alters,
	"lopen session fork": alters, "lopen session import": alters, "lopen session pause": alters, "lopen session pin": alters, "lopen session prune": alters,
	"lopen session pull": alters, "lopen session push": alters, "lopen session recover": alters, "lopen session rename": alters,
	"lopen session restore": alters, "lopen session unpin": alters, "lopen transaction commit": alters, "lopen transaction rollback": alters,
	"lopen undo": alters, "lopen worktree remove": alters,

	"lopen backup": owns, "lopen backup prune": owns, "lopen backup restore": owns, "lopen config set": owns, "lopen fleet join": owns,
	"lopen fleet leave": owns, "lopen init": owns, "lopen plugin claude install": owns, "lopen plugin claude remove": owns,
	"lopen plugin codex install": owns, "lopen plugin codex remove": owns, "lopen trust revoke": owns,

	"lopen session verify --accept": alters, "lopen run --no-check": alters, "lopen run --beside": alters,

	"lopen backup prune --dry-run": reads, "lopen checkpoint restore --dry-run": reads, "lopen checkpoint rewind --dry-run": reads,
	"lopen plan update --dry-run": reads, "lopen run --dry-run": reads, "lopen session prune --dry-run": reads, "lopen session recover --dry-run": reads,
	"lopen transaction rollback --dry-run": reads, "lopen undo --dry-run": reads, "lopen work --dry-run": reads,
}

// gateOf is the kind of a command with the flags that were typed.
func gateOf(cmd *cobra.Command) gateKind {
	path := cmd.CommandPath()
	kind, known := gates[path]
	if !known {
		if kind = owns; cmd.HasSubCommands() || !cmd.HasParent() || cmd.Name() == "help" || strings.HasPrefix(path, "lopen completion") || strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) {
			kind = reads
		}
	}
	preview := false
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch row := gates[path+" --"+f.Name]; {
		case f.Value.String() == "false":
		case row == reads:
			preview = true
		default:
			kind = max(kind, row)
		}
	})
	if preview {
		return reads
	}
	return kind
}

// gate refuses a command that is not an agent's to give.
func (a *app) gate(cmd *cobra.Command) error {
	kind := gateOf(cmd)
	if kind < alters {
		return nil
	}
	above := a.above()
	if kind == owns {
		switch {
		case len(above) > 0:
			return fmt.Errorf("refused %s: what is the user's own is theirs to change, in a terminal of their own", above[0])
		case a.getenv("CLAUDECODE") != "":
			return fmt.Errorf("refused below Claude Code, as CLAUDECODE says: what is the user's own is theirs to change, in a terminal of their own")
		}
		return nil
	}
	project, err := a.project()
	if err != nil {
		return nil //nolint:nilerr // the command says what is wrong with it
	}
	for _, e := range above {
		if e.in(project) {
			return fmt.Errorf("refused %s: lopen itself keeps its plan and its state; do the task only", e)
		}
	}
	return nil
}

// An enclosing is a run, or the turn of an agent, that this process is a part of.
type enclosing struct {
	store   string // the path of its .lopen; "" where only the environment tells
	session string
	agent   string // whose turn it is; "" of a run
}

func (e enclosing) String() string {
	if e.agent != "" {
		return fmt.Sprintf("below %s, whose turn session %s keeps", e.agent, e.session)
	}
	return "inside the run of session " + e.session
}

// in reports whether it is of a project.
func (e enclosing) in(project string) bool {
	store := filepath.Join(project, lifecycle.Dir)
	if e.store == "" {
		id, err := session.ParseID(e.session)
		return err == nil && holds(filepath.Join(store, "sessions"), id.String())
	}
	return git.Same(store, e.store)
}

// above returns the run and the turns that this process is a part of. A run tells its command by a variable;
// one that took it out of its environment is found by the lock that it inherited, and an agent whose
// turn the hooks keep by its process.
func (a *app) above() []enclosing {
	if a.enclosed == nil {
		return nil
	}
	return a.enclosed()
}

func (a *app) lookAbove() (all []enclosing) {
	if name := a.getenv("LOPEN_SESSION_ID"); name != "" {
		all = append(all, enclosing{session: name})
	}
	if store, name := lifecycle.Inside(); name != "" {
		all = append(all, enclosing{store: store, session: name})
	}
	pids := turns.Above()
	looked := map[string]bool{}
	look := func(folder string) {
		home, _ := a.search(folder)
		if folder == "" || looked[home] || !holds(home, lifecycle.Dir) {
			return
		}
		looked[home] = true
		all = append(all, a.heldAbove(home, pids)...)
	}
	if start, err := a.start(); err == nil {
		look(start)
	}
	for _, pid := range pids {
		look(turns.Folder(pid))
	}
	if dir, err := trust.DefaultDir(a.getenv); err == nil {
		for _, g := range turns.Begun(dir) { // also where its agent has moved the store away
			if slices.Contains(pids, g.Holder.PID) && (*lifecycle.Owner)(g.Holder).Alive() {
				all = append(all, enclosing{store: g.Store, session: g.Session, agent: g.Agent})
			}
		}
	}
	return all
}

// heldAbove returns the runs and the turns in a project whose sessions one of the processes holds: that of a run, above a git
// that it started and what a hook of that calls, or the agent of a turn.
func (a *app) heldAbove(project string, pids []int) (all []enclosing) {
	store, err := lifecycle.Open(project, lifecycle.Options{Logger: a.logger, Command: a.invoked})
	if err != nil {
		return nil // nothing is kept in what cannot be opened
	}
	defer release(store)
	infos, err := store.List()
	if err != nil {
		a.logger.Info().Err(err).Str("project", project).Msg("it is not known which sessions are held here")
	}
	for _, info := range infos {
		if info.Err != nil || info.Status != session.StatusActive {
			continue
		}
		agent, holder := "", info.Holder
		if info.Origin == session.OriginHook && holder != nil {
			agent = holder.Command
		} else if owner, err := store.Holder(info.ID); err == nil {
			holder = (*session.Holder)(owner)
		}
		if holder == nil {
			continue
		}
		if i := slices.Index(pids, holder.PID); i >= 0 && (agent != "" || turns.ByGit(pids[:i])) && (*lifecycle.Owner)(holder).Alive() {
			all = append(all, enclosing{store.Path(), info.ID.String(), agent})
		}
	}
	return all
}

// approvesNothing reports whether what was typed is no approval: an agent typed it, or may have.
func (a *app) approvesNothing() bool { return a.byAgent() || a.getenv("CLAUDECODE") != "" }

// byAgent reports whether an agent typed this command, so that nothing in it is the user's word.
func (a *app) byAgent() bool { return len(a.above()) > 0 }
