package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/awake"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/writer/plain"
)

// workPoll is the pause between two questions for a module while other machines work on those that
// are left: one that dies gives its module back.
const workPoll = 15 * time.Second

// A fleetWork takes modules of the fleet as this machine has room for them. Owned by the goroutine
// that dispatches.
type fleetWork struct {
	*workCall
	fleet *fleet.Fleet
	named []string // the modules that may be taken; none means all
	all   *roster
	crew  *crew
	tried []string
	ended chan *member
	runs  int
	asked bool // the fleet has answered once
}

// startFleet is start for the modules of the fleet. The store is made if there is none.
func (w *workCall) startFleet(ctx context.Context, named []string, opts lifecycle.Options) (err error) {
	f, err := w.fleetOf(w.project)
	if err == nil && f == nil {
		err = &loop.Exit{Code: loop.ExitUser, Reason: "this project has joined no fleet: lopen fleet join URL"}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if w.store == nil {
		if w.store, err = w.create(w.project, opts); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeStore(w.store)) }()
	}
	if w.dryRun {
		return fleetError(f, w.printPlans(ctx, f))
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	w.pruneQuietly(ctx, w.store, w.values)
	defer awake.Keep("lopen work", &w.logger)()
	until, err := w.run.untilTime(time.Now())
	if err != nil {
		return err
	}
	w.run.fleet = f
	fw := &fleetWork{workCall: w, fleet: f, named: named, all: &roster{finished: map[string]bool{}}, ended: make(chan *member),
		crew: &crew{screen: newScreen(ctx, w.app), shared: loop.NewShared(w.jobs), until: until}}
	err = fw.dispatch(ctx)
	fw.crew.screen.stop()
	if len(fw.all.members) == 0 && err == nil {
		fmt.Fprintln(w.stderr, "nothing is left to do in the fleet: lopen plan push MODULE sends a plan")
		return nil
	}
	w.report(context.WithoutCancel(ctx), fw.all)
	return errors.Join(fleetError(f, err), fw.all.exit())
}

// dispatch runs modules until the fleet has none that this machine has not tried.
func (w *fleetWork) dispatch(ctx context.Context) error {
	tick := time.NewTicker(workPoll)
	defer tick.Stop()
	for waiting := false; ; {
		left, err := w.fill(ctx)
		if ctx.Err() != nil && w.runs == 0 {
			return context.Cause(ctx)
		}
		if w.runs == 0 && (!left || err != nil && !(w.asked && fleet.Foreign(err))) {
			return err
		}
		if w.runs == 0 && !waiting {
			waiting = true
			text := "other machines work on what is left; waiting for one to give something back"
			if err != nil {
				text = "the fleet cannot be asked: " + fleet.Explain(err) + "; trying again, Ctrl-C ends it"
			}
			w.crew.screen.line(plain.Line(text))
		}
		select {
		case m := <-w.ended:
			w.runs--
			m.over, waiting = true, false
			w.crew.screen.line(strings.TrimRight(fmt.Sprintf("%s: %s\n%s", m.module, m.how(), hint(m.err)), "\n"))
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// fill begins runs while there is room. left says whether it is worth asking again.
func (w *fleetWork) fill(ctx context.Context) (left bool, err error) {
	for w.runs < w.jobs {
		if why, _ := w.stops(ctx, w.all, w.crew); why != "" {
			return false, nil
		}
		claim, held, err := w.fleet.Claim(ctx, w.named, w.tried)
		if errors.Is(err, fleet.ErrLeft) {
			return false, nil // what runs goes on
		}
		w.asked = w.asked || err == nil
		if claim == nil || err != nil {
			return held || err != nil, err
		}
		w.tried = append(w.tried, claim.Module)
		m := &member{module: claim.Module, far: plain.Some(claim.Open, "task") + " left", begun: true}
		w.all.members = append(w.all.members, m)
		w.runs++
		w.crew.screen.line(fmt.Sprintf("%s: begins, %s", m.module, m.far))
		go func() {
			w.one(ctx, m, claim)
			w.ended <- m
		}()
	}
	return true, nil
}

// one runs a module that is claimed, and gives it back.
func (w *fleetWork) one(ctx context.Context, m *member, claim *fleet.Claim) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-claim.Lost(): // the session is fenced as well
			cancel()
		case <-ctx.Done():
		}
	}()
	_, err := w.fleet.PullPlan(ctx, w.store, m.module)
	if errors.As(err, new(*fleet.PlanError)) {
		err = nil // the run says so, and goes by the plan here
	}
	var conflict *fleet.ConflictError
	if errors.As(err, &conflict) {
		m.err = &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%v, and here as well: lopen plan push %s says how they differ", err, m.module)}
	} else if m.err = fleetError(w.fleet, err); m.err == nil {
		m.run(ctx, w.workCall, w.crew)
	}
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer stop()
	if err := claim.GiveBack(ending, m.err != nil); err != nil && !errors.Is(err, fleet.ErrLeft) {
		w.logger.Info().Err(err).Str("module", m.module).Msg("the module was not given back; its lease ends by itself")
	}
}

// printPlans lists the modules of the fleet in the order of their turns.
func (w *workCall) printPlans(ctx context.Context, f *fleet.Fleet) error {
	plans, err := f.Plans(ctx)
	if err != nil {
		return err
	}
	for _, p := range plans {
		if p.Open == 0 {
			continue
		}
		line := fmt.Sprintf("%s  %d/%d", p.Module, p.Total-p.Open, p.Total)
		if p.Held {
			line += ", " + p.Host + " works on it"
		}
		fmt.Fprintln(w.stdout, plain.Line(line))
	}
	return nil
}
