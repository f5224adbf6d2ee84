package loop

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// logEnd logs how the run ended: the exit reason of the session and, if the run chose them, the
// exit code and the text.
func (r *runner) logEnd(err error, begun time.Time) {
	var exit *Exit
	e := r.log.Info()
	switch {
	case err == nil:
		e = e.Int("exit", 0)
	case errors.As(err, &exit):
		e = e.Int("exit", exit.Code).Str("text", exit.Reason)
	default:
		e = lifecycle.LogCause(r.log.Error(), err)
	}
	st := r.sess.State()
	p := st.Progress()
	e.Str("reason", string(st.Header().ExitReason)).Int("done", p.Done).Int("total", p.Total).Int("starts", r.starts).
		Dur("duration_ms", time.Since(begun)).Msg("run ends")
}

// logTaskEnds logs an attempt, without its output and the names of the files.
func (r *runner) logTaskEnds(a *record.Attempt) {
	e := r.log.Info().Str("task", a.Task).Int("attempt", a.Attempt).Int("iteration", a.Iteration).Str("outcome", a.Then).Int("exit", a.Exit)
	optional(e, "signal", a.Signal)
	if a.Check != nil {
		e.Int("check_exit", a.Check.Exit)
	}
	optional(e, "failure", a.Failure)
	e.Int("changed", len(a.Files)+a.MoreFiles)
	if a.Input+a.Output+a.Cached > 0 {
		e.Int64("input_tokens", a.Input).Int64("output_tokens", a.Output).Int64("cached_tokens", a.Cached)
	}
	if a.CostUSD > 0 {
		e.Float64("cost_usd", a.CostUSD)
	}
	e.Dur("duration_ms", a.EndedAt.Sub(a.StartedAt)).Msg("task ends")
}

func optional(e *zerolog.Event, field, text string) {
	if text != "" {
		e.Str(field, text)
	}
}
