package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// gate runs the check at the end of a turn. back is set if its output went back to the agent, which
// goes on with the turn. Otherwise the turn ends: then and failure say how.
func (k *keeping) gate(ctx context.Context, t *turns.Keeper, g turns.Gate) (then, failure string, check *turns.Check, back bool, err error) {
	if g.Check == "" {
		k.say(hookReply{Warn: "gate is set and there is no check: lopen config set check CMD, or lopen config set gate false"})
		return record.Done, "", nil, false, nil
	}
	res, err := k.runCheck(ctx, g)
	switch {
	case err != nil:
		k.say(hookReply{Warn: fmt.Sprintf("the check was not run: %v", err)})
		return record.Done, "", nil, false, nil
	case res.Cause == child.CauseCanceled:
		return record.Interrupted, "", nil, false, nil
	}
	check = &turns.Check{CheckResult: session.CheckResult{
		Command: t.Sess.Redact(g.Check), Exit: res.Exit, At: res.EndedAt, Duration: res.EndedAt.Sub(res.StartedAt), Task: t.InProgress(),
	}}
	if res.Exit == 0 && res.Cause == child.CauseNone {
		return record.Done, "", check, false, nil
	}
	failure = "the check failed: " + ended(res)
	check.Tail = string(res.Tail)
	n, more, err := t.SendBack(failure, check)
	if err != nil {
		return "", "", nil, false, err
	}
	if !more {
		k.say(hookReply{Warn: fmt.Sprintf("%s, %d times: the turn ends all the same", failure, turns.MaxGates+1)})
		return record.Failed, failure, check, false, nil
	}
	k.say(hookReply{Block: sentBack(failure, n, g.Check, t.Sess.Redact(plain.Uncolored(check.Tail)))})
	return "", failure, check, true, nil
}

// runCheck runs the check, for which the agent waits, unless it was never approved.
func (k *keeping) runCheck(ctx context.Context, g turns.Gate) (child.Result, error) {
	if refused := k.unapproved(ctx, g); refused != "" {
		return child.Result{}, errors.New(refused)
	}
	k.say(hookReply{Wait: true})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go k.watch(ctx, cancel)
	return child.Run(ctx, child.Command{
		Argv: []string{"sh", "-c", g.Check}, Dir: k.tree, Env: k.environ, Timeout: k.values.Timeout,
		Stdout: io.Discard, Stderr: io.Discard, Keep: true, EndsWithUs: true,
	})
}

// judge runs the check of a turn of which nothing is kept any more. Its Gate notes how often that was sent back.
func (k *keeping) judge(ctx context.Context, begun *turns.Gate) (err error) {
	if k.values == nil {
		if k.values, err = k.settings(nil); err != nil {
			return err
		}
	}
	g := k.agreed(begun)
	if !g.On || g.Check == "" {
		return nil
	}
	res, err := k.runCheck(ctx, g)
	if err != nil {
		k.say(hookReply{Warn: fmt.Sprintf("the check was not run: %v", err)})
		return nil
	}
	if res.Cause == child.CauseCanceled {
		return nil
	}
	if res.Exit == 0 && res.Cause == child.CauseNone {
		k.mark().Over()
		return nil
	}
	failure := "the check failed: " + ended(res)
	if g.Sent++; g.Sent > turns.MaxGates {
		k.mark().Over()
		k.say(hookReply{Warn: fmt.Sprintf("%s, %d times: the turn ends all the same", failure, g.Sent)})
		return nil
	}
	k.mark().Agree(g)
	var hide redact.Redactor
	tail, _ := hide.String(plain.Uncolored(string(res.Tail)))
	k.say(hookReply{Block: sentBack(failure, g.Sent, g.Check, tail)})
	return nil
}

// sentBack is what the agent is told of a check that failed.
func sentBack(failure string, n int, check, tail string) string {
	return fmt.Sprintf("%s (%d of %d times): %s\n%s", failure, n, turns.MaxGates, check, strings.TrimSpace(tail))
}

// gateNow is what the settings say now.
func (k *keeping) gateNow() turns.Gate {
	return turns.Gate{On: k.values.Gate, Check: k.values.Check, Own: usersOwn(k.values.Source("check"))}
}

// agreed is what judges the turn: what was agreed when it began, nil if that is not known, but for what the user has set here
// since.
func (k *keeping) agreed(begun *turns.Gate) turns.Gate {
	now := k.gateNow()
	if begun == nil {
		return now
	}
	g := *begun
	if k.values.Source("gate") == settings.SourceHere {
		g.On = now.On
	}
	if k.values.Source("check") == settings.SourceHere {
		g.Check, g.Own = now.Check, now.Own
	}
	if g.On && !now.On {
		k.warn("gate was switched off after this turn began: the check of its begin judges it all the same")
	}
	if g.On && g.Check != now.Check {
		k.warn("the check was changed after this turn began: what judges it is " + plain.Shell(g.Check))
	}
	return g
}

// pollAgent is how often a check that runs looks whether its agent is still there.
const pollAgent = 250 * time.Millisecond

// watch calls stop when nobody reads the outcome of a check any more. The first process does not tell: an agent
// that was killed leaves it behind.
func (k *keeping) watch(ctx context.Context, stop func()) {
	tick := time.NewTicker(pollAgent)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.alone:
			stop()
			return
		case <-tick.C:
			if k.holder != nil && !(*lifecycle.Owner)(k.holder).Alive() {
				stop()
				return
			}
		}
	}
}

// ended says how a check ended.
func ended(res child.Result) string {
	switch {
	case res.Cause == child.CauseTimeout:
		return "it took longer than the setting timeout allows"
	case res.Signal != "":
		return "signal " + res.Signal
	}
	return fmt.Sprintf("exit %d", res.Exit)
}

// unapproved says why the check may not run, or nothing. What comes with the project runs only if
// this user approved exactly it.
func (k *keeping) unapproved(ctx context.Context, g turns.Gate) string {
	if g.Own {
		return ""
	}
	c := trust.Command{Shell: g.Check}
	store, err := k.approvals()
	if err == nil {
		var found *trust.Command
		same := func(c trust.Command) trust.Command { return c }
		if found, err = store.Approved(k.known(ctx, k.home), c, same); found != nil {
			return ""
		}
	}
	text := "it comes from inside the project and was never approved here, so it does not run: " + plain.Shell(c.Shell)
	if err != nil {
		text += fmt.Sprintf(" (%v)", err)
	}
	return text + "\n  approve it: lopen config set check " + plain.Quote(c.Shell)
}
