package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

const (
	firstLimitWait = time.Minute
	maxLimitWait   = 30 * time.Minute
	pausePoll      = time.Second // how often a waiting run looks for a request to pause
)

// limits is the wait for an agent's provider since the last start of the
// command that was not limited.
type limits struct {
	next   time.Duration // of the next wait when the agent names no time
	waited time.Duration
}

// plan returns until when to wait, and whether the budget allows it.
func (l *limits) plan(now time.Time, retryAt *time.Time, budget time.Duration) (time.Time, bool) {
	if l.next == 0 {
		l.next = firstLimitWait
	}
	d := l.next
	l.next = min(2*l.next, maxLimitWait)
	if retryAt != nil {
		d = max(retryAt.Sub(now), 0) // up to 292 years: nothing may be added to it
	}
	if budget > 0 && d > budget-l.waited {
		return now.Add(d), false
	}
	l.waited += d
	return now.Add(d), true
}

// waitLimit waits until the provider's limit is over, or ends the run with
// exit code 75 when that is too far away.
func (r *Runner) waitLimit(ctx context.Context, m metrics) error {
	until, ok := r.limits.plan(time.Now(), m.RetryAt, r.cfg.Wait)
	at := until.Local().Format("15:04:05")
	if !ok {
		return r.pause(session.TriggerPaused, session.ExitAgentLimit, &Exit{ExitLimit,
			fmt.Sprintf("the agent's limit lasts until %s, longer than --wait %s allows: %s", at, r.cfg.Wait, r.resumeHint())})
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	if err := r.sess.Release(); err != nil { // it may be hours
		return err
	}
	r.cfg.UI.Say("the agent is at its limit: waiting until %s, no attempt is counted", at)
	r.cfg.UI.Status(Status{Task: "waiting for the agent's limit", Since: time.Now(), Until: until, Progress: r.sess.State().Progress()})
	begun := time.Now()
	r.log.Info().Time("until", until).Msg("waits for the agent's limit")
	defer func() {
		r.log.Info().Dur("duration_ms", time.Since(begun)).Msg("no longer waits for the agent's limit")
	}()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	tick := time.NewTicker(pausePoll)
	defer tick.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return r.interrupted()
		case <-tick.C:
			if r.sess.PauseRequested() {
				return nil // the loop pauses before its next start
			}
		}
	}
}
