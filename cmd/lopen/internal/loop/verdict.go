package loop

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

const (
	// quick is the duration below which a failed start without known events counts as empty.
	quick = 10 * time.Second
	// maxGuesses bounds the starts in a row that wait only because of their last lines of output.
	maxGuesses = 3
)

// A start is what is known of one start of the command when it is judged.
type start struct {
	knows   bool           // the format of the agent's events is known
	report  agent.Report   // zero unless knows
	guess   *agent.Problem // from the last lines of output, unless knows
	guessed int            // number of starts in a row before this one that wait because of a guess
	result  child.Result
	ended   string     // how the process failed
	retryAt *time.Time // from LOPEN_METRICS_FILE
	budget  float64    // USD that the start was given; 0 means no limit
	noCost  bool       // its cost is not known
	resumed bool       // it continued a session of the agent
	changed bool       // it changed a file, or that is not known
	red     string     // what failed after the agent ended well: the check, or no file was changed
}

// A verdict is what follows a start of the command.
type verdict struct {
	then    string         // record.Done, Failed, Waits, Needed or Uncounted
	failure string         // the reason of Failed and Uncounted
	problem *agent.Problem // the problem of Waits and Needed
	byWords bool           // Waits rests only on the last lines of output
}

// weigh judges a start. The agent's events win over its exit code: a result that is an error
// fails even with exit 0, and an exit 0 without the event that ends a run is a failure. A
// problem of a known agent does not count as an attempt, even if files were changed.
func (s *start) weigh() verdict {
	ended, well := s.result.Cause == child.CauseNone, s.well()
	switch {
	case well && s.red == "":
		return verdict{then: record.Done}
	case well:
		return verdict{then: record.Failed, failure: s.red}
	case s.report.Problem != nil:
		return s.trouble(*s.report.Problem)
	case ended && s.result.Exit == exitTryLater:
		return s.trouble(agent.Problem{Kind: agent.Limit})
	case s.guess != nil && ended && !s.changed && s.guessed < maxGuesses:
		v := s.trouble(*s.guess)
		v.byWords = true
		return v
	case s.spent():
		return verdict{then: record.Uncounted, failure: fmt.Sprintf("ended when what was left of the budget, $%.2f, was used up", s.budget)}
	case s.lost():
		return verdict{then: record.Uncounted, failure: "the agent's session could not be continued: " + s.why()}
	}
	return verdict{then: record.Failed, failure: s.why()}
}

// well reports whether the agent ended well.
func (s *start) well() bool {
	return s.result.Cause == child.CauseNone && s.result.Exit == 0 && (!s.knows || s.report.Final && s.report.Success)
}

// spent reports whether a start used up the budget that it was given.
func (s *start) spent() bool { return s.budget > 0 && s.report.CostUSD >= s.budget }

// lost reports whether a start could not continue the agent's session.
func (s *start) lost() bool { return s.resumed && (s.report.Gone || s.empty()) }

func (s *start) trouble(p agent.Problem) verdict {
	if p.ResetAt.IsZero() && s.retryAt != nil {
		p.ResetAt = *s.retryAt
	}
	then := record.Needed
	if p.Kind.Waits() {
		then = record.Waits
	}
	return verdict{then: then, problem: &p}
}

// why returns how a start failed, with the agent's error message if its events have one.
func (s *start) why() string {
	switch {
	case s.report.Error != "" && s.report.Final:
		return "the agent says: " + s.report.Error
	case s.report.Error != "":
		return s.ended + ": " + s.report.Error
	case s.result.Cause != child.CauseNone || s.result.Exit != 0:
		return s.ended
	case s.report.Final:
		return "the agent says that it failed"
	}
	return "exit 0 without the event that ends a run: its output was cut"
}

// empty reports whether a failed start achieved nothing: the model said nothing or, if that is
// not known, the start ended within seconds and changed no file.
func (s *start) empty() bool {
	if s.knows {
		return !s.report.Spoke
	}
	return !s.changed && s.result.EndedAt.Sub(s.result.StartedAt) < quick
}
