package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// ago says how long something is past, as a person would.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// signs are a task's states for a person: a sign, and a colour.
var signs = map[session.TaskState]struct{ glyph, color string }{
	session.TaskComplete: {"✓", "32"}, session.TaskInProgress: {"▸", "33"}, session.TaskFailed: {"✗", "31"}, session.TaskSkipped: {"–", "2"},
}

func glyph(s session.TaskState) string { return cmp.Or(signs[s].glyph, "○") }

// paint colours text by what a task's state means to a person, on one line. It is for
// [terminal.Stream.Colored]; no colour within the text passes.
func paint(text string, s session.TaskState, colored bool) string {
	text = plain.Line(text)
	if code := signs[s].color; colored && code != "" {
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	return text
}

func parenthesis(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func quoted(argv []string) string { return plain.Quote(argv...) }

// shown is a path on a line: quoted where it would not be one line of plain text.
func shown(path string) string {
	if q := strconv.Quote(path); q != `"`+path+`"` {
		return q
	}
	return path
}

// firstLine is the first line of a text of the file's.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return plain.Line(line)
}

func bytesText(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

func tick(ticked bool) string {
	if ticked {
		return "x"
	}
	return " "
}
