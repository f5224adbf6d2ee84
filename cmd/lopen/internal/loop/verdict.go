package loop

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

const (
	// quick bounds a start of a command whose events are not known that came to nothing.
	quick = 10 * time.Second
	// maxGuesses is how many starts in a row wait because of the last lines that they printed.
	maxGuesses = 3
)

// A start is what is known of one start of the command when it is judged.
type start struct {
	knows   bool           // the agent's events
	report  agent.Report   // the zero value unless knows
	guess   *agent.Problem // of the last lines, unless knows
	guessed int            // how many starts in a row before this one wait because of a guess
	result  child.Result
	ended   string     // how the process ended, when it did not succeed
	retryAt *time.Time // of LOPEN_METRICS_FILE
	budget  float64    // USD that the start was given; 0 is no limit
	noCost  bool       // what it cost is not known
	resumed bool       // it continued a session of the agent
	changed bool       // a file, or nobody knows
	red     string     // what failed after the agent ended well: the check, or no change
}

// A verdict is what follows a start of the command.
type verdict struct {
	then    string         // record.Done, Failed, Waits, Needed or Uncounted
	failure string         // of Failed and Uncounted: why
	problem *agent.Problem // of Waits and Needed
	byWords bool           // of Waits: the last lines say so, and nothing else
}

// weigh judges a start. What the agent's events say counts for more than its exit code: a
// result that is an error fails with exit 0, and an exit 0 without the event that ends a
// run is a torn end. A problem of a known agent costs no attempt, whatever it changed.
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

// well says that the agent ended well.
func (s *start) well() bool {
	return s.result.Cause == child.CauseNone && s.result.Exit == 0 && (!s.knows || s.report.Final && s.report.Success)
}

// spent says that a start used up the budget that it was given.
func (s *start) spent() bool { return s.budget > 0 && s.report.CostUSD >= s.budget }

// lost says that a start could not continue the agent's session.
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

// why says how a start failed, in the agent's words where its events have some.
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

// empty says that nothing came of a start that failed: no word of a model, or, where that is
// not known, it was over within seconds and changed no file.
func (s *start) empty() bool {
	if s.knows {
		return !s.report.Spoke
	}
	return !s.changed && s.result.EndedAt.Sub(s.result.StartedAt) < quick
}
