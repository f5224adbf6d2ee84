package report

import (
	"cmp"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// endings say why a run ended, by its exit reason.
var endings = map[session.ExitReason]string{
	session.ExitComplete:      "all is done",
	session.ExitPaused:        "it was paused",
	session.ExitInterrupted:   "a person interrupted it",
	session.ExitNeeded:        "a person is needed",
	session.ExitBudget:        "a bound of the budget is reached",
	session.ExitAgentLimit:    "the agent's limit lasted too long",
	session.ExitMaxIterations: "the command was started as often as max_iterations allows",
	session.ExitStorageError:  "of a storage error",
	session.ExitCrashed:       "lopen was killed, or the machine stopped",
}

// why says in a sentence how the last run ended, as far as the log has it.
func (r *Reader) why(rep *Report, st *session.State) string {
	message := ""
	if r.said != "" {
		message = ": " + r.said
	}
	reason := session.ExitReason(rep.Ended)
	switch {
	case reason == "":
		return "it goes on"
	case reason == session.ExitCrashed:
		return endings[reason]
	case r.then == record.Needed:
		return fmt.Sprintf("a person is needed (%s)%s", r.problem, message)
	case reason == session.ExitFailed && r.then == record.Uncounted:
		return "the agent fails at every task" + message
	case reason == session.ExitFailed:
		return whyFailed(rep, st)
	case reason == session.ExitNeeded, reason == session.ExitAgentLimit:
		return endings[reason] + message
	}
	return cmp.Or(endings[reason], rep.Ended)
}

// whyFailed is why for a run that tasks ended, or their check.
func whyFailed(rep *Report, st *session.State) string {
	if n := len(rep.Failures); n > 0 {
		last := rep.Failures[n-1]
		if c := st.Header().Check; c != nil && c.Exit != 0 && c.At.After(last.At) {
			return fmt.Sprintf("the check of %s is red after %s failed", c.Task, last.Task.Task)
		}
	}
	if rep.Progress.Failed > 0 {
		return "tasks failed"
	}
	return "it could not go on"
}

// next is what to do, the most urgent first.
func next(rep *Report, st *session.State) (all []Step) {
	all = []Step{}
	step := func(what string, commands ...string) { all = append(all, Step{what, commands}) }
	switch st.Header().Origin {
	case session.OriginHook:
		step("look at what each prompt changed", "lopen session log "+plain.Quote(rep.Session, "--task", ""))
		return all
	case session.OriginImport:
		step("read what was said", "lopen session show "+plain.Quote(rep.Session, "--messages"))
		return all
	}
	if rep.Ended == "" {
		step("watch it, or pause it after the task at work", "lopen session watch "+plain.Quote(rep.Session), "lopen session pause "+rep.Module)
	}
	if len(rep.Failures) > 0 {
		step("read what a task printed", "lopen session output "+plain.Quote(rep.Failures[0].Task.Task, "--session", rep.Session))
	}
	over := rep.Progress.Done+rep.Progress.Skipped == rep.Progress.Total
	switch {
	case rep.Ended == "":
	case st.Header().RequiresValidation:
		step("accept the recovered session", "lopen session verify "+plain.Quote(rep.Session, "--accept"))
	case over:
	case len(rep.Failures) > 0:
		step("mend what failed, and run again", "lopen run "+rep.Module)
	default:
		step("go on", "lopen run "+rep.Module)
	}
	if n := len(rep.Unchanged); n > 0 {
		step(fmt.Sprintf("%d done without changing a file; to have one done again", n), "lopen plan untick "+plain.Quote(rep.Module, rep.Unchanged[0]))
	}
	return all
}
