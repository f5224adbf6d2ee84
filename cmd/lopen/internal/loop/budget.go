package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// spent is the cost of some attempts.
type spent struct {
	cost   float64 // USD
	tokens int64   // without cached ones
}

// spent returns the cost of this run so far.
func (r *runner) spent() spent {
	m := r.sess.State().Totals()
	return spent{m.CostUSD - r.earlier.CostUSD, m.InputTokens + m.OutputTokens - r.earlier.InputTokens - r.earlier.OutputTokens}
}

// today returns the cost of all runs of the project since midnight. If that cannot be read, it
// warns and returns the cost of this session.
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

// Midnight returns the begin of the day of now, local time.
func Midnight(now time.Time) time.Time {
	y, m, d := now.Local().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.Local)
}

// SpentSince returns the cost of a session's attempts that began at or after since: USD, and
// tokens without cached ones.
func SpentSince(st *session.State, since time.Time) (cost float64, tokens int64) {
	for it := range st.Iterations() {
		if !it.StartedAt.Before(since) {
			cost, tokens = cost+it.CostUSD, tokens+it.InputTokens+it.OutputTokens
		}
	}
	return cost, tokens
}

// usedUp returns a text with the limit of the budget that is reached, or "". who is the subject
// of the text about run.
func (b *Budget) usedUp(who string, run, day spent) string {
	switch {
	case b.Cost > 0 && run.cost >= b.Cost:
		return fmt.Sprintf("%s cost $%.2f, and max_cost is $%.2f", who, run.cost, b.Cost)
	case b.Tokens > 0 && run.tokens >= b.Tokens:
		return fmt.Sprintf("%s used %d tokens, and max_tokens is %d", who, run.tokens, b.Tokens)
	case b.DayCost > 0 && day.cost >= b.DayCost:
		return fmt.Sprintf("the runs of today have cost $%.2f, and day_cost is $%.2f", day.cost, b.DayCost)
	case b.DayTokens > 0 && day.tokens >= b.DayTokens:
		return fmt.Sprintf("the runs of today have used %d tokens, and day_tokens is %d", day.tokens, b.DayTokens)
	case !b.Until.IsZero() && !wallClock().Before(b.Until):
		return "it is " + b.Until.Local().Format("15:04") + ", the time of --until"
	}
	return ""
}

// left returns what the next attempt may cost in USD, or 0 if there is no limit. The caller makes
// sure that no limit is reached.
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

// budget ends the run if a limit is reached, and otherwise sets what is left for the next
// attempt.
func (r *runner) budget(ctx context.Context) error {
	run, day := r.spent(), r.today()
	next := share{why: r.cfg.Budget.usedUp("this run has", run, day), left: r.cfg.Budget.left(run, day)}
	if r.cfg.Shared != nil {
		var err error
		if next, err = r.share(ctx, run, day); err != nil {
			return err
		}
	}
	why := next.why
	if why == "" {
		r.left = next.left
		return nil
	}
	p := r.sess.State().Progress()
	text := fmt.Sprintf("budget: %s; %d of %d tasks are left to do", why, p.Total-p.Done-p.Skipped, p.Total)
	r.log.Info().Str("text", why).Msg("budget reached")
	r.emit(event{Event: eventPaused, Text: text, CostUSD: run.cost})
	return r.pause(session.TriggerPaused, session.ExitBudget, &Exit{ExitLimit, text + ": " + r.resumeHint()})
}

// warnUnknownCost warns once if a limit in USD cannot be enforced.
func (r *runner) warnUnknownCost(w *worker, known bool) {
	if b := r.cfg.Budget; !known && (b.Cost > 0 || b.DayCost > 0) {
		r.warnOnce("cost of "+w.Name(), fmt.Sprintf("%s does not say what it costs: max_cost and day_cost do not count it; max_tokens may", w))
	}
}
