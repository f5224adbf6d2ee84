package loop

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// spent is what attempts cost.
type spent struct {
	cost   float64 // USD
	tokens int64   // without cached ones
}

// spent is what this run has cost so far.
func (r *runner) spent() spent {
	m := r.sess.State().Totals()
	return spent{m.CostUSD - r.earlier.CostUSD, m.InputTokens + m.OutputTokens - r.earlier.InputTokens - r.earlier.OutputTokens}
}

// today is what all runs of the project have cost since midnight. Where that cannot be
// read a warning says so, and this run's is what counts.
func (r *runner) today() spent {
	b := r.cfg.Budget
	if b.DayCost <= 0 && b.DayTokens <= 0 {
		return spent{}
	}
	own := spent{}
	own.cost, own.tokens = SpentSince(r.sess.State(), Midnight(time.Now()))
	if b.Today == nil {
		return own
	}
	cost, tokens, err := b.Today()
	if err != nil {
		r.warnOnce("today", fmt.Sprintf("what the runs of today cost is not known, day_cost and day_tokens count this session alone: %v", err))
	}
	return spent{max(cost, own.cost), max(tokens, own.tokens)}
}

// Midnight is when the day of a moment began, local time.
func Midnight(now time.Time) time.Time {
	y, m, d := now.Local().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.Local)
}

// SpentSince is what the attempts of a session that began since a moment cost: USD, and
// tokens without cached ones.
func SpentSince(st *session.State, since time.Time) (cost float64, tokens int64) {
	for it := range st.Iterations() {
		if !it.StartedAt.Before(since) {
			cost, tokens = cost+it.CostUSD, tokens+it.InputTokens+it.OutputTokens
		}
	}
	return cost, tokens
}

// usedUp says which bound of a budget is reached, "" for none.
func (b *Budget) usedUp(run, day spent) string {
	switch {
	case b.Cost > 0 && run.cost >= b.Cost:
		return fmt.Sprintf("this run has cost $%.2f, and max_cost is $%.2f", run.cost, b.Cost)
	case b.Tokens > 0 && run.tokens >= b.Tokens:
		return fmt.Sprintf("this run has used %d tokens, and max_tokens is %d", run.tokens, b.Tokens)
	case b.DayCost > 0 && day.cost >= b.DayCost:
		return fmt.Sprintf("the runs of today have cost $%.2f, and day_cost is $%.2f", day.cost, b.DayCost)
	case b.DayTokens > 0 && day.tokens >= b.DayTokens:
		return fmt.Sprintf("the runs of today have used %d tokens, and day_tokens is %d", day.tokens, b.DayTokens)
	case !b.Until.IsZero() && !wallClock().Before(b.Until):
		return "it is " + b.Until.Local().Format("15:04") + ", the time of --until"
	}
	return ""
}

// left is what the next attempt may cost in USD, 0 without a bound. It is asked while none
// is reached.
func (b *Budget) left(run, day spent) float64 {
	left := 0.0
	if b.Cost > 0 {
		left = b.Cost - run.cost
	}
	if d := b.DayCost - day.cost; b.DayCost > 0 && (left == 0 || d < left) {
		left = d
	}
	return left
}

// budget ends the run when a limit is reached, and notes what is left for the next attempt.
func (r *runner) budget() error {
	run, day := r.spent(), r.today()
	why := r.cfg.Budget.usedUp(run, day)
	if why == "" {
		r.left = r.cfg.Budget.left(run, day)
		return nil
	}
	p := r.sess.State().Progress()
	text := fmt.Sprintf("budget: %s; %d of %d tasks are left to do", why, p.Total-p.Done-p.Skipped, p.Total)
	r.log.Info().Str("text", why).Msg("budget reached")
	r.emit(event{Event: eventPaused, Text: text, CostUSD: run.cost})
	return r.pause(session.TriggerPaused, session.ExitBudget, &Exit{exitLimit, text + ": " + r.resumeHint()})
}

// warnUnknownCost says once when a bound in USD cannot be kept.
func (r *runner) warnUnknownCost(w *worker, known bool) {
	if b := r.cfg.Budget; !known && (b.Cost > 0 || b.DayCost > 0) {
		r.warnOnce("cost of "+w.Name(), fmt.Sprintf("%s does not say what it costs: max_cost and day_cost do not count it; max_tokens may", w))
	}
}
