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
	p.limits(r)
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

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p.w, "%s\n", strings.ReplaceAll(fmt.Sprintf(format, args...), glue, " "))
}

// glue is a space at which no line is broken. Nothing foreign has it.
const glue = "\x00"

// foreign is what an agent, a check or the project says, as it stands in a paragraph or on a line. What is
// alive in Markdown is one span of code, which is not broken: it may have a command in it.
func foreign(s string) string {
	words := strings.Fields(plain.Line(s))
	text := plain.Markdown(s)
	if len(words) > 0 && begins().MatchString(words[0]) {
		text = plain.Code(plain.Line(s))
	}
	if text != plain.Line(s) {
		return strings.ReplaceAll(text, " ", glue)
	}
	for i, word := range words {
		words[i] = plain.Fit(word, width-6) // with what is around it
	}
	return strings.Join(words, " ")
}

// fitted is foreign for a place that has so many runes. short shortens the text.
func fitted(s string, room int, short func(string, int) string) string {
	s = plain.Line(s)
	for n := room; ; n-- {
		if text := foreign(short(s, n)); utf8.RuneCountInString(text) <= room || n <= 0 {
			return text
		}
	}
}

// begins is a word with which a line would begin a list, a heading or a quotation, or give a command to a bot.
var begins = plain.Pattern(`^([-+*=_|>#]+|[0-9]{1,9}[.)]|~~~.*|\|.*|/\w+)$`)

// text writes a paragraph, broken at spaces, with an indentation after its first line.
func (p *page) text(indent, s string) {
	var lines []string
	line, at := "", 0
	for i, word := range strings.Fields(s) {
		switch {
		case i == 0:
		case at+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			if line, at = indent, len(indent); begins().MatchString(word) {
				word = plain.Code(word)
			}
		default:
			line, at = line+" ", at+1
		}
		line, at = line+word, at+utf8.RuneCountInString(word)
	}
	p.line("%s", strings.Join(append(lines, line), "\n"))
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
		about += " It is at work on " + foreign(r.Active) + "."
	case r.Ended == "":
		about += " It goes on."
	case r.Ended == string(session.ExitCrashed) && r.Active != "":
		about += fmt.Sprintf(" It crashed: %s, at work on %s.", foreign(r.Why), foreign(r.Active))
	case r.Ended == string(session.ExitCrashed):
		about += fmt.Sprintf(" It crashed: %s.", foreign(r.Why))
	case r.Ended == string(session.ExitComplete):
		about += " It is complete."
	default:
		about += fmt.Sprintf(" It ended because %s.", foreign(strings.TrimRight(r.Why, ".")))
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
			state = ", " + foreign(f.State) + " again"
		}
		if c := f.Check; c != nil {
			state += fmt.Sprintf(", check exit %d after %s", c.Exit, Span(c.Seconds))
		}
		p.text("  ", fmt.Sprintf("- **%s** (%s, %s%s): %s", foreign(f.named()), plain.Some(f.Attempts, "attempt"), Span(f.Seconds), state, foreign(plain.Fit(f.Message, maxMessage))))
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
				p.text("  ", "Its files are as they were before it, but for: "+foreign(strings.Join(f.Stayed, ", ")))
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
			p.text("  ", "Its files are as it left them: "+foreign(f.Left))
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
			p.text("  ", fmt.Sprintf("- %s: %s", foreign(t.named()), foreign(text)))
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
		sums = append(sums, fmt.Sprintf("%s in %s of %s", Span(s.Seconds), plain.Some(s.Waits, "wait"), foreign(s.Problem)))
	}
	p.line("")
	p.text("", "## Waited "+strings.Join(sums, ", "))
	p.line("")
	for i, w := range r.Waits {
		if i == maxShown {
			p.line("- and %d more", len(r.Waits)-i)
			break
		}
		text := w.Problem
		if w.Agent != "" && w.Agent != "none" {
			text += " of " + w.Agent
		}
		if w.Said != "" {
			text += ": " + w.Said
		}
		when := fmt.Sprintf("- %s to %s, ", p.clock(w.From), p.clock(w.To))
		if w.Open {
			when = fmt.Sprintf("- since %s, until %s at most, ", p.clock(w.From), p.clock(w.To))
		}
		p.line("%s%s", when, fitted(text, width-len(when), plain.Fit))
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
		p.line("- %s %s", p.clock(a.At), fitted(a.Task+": "+a.Message, width-8, plain.Fit))
	}
}

func (p *page) denied(r *Report) {
	if len(r.Denied) == 0 {
		return
	}
	p.line("\n## Refused permissions\n")
	for _, d := range r.Denied {
		p.text("  ", fmt.Sprintf("- %s (%s, %s)", foreign(d.Text), plain.Some(d.Times, "time"), foreign(strings.Join(d.Tasks, ", "))))
	}
}

// limits writes the newest limits of providers, and how much of a model's context was used.
func (p *page) limits(r *Report) {
	if len(r.Limits) > 0 {
		p.line("\n## Limits: %s\n", plain.Some(len(r.Limits), "start")+" that met or named one")
		for _, l := range r.Limits[max(len(r.Limits)-maxShown, 0):] {
			p.line("- %s", l.Text(p.loc))
		}
	}
	if len(r.Windows) > 0 {
		p.line("\n## Context\n\n%s", ContextText(r.Windows))
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
			quoted[i] = plain.Code(plain.Line(c))
		}
		line := fmt.Sprintf("- %s: %s", foreign(s.What), strings.Join(quoted, ", "))
		if utf8.RuneCountInString(line) > width {
			line = fmt.Sprintf("- %s:\n  %s", foreign(s.What), strings.Join(quoted, ",\n  "))
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
