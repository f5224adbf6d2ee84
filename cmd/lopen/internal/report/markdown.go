package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

const (
	width      = 100 // of a line, in runes; commands to type are never cut
	maxShown   = 10  // waits and attempts that stand one by one
	maxMessage = 300 // runes
)

// Markdown writes the report for a terminal, a file or a chat: failures first, a line for
// each task that is done. Times are in the zone loc.
func (r *Report) Markdown(to io.Writer, loc *time.Location) error {
	p := &page{w: bufio.NewWriter(to), loc: loc}
	p.head(r)
	p.failures(r)
	p.unstored(r)
	p.waits(r)
	p.taken(r)
	p.denied(r)
	p.done(r)
	p.totals(r)
	p.next(r)
	return p.w.Flush()
}

// A page writes a report. The writer's errors stick: Flush returns them.
type page struct {
	w   *bufio.Writer
	loc *time.Location
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// text writes a paragraph, broken at spaces, with an indentation after its first line.
func (p *page) text(indent, s string) {
	room, at := width, 0
	for i, word := range strings.Fields(plain.Line(s)) {
		word = plain.Fit(word, room-len(indent))
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > room:
			_, _ = p.w.WriteString("\n" + indent)
			at = len(indent)
		default:
			_ = p.w.WriteByte(' ')
			at++
		}
		_, _ = p.w.WriteString(word)
		at += n
	}
	_ = p.w.WriteByte('\n')
}

func (p *page) clock(t time.Time) string { return t.In(p.loc).Format("15:04") }

func (p *page) day(t time.Time) string { return t.In(p.loc).Format("2 Jan 15:04") }

// progress says how far a session is.
func (r *Report) progress() string {
	what := "task"
	if r.origin == session.OriginHook {
		what = "prompt"
	}
	text := fmt.Sprintf("%d of %s done", r.Progress.Done, plain.Some(r.Progress.Total, what))
	for _, c := range []struct {
		n    int
		what string
	}{{r.Progress.Failed, "failed"}, {r.Blocked, "blocked"}, {r.Progress.Skipped, Skipped(r.origin)}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	return text
}

func (p *page) head(r *Report) {
	p.text("  ", "# "+r.Module+": "+r.progress())
	p.line("")
	to := p.clock(r.To)
	if r.From.In(p.loc).Format(time.DateOnly) != r.To.In(p.loc).Format(time.DateOnly) {
		to = p.day(r.To)
	}
	about := fmt.Sprintf("Session %s, %s to %s (%s).", r.Session, p.day(r.From), to, Span(r.To.Sub(r.From).Seconds()))
	switch {
	case r.Ended == "" && r.Active != "":
		about += " It is at work on " + r.Active + "."
	case r.Ended == "":
		about += " It goes on."
	case r.Ended == string(session.ExitCrashed) && r.Active != "":
		about += fmt.Sprintf(" It crashed: %s, at work on %s.", r.Why, r.Active)
	case r.Ended == string(session.ExitCrashed):
		about += fmt.Sprintf(" It crashed: %s.", r.Why)
	case r.Ended == string(session.ExitComplete):
		about += " It is complete."
	default:
		about += fmt.Sprintf(" It ended because %s.", strings.TrimRight(r.Why, "."))
	}
	if r.Kills > 1 || r.Kills == 1 && r.Ended != string(session.ExitCrashed) {
		about += " Killed " + plain.Some(r.Kills, "time") + "."
	}
	p.text("", about)
}

func (p *page) failures(r *Report) {
	if len(r.Failures) == 0 {
		return
	}
	p.line("\n## Failed")
	for i := range r.Failures {
		f := &r.Failures[i]
		p.line("")
		state := ""
		if f.State != string(session.TaskFailed) {
			state = ", " + f.State + " again"
		}
		p.text("  ", fmt.Sprintf("- **%s** (%s, %s%s): %s", f.named(), plain.Some(f.Attempts, "attempt"), Span(f.Seconds), state, plain.Fit(f.Message, maxMessage)))
		if len(f.Lines) > 0 {
			p.line("")
			for _, l := range f.Lines {
				p.line("      %s", plain.Fit(plain.Line(l), width-6))
			}
		}
		switch {
		case f.Kept != "":
			p.line("")
			if len(f.Stayed) > 0 {
				_, _ = p.w.WriteString("  ")
				p.text("  ", "Its files are as they were before it, but for: "+strings.Join(f.Stayed, ", "))
				p.line("\n  To see what it left, and to bring it back:\n")
			} else {
				p.line("  Its files are as they were before it. To see what it left, and to bring it back:\n")
			}
			for _, c := range f.Commands {
				p.line("      %s", plain.Line(c))
			}
		case f.Left != "":
			p.line("")
			_, _ = p.w.WriteString("  ")
			p.text("  ", "Its files are as it left them: "+f.Left)
		}
	}
}

// unstored names what tasks changed and no checkpoint has.
func (p *page) unstored(r *Report) {
	begun := false
	name := func(t *Task) {
		for _, text := range t.Unstored {
			if !begun {
				p.line("\n## Not stored\n")
			}
			begun = true
			p.text("  ", fmt.Sprintf("- %s: %s", t.named(), plain.Line(text)))
		}
	}
	for i := range r.Failures {
		name(&r.Failures[i].Task)
	}
	for i := range r.Done {
		name(&r.Done[i])
	}
}

func (p *page) waits(r *Report) {
	if len(r.Waits) == 0 {
		return
	}
	var sums []string
	for _, s := range r.Waited {
		sums = append(sums, fmt.Sprintf("%s in %s of %s", Span(s.Seconds), plain.Some(s.Waits, "wait"), s.Problem))
	}
	p.line("")
	p.text("", "## Waited "+strings.Join(sums, ", "))
	p.line("")
	for i, w := range r.Waits {
		if i == maxShown {
			p.line("- and %d more", len(r.Waits)-i)
			break
		}
		text := fmt.Sprintf("- %s to %s, %s", p.clock(w.From), p.clock(w.To), w.Problem)
		if w.Open {
			text = fmt.Sprintf("- since %s, until %s at most, %s", p.clock(w.From), p.clock(w.To), w.Problem)
		}
		if w.Agent != "" && w.Agent != "none" {
			text += " of " + w.Agent
		}
		if w.Said != "" {
			text += ": " + w.Said
		}
		p.line("%s", plain.Fit(plain.Line(text), width))
	}
}

func (p *page) taken(r *Report) {
	if len(r.TakenBack) == 0 {
		return
	}
	p.line("\n## Taken back: %s that %s not count\n", plain.Some(len(r.TakenBack), "attempt"), do(len(r.TakenBack)))
	for i, a := range r.TakenBack {
		if i == maxShown {
			p.line("- and %d more", len(r.TakenBack)-i)
			break
		}
		p.line("%s", plain.Fit(plain.Line(fmt.Sprintf("- %s %s: %s", p.clock(a.At), a.Task, a.Message)), width))
	}
}

func (p *page) denied(r *Report) {
	if len(r.Denied) == 0 {
		return
	}
	p.line("\n## Refused permissions\n")
	for _, d := range r.Denied {
		p.text("  ", fmt.Sprintf("- %s (%s, %s)", d.Text, plain.Some(d.Times, "time"), strings.Join(d.Tasks, ", ")))
	}
}

func (p *page) next(r *Report) {
	if len(r.Next) == 0 {
		return
	}
	p.line("\n## Next\n")
	for _, s := range r.Next {
		quoted := make([]string, len(s.Commands))
		for i, c := range s.Commands {
			quoted[i] = "`" + plain.Line(c) + "`"
		}
		line := fmt.Sprintf("- %s: %s", plain.Line(s.What), strings.Join(quoted, ", "))
		if utf8.RuneCountInString(line) > width {
			line = fmt.Sprintf("- %s:\n  %s", plain.Line(s.What), strings.Join(quoted, ",\n  "))
		}
		p.line("%s", line)
	}
}

func do(n int) string {
	if n == 1 {
		return "does"
	}
	return "do"
}

// Span is a time as a person would say it.
func Span(seconds float64) string {
	s := int64(seconds + 0.5)
	switch {
	case s < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%d min", s/60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}
