package report

import (
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// why says in a sentence how the last run ended, as far as the log tells.
func (r *Reader) why(rep *Report, st *session.State) string {
	said := ""
	if r.said != "" {
		said = ": " + r.said
	}
	switch {
	case rep.Ended == "":
		return "it goes on"
	case rep.Ended == string(session.ExitCrashed):
		return "lopen was killed, or the machine stopped"
	case r.then == session.Needed:
		return fmt.Sprintf("a person is needed (%s)%s", r.problem, said)
	case rep.Ended == string(session.ExitFailed) && r.then == session.Uncounted:
		return "the agent fails at every task" + said
	}
	switch session.ExitReason(rep.Ended) {
	case session.ExitComplete:
		return "all is done"
	case session.ExitPaused:
		return "it was paused"
	case session.ExitInterrupted:
		return "a person interrupted it"
	case session.ExitNeeded:
		return "a person is needed" + said
	case session.ExitBudget:
		return "a bound of the budget is reached"
	case session.ExitFailed:
		if c := st.Header().Check; c != nil && c.Exit != 0 && len(rep.Failures) > 0 && c.At.After(rep.Failures[len(rep.Failures)-1].At) {
			last := rep.Failures[len(rep.Failures)-1].Task.Task
			return fmt.Sprintf("the check of %s is red after %s failed", c.Task, last)
		}
		if rep.Progress.Failed > 0 {
			return "tasks failed"
		}
		return "it could not go on"
	case session.ExitAgentLimit:
		return "the agent's limit lasted too long" + said
	case session.ExitMaxIterations:
		return "the command was started as often as max_iterations allows"
	case session.ExitStorageError:
		return "of a storage error"
	}
	return rep.Ended
}

// next is what to do, the most urgent first.
func next(rep *Report, st *session.State) (all []Step) {
	all = []Step{}
	step := func(what string, commands ...string) { all = append(all, Step{what, commands}) }
	if rep.Ended == "" {
		step("watch it, or pause it after the task at work", "lopen session watch "+rep.Session, "lopen session pause "+rep.Module)
	}
	if len(rep.Failures) > 0 {
		step("read what a task printed", fmt.Sprintf("lopen session output %s --session %s", rep.Failures[0].Task.Task, rep.Session))
	}
	over := rep.Progress.Done+rep.Progress.Skipped == rep.Progress.Total
	switch {
	case rep.Ended == "":
	case st.Header().RequiresValidation:
		step("accept the recovered session", "lopen session verify "+rep.Session+" --accept")
	case over:
	case len(rep.Failures) > 0:
		step("mend what failed, and run again", "lopen run "+rep.Module)
	default:
		step("go on", "lopen run "+rep.Module)
	}
	if n := len(rep.Unchanged); n > 0 {
		step(fmt.Sprintf("%d done without changing a file; to have one done again", n), fmt.Sprintf("lopen plan untick %s %s", rep.Module, rep.Unchanged[0]))
	}
	return all
}
