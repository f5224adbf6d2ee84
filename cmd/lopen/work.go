package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/awake"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// workCall is one call of work.
type workCall struct {
	*app
	run     runCall // what the run of each module begins as
	jobs    int
	dryRun  bool
	inFleet bool // the modules of the fleet, shared with other machines
	project string
	store   *lifecycle.Store
	values  *settings.Values
	repo    *repo.Repository // of the project
}

func newWork(a *app) *cobra.Command {
	w := workCall{app: a}
	rf := runFlags{}
	cmd := &cobra.Command{
		Args:  cobra.ArbitraryArgs,
		Use:   "work [MODULE...] [flags] [-- CMD [ARG...]]",
		Short: "Work through several modules, each in a work tree of its own",
		Long: `Take the modules that are not finished, all or those that are named, in turn, --jobs of them
at the same time, each like "lopen run MODULE --worktree --unattended": on a branch
lopen/SESSION, with a commit for each task. Nobody is asked, and nothing is merged or pushed.

The front matter of a module's plan says when its turn is. The lowest priority is first, then
those without one, by name. A module that comes after others begins from their branches.

  ---
  priority: 1
  after: [auth, db]
  ---

A limit of an agent's provider holds up all runs that use the agent; attempts in progress
go on. --max-cost, --max-tokens, --max-iterations and --until are for all modules together.
With --fleet the modules are those whose plans are in the fleet (lopen plan push), and machines
share them: each takes the next one that no other works on, and continues its session. One that
dies gives its module back within a minute. What is run is what this machine's own arguments,
settings and approvals say, never what the database says.

Killed at any moment, the same command goes on. It ends with a report. The exit code is that of
the most urgent end: 130 interrupted, 14 storage, 2 a person is needed, 75 a limit or the
budget, 11 another process works on a module, 0 all is done.`,
		Example: `  lopen work --jobs 2 --check 'make test' --agent claude --max-cost 20 --until 07:00
  lopen work auth db -- ./my-agent.sh
  lopen work --dry-run      in which order
  lopen work --fleet --check 'make test' --agent claude`,
		RunE: func(cmd *cobra.Command, args []string) error {
			modules, command := atDash(cmd, args)
			w.run = runCall{app: a, runFlags: rf, command: command, flags: rf.given(cmd.Flags()),
				checkTyped: cmd.Flags().Changed("check"), pauseTimeoutSet: cmd.Flags().Changed("pause-timeout")}
			w.run.flags["unattended"], w.run.worktree = "true", true
			return w.start(cmd.Context(), modules)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&w.jobs, "jobs", 1, "work on `N` modules at the same time")
	f.BoolVar(&w.dryRun, "dry-run", false, "list the modules in their order, change nothing")
	f.BoolVar(&w.inFleet, "fleet", false, "take modules of the fleet that no other machine works on, until none is left")
	rf.addTo(f)
	cmd.MarkFlagsMutuallyExclusive("check", "no-check")
	return cmd
}

// notOfWork are the flags of run that are about one task or one session, or that work implies.
var notOfWork = []string{"task", "from", "through", "again", "resume", "no-resume", "no-save", "dry-run", "transaction", "unattended", "worktree", "commit", "branch"}

// addTo adds the flags of run that make sense for several modules.
func (rf *runFlags) addTo(f *pflag.FlagSet) {
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	rf.add(all)
	all.VisitAll(func(flag *pflag.Flag) {
		for _, name := range notOfWork {
			if flag.Name == name {
				return
			}
		}
		f.AddFlag(flag)
	})
}

// start finds the modules and their order, has them worked through and reports.
func (w *workCall) start(ctx context.Context, named []string) (err error) {
	if w.jobs < 1 {
		return usagef("--jobs %d: give a number from 1 on", w.jobs)
	}
	for _, module := range named {
		if err := session.ValidateModule(module); err != nil {
			return &usageError{err}
		}
	}
	if w.project, err = w.app.project(); err != nil {
		return err
	}
	if w.values, err = w.projectSettings(w.project, w.run.flags); err != nil {
		return err
	}
	opts := w.storeOptions(w.project)
	if opts.Policy, err = storePolicy(w.values); err != nil {
		return err
	}
	w.store, err = lifecycle.Open(w.project, opts)
	if errors.Is(err, lifecycle.ErrNoStore) {
		if w.inFleet {
			return w.startFleet(ctx, named, opts)
		}
		return noModule(w.project)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(w.store)) }()
	if w.inFleet {
		return w.startFleet(ctx, named, opts)
	}
	return w.startHere(ctx, named)
}

// startHere is start for the modules of this machine.
func (w *workCall) startHere(ctx context.Context, named []string) error {
	all, err := w.roster(named)
	if err != nil {
		return err
	}
	if w.dryRun {
		return w.printOrder(all)
	}
	if len(all.members) == 0 { // all is done; without a repository there is nothing to merge
		w.repo, _ = w.openRepository(ctx, w.project)
		w.sayMerge(ctx, all)
		return nil
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	return w.work(ctx, all)
}

// begin opens the repository, on which git runs from now on what it runs now, and says what that is and where
// the work trees are.
func (w *workCall) begin(ctx context.Context) (err error) {
	if w.repo, err = w.openRepository(ctx, w.project); err != nil {
		return err
	}
	if w.begun, err = w.repo.Begin(ctx); err != nil {
		return err
	}
	w.repo = w.repo.From(w.begun, nil)
	hooks := cmp.Or(strings.Join(w.begun.Hooks(), ", "), "none")
	fmt.Fprintf(w.stderr, "work trees: %s, one for each module, with a commit for each task; hooks that run there: %s\n", shown(worktreesOf(w.repo.Top)), hooks)
	return nil
}

// work works through the modules and reports.
func (w *workCall) work(ctx context.Context, all *roster) error {
	w.warnOf(ctx, w.store)
	w.pruneQuietly(ctx, w.store, w.values)
	defer awake.Keep("lopen work", &w.logger)()
	begun := time.Now()
	until, err := w.run.untilTime(begun)
	if err != nil {
		return err
	}
	c := &crew{screen: newScreen(ctx, w.app), shared: loop.NewShared(w.jobs), until: until}
	w.dispatch(ctx, all, c)
	c.screen.stop()
	w.report(context.WithoutCancel(ctx), all)
	return all.exit()
}

// dispatch begins the runs of the modules in their order, at most jobs at a time, and
// returns when all of them have ended.
func (w *workCall) dispatch(ctx context.Context, all *roster, c *crew) {
	ended := make(chan *member)
	running := 0
	for {
		for running < w.jobs {
			if why, code := w.stops(ctx, all, c); why != "" {
				all.leaveRest(why, code)
			}
			m := all.next()
			if m == nil {
				break
			}
			running++
			c.screen.line(fmt.Sprintf("%s: begins, %s", m.module, m.far))
			go func() {
				m.run(ctx, w, c)
				ended <- m
			}()
		}
		if running == 0 {
			return
		}
		m := <-ended
		running--
		m.over = true
		c.screen.line(strings.TrimRight(fmt.Sprintf("%s: %s\n%s", m.module, m.how(), hint(m.err)), "\n"))
	}
}

// stops says why no further module is begun, and the exit code of that.
func (w *workCall) stops(ctx context.Context, all *roster, c *crew) (why string, code int) {
	if ctx.Err() != nil {
		return "interrupted", loop.ExitInterrupted
	}
	for _, m := range all.members {
		switch m.code() {
		case loop.ExitLimit:
			return "not begun after " + m.module + " met a limit", loop.ExitLimit
		case loop.ExitStorage:
			return "not begun after the storage error of " + m.module, loop.ExitStorage
		}
	}
	b := loop.Budget{Cost: w.values.MaxCost, Tokens: int64(w.values.MaxTokens), Until: c.until}
	if end := c.shared.UsedUp(b, w.values.MaxIterations); end != nil {
		return "not begun: " + end.Reason, end.Code
	}
	return "", 0
}

// printOrder lists the modules in the order of their turns.
func (w *workCall) printOrder(all *roster) error {
	for i, m := range all.members {
		line := fmt.Sprintf("%3d  %s  %s", i+1, m.module, m.far)
		if len(m.turn.After) > 0 {
			line += ", after " + strings.Join(m.turn.After, ", ")
		}
		if m.why != "" {
			line += ": " + m.why
		}
		fmt.Fprintln(w.stdout, plain.Line(line))
	}
	return all.exit()
}
