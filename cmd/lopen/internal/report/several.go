package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A Part is one module of several that were worked on together.
type Part struct {
	*Report        // of its session; nil where none was run
	Module  string // the same where there is a Report
	Done    bool
	How     string // how its run ended, or why it was not begun
	Branch  string // that has its work, and what is not on it; "" where there is none
}

// Several writes one report of several modules: a line for each, then what failed, what waited,
// the totals and what to type next, of all together. more are the steps that are no
// session's own.
func Several(to io.Writer, loc *time.Location, parts []Part, more []Step) error {
	p := &page{w: bufio.NewWriter(to), loc: loc}
	p.parts(parts)
	all := &Report{Waited: []Waited{}, Totals: Totals{Then: map[string]int{}}}
	for _, part := range parts {
		if part.Report != nil {
			include(all, part.Report)
		}
	}
	p.failures(all)
	p.waits(all)
	p.taken(all)
	p.denied(all)
	p.totals(all)
	all.Next = append(all.Next, more...)
	p.next(all)
	return p.w.Flush()
}

// parts writes how far each module is.
func (p *page) parts(parts []Part) {
	done := 0
	for _, part := range parts {
		if part.Done {
			done++
		}
	}
	p.text("  ", fmt.Sprintf("# %d of %s done", done, plain.Some(len(parts), "module")))
	p.line("")
	for _, part := range parts {
		text := fmt.Sprintf("- **%s**: ", part.Module)
		if r := part.Report; r != nil {
			text += r.progress() + " (" + r.used() + ")"
			if r.Kills > 0 {
				text += ", killed " + plain.Some(r.Kills, "time")
			}
			text += ". "
		}
		if r := part.Report; !part.Done && r != nil && len(r.Failures) > 0 {
			text += "It ended because " + foreign(strings.TrimRight(r.Why, ".")) + ". "
		} else if !part.Done {
			text += foreign(strings.TrimRight(plain.Fit(part.How, maxMessage), ".")) + ". "
		}
		if part.Branch != "" {
			text += "Branch " + foreign(part.Branch) + "."
		}
		p.text("  ", text)
	}
}

// used is what a session used, in a few words.
func (r *Report) used() string {
	used := []string{Span(r.Totals.Seconds)}
	if n := r.Totals.Input + r.Totals.Output; n > 0 {
		used = append(used, plain.Count(n)+" tokens")
	}
	if cost := r.Totals.cost(); cost != "" && cost != unknown {
		used = append(used, cost)
	}
	return strings.Join(used, ", ")
}

// include adds what a session's report tells to all, with the session's module before each task.
func include(all, r *Report) {
	named := func(task string) string {
		if task == "" {
			return r.Module
		}
		return r.Module + ": " + task
	}
	for _, f := range r.Failures {
		f.Task.Task = named(f.Task.Task)
		all.Failures = append(all.Failures, f)
	}
	for _, w := range r.Waits {
		w.Task = named(w.Task)
		all.Waits = append(all.Waits, w)
	}
	slices.SortStableFunc(all.Waits, func(a, b Wait) int { return a.From.Compare(b.From) })
	for _, w := range r.Waited {
		all.waited(w)
	}
	for _, a := range r.TakenBack {
		a.Task = named(a.Task)
		all.TakenBack = append(all.TakenBack, a)
	}
	for _, d := range r.Denied {
		d.Tasks = slices.Clone(d.Tasks)
		for i := range d.Tasks {
			d.Tasks[i] = named(d.Tasks[i])
		}
		all.Denied = append(all.Denied, d)
	}
	t := &all.Totals
	t.Starts, t.Seconds = t.Starts+r.Totals.Starts, t.Seconds+r.Totals.Seconds
	t.Input, t.Output, t.Cached = t.Input+r.Totals.Input, t.Output+r.Totals.Output, t.Cached+r.Totals.Cached
	t.CostUSD, t.NoCost = t.CostUSD+r.Totals.CostUSD, t.NoCost+r.Totals.NoCost
	all.Lost += r.Lost
	for _, step := range r.Next {
		if cmp.Or(r.Ended, string(session.ExitComplete)) != string(session.ExitComplete) || len(step.Commands) > 0 && strings.HasPrefix(step.Commands[0], "lopen plan") {
			step.What = r.Module + ": " + step.What
			all.Next = append(all.Next, step)
		}
	}
}
