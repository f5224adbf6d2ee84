package prompt

import (
	"strings"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/writer/plain"
)

// The bounds of a prompt's parts, in bytes. Together with the template, and 32 KiB of the
// specification (cache.MaxGiven), they stay below maxPrompt.
const (
	maxPrompt   = 96 << 10
	maxTitle    = 1 << 10 // the task's name, and the names of all above it
	maxName     = 200     // any other name
	maxPath     = 500     // a path, or another one
	maxTasks    = 12 << 10
	maxAbove    = 4 << 10
	maxAround   = 8 << 10
	maxIntro    = 4 << 10
	maxSiblings = 3 << 10
	maxHeaders  = 2 << 10 // the headings of sections
	maxText     = 8 << 10 // of research documents
	maxTopics   = 2 << 10 // the paths and topics of those that are named only
	maxDone     = 2 << 10
	maxFailure  = 512 // why an attempt failed, in a line
	maxCheck    = 2 << 10
	// tailInPrompt is how much of the last attempt's output, and of its check, is quoted,
	// and tailOfEarlier of the ones before.
	tailInPrompt  = 4 << 10
	tailOfEarlier = 768
	// maxFrame is what the template writes around a part at most.
	maxFrame = 120
)

// room is what is left of a bound.
type room int

// fits takes n bytes, if they are left.
func (r *room) fits(n int) bool {
	if n > int(*r) {
		return false
	}
	*r -= room(n)
	return true
}

// take takes as much of a text as is left, whole lines, or whole characters where the first
// line does not fit. cut says that it is not all.
func (r *room) take(text string) (fits string, cut bool) {
	text = valid(strings.TrimRight(text, " \t\r\n"))
	if r.fits(len(text)) {
		return text, false
	}
	end := int(*r)
	*r = 0
	if n := strings.LastIndexByte(text[:end], '\n'); n > 0 {
		return text[:n], true
	}
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], true
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// oneLine is a text on one line, of at most so many bytes.
func oneLine(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(valid(text), func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }), " ")
	const more = "..."
	if len(text) > most {
		text = plain.Clip(text, most-len(more)) + more
	}
	return text
}

// tail is the end of an output, whole lines. cut says that it is not all.
func tail(text string, most int) (end string, cut bool) {
	text = strings.TrimRight(valid(text), "\n")
	end = strings.TrimRight(valid(string(child.LastLines([]byte(text), most))), "\n")
	return end, len(end) < len(text)
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
