package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// attemptsOf keeps the attempts of a record that are of a task, by its ID. "" keeps all.
func attemptsOf(r record.Record, task string) (all []record.Attempt) {
	for _, a := range r.Attempts {
		if task == "" || a.Task == task || slices.Contains(a.Leaves, task) {
			all = append(all, a)
		}
	}
	return all
}

// printAttempt prints all that is known of one start of the command.
func printAttempt(w io.Writer, a record.Attempt, id session.ID, of turnsOf, recipes map[string]agent.Profile) {
	begun := a.StartedAt.Local().Format(time.DateTime)
	if of.st != nil {
		fmt.Fprintf(w, "%s  %s\n", begun, of.attempt(&a))
	} else {
		fmt.Fprintf(w, "%s  iteration %d: %s, attempt %d: %s\n", begun, a.Iteration, plain.Line(a.Task), a.Attempt, plain.Line(a.Then))
	}
	p := attemptPrinter{w}
	p.command(&a, recipes)
	p.usage(&a)
	p.files(&a)
	p.judgement(&a)
	for _, part := range [][2]string{{"output", a.Tail}, {"check's", a.CheckTail}} {
		for line := range strings.Lines(part[1]) {
			fmt.Fprintf(w, "  %-9s | %s\n", part[0], strings.TrimRight(line, "\r\n"))
		}
	}
	p.field("all of it", outputCommand(a, id))
}

// outputCommand is the command that prints all of an attempt's output; "" of a turn, which the
// agent's own session has.
func outputCommand(a record.Attempt, id session.ID) string {
	if len(a.Command) == 0 {
		return ""
	}
	return quoted([]string{"lopen", "session", "output", fmt.Sprintf("%s#%d", a.Task, a.Attempt), "--session", id.String()})
}

// An attemptPrinter prints the fields of an attempt, a line each.
type attemptPrinter struct{ w io.Writer }

// field prints a field; none where value is "".
func (p attemptPrinter) field(name, value string) {
	if value != "" {
		fmt.Fprintf(p.w, "  %-9s %s\n", name, value)
	}
}

// command prints what was started, and how it ended.
func (p attemptPrinter) command(a *record.Attempt, recipes map[string]agent.Profile) {
	if len(a.Command) > 0 {
		fmt.Fprintf(p.w, "  %-9s %s\n", "command", quoted(a.Command))
	}
	if a.Agent != agent.None {
		p.field("agent", plain.Line(a.Agent))
	}
	if a.AgentSession != "" {
		p.field("session", opened(a.Agent, a.AgentSession, openSession(*a, recipes)))
	}
	p.field("model", plain.Line(a.Model))
	if a.Then == record.Killed {
		p.field("ended", "nobody knows how: lopen was killed while it worked")
		return
	}
	if len(a.Command) == 0 {
		return // a turn, of which the first line has how long it took
	}
	exit := fmt.Sprintf("exit %d", a.Exit)
	if a.Signal != "" {
		exit = "signal " + plain.Line(a.Signal)
	}
	used := fmt.Sprintf("%s of CPU", time.Duration(a.CPU)*time.Millisecond)
	if a.MaxRSS > 0 {
		used += fmt.Sprintf(", %s of memory at most", bytesText(a.MaxRSS))
	}
	p.field("ended", fmt.Sprintf("%s after %s, %s", exit, a.EndedAt.Sub(a.StartedAt).Round(time.Millisecond), used))
}

// usage prints what the attempt used, and what of the documents it was given.
func (p attemptPrinter) usage(a *record.Attempt) {
	if a.Turns > 0 {
		p.field("turns", strconv.Itoa(a.Turns))
	}
	if a.Input+a.Output > 0 {
		cost := fmt.Sprintf("$%.2f", a.CostUSD)
		if a.NoCost {
			cost = "cost unknown"
		}
		p.field("tokens", fmt.Sprintf("%s in, %s out, %s", plain.Count(a.Input), plain.Count(a.Output), cost))
	}
	for _, c := range a.Context {
		p.field("given", fmt.Sprintf("%s, %d bytes", strings.TrimSpace(shown(c.Path)+" "+plain.Line(c.Header)), c.Bytes))
	}
}

// files prints what the attempt changed.
func (p attemptPrinter) files(a *record.Attempt) {
	if a.Before != a.After {
		p.field("git", fmt.Sprintf("%.12s → %.12s", plain.Line(a.Before), plain.Line(a.After)))
	}
	for _, f := range a.Files {
		name := shown(f.Path)
		if f.From != "" {
			name = shown(f.From) + " → " + name
		}
		p.field("file", fmt.Sprintf("%s: %s", plain.Line(f.Change), name))
	}
	if a.MoreFiles > 0 {
		p.field("file", fmt.Sprintf("and %d more", a.MoreFiles))
	}
}

// judgement prints how the check ended, and why the attempt failed or was not counted.
func (p attemptPrinter) judgement(a *record.Attempt) {
	if a.Check != nil {
		p.field("check", fmt.Sprintf("%s: exit %d after %s", plain.Shell(a.Check.Command), a.Check.Exit, time.Duration(a.Check.Ms)*time.Millisecond))
	}
	p.field("failed", plain.Line(a.Failure))
	p.field("problem", plain.Line(a.Problem))
	p.field("said", plain.Line(a.AgentError))
	if a.RetryAt != nil {
		p.field("retry at", a.RetryAt.Local().Format(time.DateTime))
	}
	for _, d := range a.Denied {
		fmt.Fprintf(p.w, "  %-9s %s\n", "denied", plain.Line(d))
	}
}
