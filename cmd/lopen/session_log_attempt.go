package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// attemptsOf keeps the attempts of a record that are of a task: its ID, or a unique
// end of it. "" keeps all.
func attemptsOf(r session.Record, task string) (all []session.AttemptRecord) {
	for _, a := range r.Attempts {
		ids := append([]string{a.Task}, a.Leaves...)
		for _, id := range ids {
			if task == "" || id == task || strings.HasSuffix(id, "/"+task) {
				all = append(all, a)
				break
			}
		}
	}
	return all
}

// tellAttempt tells of one start of the command all that is known.
func tellAttempt(w io.Writer, a session.AttemptRecord, id session.ID, recipes map[string]agent.Profile) {
	took := a.EndedAt.Sub(a.StartedAt).Round(time.Millisecond)
	fmt.Fprintf(w, "%s  iteration %d: %s, attempt %d: %s\n", a.StartedAt.Local().Format(time.DateTime), a.Iteration, plain.Line(a.Task), a.Attempt, plain.Line(a.Then))
	field := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	field("command", "%s", quoted(a.Command))
	if a.Agent != "" && a.Agent != agent.None {
		field("agent", "%s", plain.Line(a.Agent))
	}
	if a.AgentSession != "" {
		field("session", "%s", opened(a.Agent, a.AgentSession, openSession(a, recipes)))
	}
	if a.Model != "" {
		field("model", "%s", plain.Line(a.Model))
	}
	exit := fmt.Sprintf("exit %d", a.Exit)
	if a.Signal != "" {
		exit = "signal " + plain.Line(a.Signal)
	}
	used := fmt.Sprintf("%s of CPU", time.Duration(a.CPU)*time.Millisecond)
	if a.MaxRSS > 0 {
		used += fmt.Sprintf(", %s of memory at most", bytesText(a.MaxRSS))
	}
	if a.Then == session.Killed {
		field("ended", "nobody knows how: lopen was killed while it worked")
	} else {
		field("ended", "%s after %s, %s", exit, took, used)
	}
	if a.Turns > 0 {
		field("turns", "%d", a.Turns)
	}
	if a.Input+a.Output > 0 {
		cost := fmt.Sprintf("$%.2f", a.CostUSD)
		if a.NoCost {
			cost = "cost unknown"
		}
		field("tokens", "%s in, %s out, %s", count(a.Input), count(a.Output), cost)
	}
	for _, c := range a.Context {
		field("given", "%s, %d bytes", strings.TrimSpace(shown(c.Path)+" "+plain.Line(c.Header)), c.Bytes)
	}
	if a.Before != a.After {
		field("git", "%.12s → %.12s", plain.Line(a.Before), plain.Line(a.After))
	}
	for _, f := range a.Files {
		name := shown(f.Path)
		if f.From != "" {
			name = shown(f.From) + " → " + name
		}
		field("file", "%s: %s", plain.Line(f.Change), name)
	}
	if a.MoreFiles > 0 {
		field("file", "and %d more", a.MoreFiles)
	}
	if a.Check != nil {
		field("check", "%s: exit %d after %s", trust.Line(a.Check.Command), a.Check.Exit, time.Duration(a.Check.Ms)*time.Millisecond)
	}
	if a.Failure != "" {
		field("failed", "%s", plain.Line(a.Failure))
	}
	if a.Problem != "" {
		field("problem", "%s", plain.Line(a.Problem))
	}
	if a.Said != "" {
		field("said", "%s", plain.Line(a.Said))
	}
	if a.RetryAt != nil {
		field("retry at", "%s", a.RetryAt.Local().Format(time.DateTime))
	}
	for _, d := range a.Denied {
		field("denied", "%s", plain.Line(d))
	}
	for _, part := range [][2]string{{"output", a.Tail}, {"check's", a.CheckTail}} {
		for line := range strings.Lines(part[1]) {
			fmt.Fprintf(w, "  %-9s | %s\n", part[0], strings.TrimRight(line, "\r\n"))
		}
	}
	field("all of it", "%s", quoted([]string{"lopen", "session", "output", fmt.Sprintf("%s#%d", a.Task, a.Attempt), "--session", id.String()}))
}
