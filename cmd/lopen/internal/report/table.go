package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// unknown is a cost that nobody reported.
const unknown = "not known"

// A column of the table of tasks: left out where all its cells are empty.
type column struct {
	name string
	cell func(*Task) string
}

var columns = []column{
	{"time", func(t *Task) string { return Span(t.Seconds) }},
	{"tries", func(t *Task) string {
		if t.Starts < 2 {
			return ""
		}
		return fmt.Sprint(t.Starts)
	}},
	{"in", func(t *Task) string { return number(t.Input) }},
	{"out", func(t *Task) string { return number(t.Output) }},
	{"cached", func(t *Task) string { return number(t.Cached) }},
	{"cost", func(t *Task) string { return t.cost() }},
	{"files", func(t *Task) string {
		if t.Files == 0 {
			return "none"
		}
		return fmt.Sprint(t.Files)
	}},
}

// done writes the table of tasks, a line each.
func (p *page) done(r *Report) {
	if len(r.Done) == 0 {
		return
	}
	p.line("\n## Done\n")
	rows := make([][]string, len(r.Done)+1)
	for _, c := range columns {
		wide, cells := utf8.RuneCountInString(c.name), []string{c.name}
		empty := true
		for i := range r.Done {
			cell := c.cell(&r.Done[i])
			empty = empty && (cell == "" || cell == unknown)
			wide = max(wide, utf8.RuneCountInString(cell))
			cells = append(cells, cell)
		}
		if empty {
			continue
		}
		for i, cell := range cells {
			rows[i] = append(rows[i], fmt.Sprintf("%*s", wide, cell))
		}
	}
	for i, row := range rows {
		name := "task"
		if i > 0 {
			t := &r.Done[i-1]
			name = t.named()
			if t.State != string(session.TaskComplete) {
				name += " (" + t.State + " again)"
			}
		}
		line := "| " + strings.Join(row, " | ") + " | "
		name = fitted(name, width-2-utf8.RuneCountInString(line), middle)
		p.line("%s%s |", line, strings.ReplaceAll(name, "|", `\|`))
		if i == 0 {
			for _, cell := range row {
				_, _ = p.w.WriteString("|-" + strings.Repeat("-", utf8.RuneCountInString(cell)) + ":")
			}
			p.line("|------|")
		}
	}
}

// named is a task's ID; a prompt's with its first line.
func (t *Task) named() string {
	if t.Name != "" && strings.HasPrefix(t.Task, "prompt-") {
		return t.Task + " " + t.Name
	}
	return t.Task
}

// middle cuts a text to at most n runes: IDs differ at their ends.
func middle(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	n = max(n-1, 0)
	return string(runes[:n-n/2]) + "…" + string(runes[len(runes)-n/2:])
}

func (p *page) totals(r *Report) {
	t := &r.Totals
	if t.Starts == 0 && r.Lost == 0 && r.Progress.Total == 0 { // a history that was imported
		return
	}
	starts := plain.Some(t.Starts, "start") + " of the command"
	if r.origin == session.OriginHook {
		starts = plain.Some(t.Starts, "attempt")
	}
	parts := []string{starts, Span(t.Seconds) + " of work"}
	if t.Input+t.Output+t.Cached > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens in, %s out, %s cached", plain.Count(t.Input), plain.Count(t.Output), plain.Count(t.Cached)))
	}
	if cost := t.cost(); cost != "" {
		parts = append(parts, "cost "+cost)
	}
	p.line("")
	p.text("", "Total: "+strings.Join(parts, ", ")+".")
	if r.Lost > 0 {
		p.text("", fmt.Sprintf("Of %s before them the log is lost: the session was made again.", plain.Some(r.Lost, "start")))
	}
}

// cost is what starts cost, with a sign where that is not known of all; "" where none reported one.
func (u *Usage) cost() string {
	switch {
	case u.NoCost > 0 && u.CostUSD > 0:
		return fmt.Sprintf("≥ $%.2f", u.CostUSD)
	case u.NoCost > 0:
		return unknown
	case u.CostUSD > 0:
		return fmt.Sprintf("$%.2f", u.CostUSD)
	}
	return ""
}

// number shortens a count; "" is nothing.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return plain.Count(n)
}
