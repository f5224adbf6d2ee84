package main

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle/session"
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

// count shortens a number: 1234 is 1.2k.
func count(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// glyph is the sign of a task's state.
func glyph(s session.TaskState) string {
	switch s {
	case session.TaskComplete:
		return "✓"
	case session.TaskInProgress:
		return "▸"
	case session.TaskFailed:
		return "✗"
	case session.TaskSkipped:
		return "–"
	}
	return "○"
}

// paint colours text by what a task's state means to a person, on one line. It is for
// [plain.Stream.Colored]; no colour within the text passes.
func paint(text string, s session.TaskState, colored bool) string {
	text = plain.Line(text)
	code := ""
	switch s {
	case session.TaskComplete:
		code = "32"
	case session.TaskInProgress:
		code = "33"
	case session.TaskFailed:
		code = "31"
	case session.TaskSkipped:
		code = "2"
	}
	if !colored || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
