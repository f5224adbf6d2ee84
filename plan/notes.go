package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// A Mark is what is written into the plan about a task that is neither open nor
// done. The zero Mark is none.
type Mark struct {
	State    string // MarkFailed, MarkInProgress or MarkSkipped
	Attempts int    // of a failed task; 0 if unknown
}

// The states that a mark names.
const (
	MarkFailed     = "failed"
	MarkInProgress = "in progress"
	MarkSkipped    = "skipped" // a person decided that the task is not to run
)

// String is what stands in the comment behind `lopen: `.
func (m Mark) String() string {
	switch {
	case m.Attempts == 1:
		return m.State + ", 1 attempt"
	case m.Attempts > 1:
		return fmt.Sprintf("%s, %d attempts", m.State, m.Attempts)
	}
	return m.State
}

// parseMark reads a mark. What it does not know, as that of a newer version, is
// none.
func parseMark(text string) Mark {
	state, rest, _ := strings.Cut(text, ",")
	switch state = strings.TrimSpace(state); state {
	case MarkFailed, MarkInProgress, MarkSkipped:
	default:
		return Mark{}
	}
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		n = 0
	}
	return Mark{State: state, Attempts: n}
}

// lastNote is a comment at the end of an item's details. Two dashes end a
// comment, so none holds them.
var lastNote = pattern(`(?s)<!--((?:[^-]|-[^-])*?)-->$`)

// notes reads the comments at an item's end. They stand behind its first line,
// or else at its very end. A mark behind the first line must not hide those at the
// end: it was not there when the person wrote them.
func notes(it *markdown.Item) (details string, after []string, mark Mark) {
	details = it.Details
	own := true // nothing but marks
	for line := range strings.Lines(it.Comment) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "lopen":
			mark = parseMark(value)
			continue
		case "after":
			after = append(after, ids(value)...)
		}
		own = false
	}
	if own && it.Comment != "" {
		if m := lastNote().FindStringSubmatchIndex(details); m != nil {
			_, after, _ = notes(&markdown.Item{Comment: strings.TrimSpace(details[m[2]:m[3]])})
			details = strings.TrimRight(details[:m[0]], " \t\n")
		}
	}
	return details, after, mark
}

func ids(list string) (all []string) {
	for id := range strings.SplitSeq(list, ",") {
		if id = strings.TrimSpace(id); id != "" {
			all = append(all, id)
		}
	}
	return all
}
