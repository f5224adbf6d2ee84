package conversation

import (
	"strings"

	"github.com/lopen-dev/lopen/writer/plain"
)

var (
	// fenceOpens is the beginning of a block that a line of the same characters ends, and fenceMarked one
	// that stands in a list or a quotation.
	fenceOpens  = plain.Pattern("^ {0,3}(`{3,}[^`]*|~{3,}.*)$")
	fenceMarked = plain.Pattern("^[ \\t]*([-*+>]|[0-9]{1,9}[.)]).*(```|~~~)")
	// looksOurs is a line that is, or with the one below it becomes, a heading such as those of this package,
	// and html one that may begin a block of HTML.
	looksOurs = plain.Pattern(`^[ \t>]*#*[ \t]*#[0-9]`)
	html      = plain.Pattern(`^[ \t]*([-*+>]|[0-9]{1,9}[.)])*[ \t]*<[a-zA-Z/!?]`)
)

// reaches reports whether a text could swallow what stands below it when it is rendered, as a block of code
// without an end does, or pass for another message. When in doubt it does. A quotation ends where a line
// has no mark, whatever is in it.
func reaches(s string) bool {
	fence, indent := "", 0
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimLeft(line, " ")
		in := len(line) - len(trimmed)
		switch {
		case fence != "" && in < indent && trimmed != "":
			return true // the block may be part of a list, which ends here
		case fence != "":
			if rest, ok := strings.CutPrefix(trimmed, fence); ok && in <= 3 && strings.Trim(rest, fence[:1]+" \t") == "" {
				fence = ""
			}
		case looksOurs().MatchString(line) || html().MatchString(line) || fenceMarked().MatchString(line):
			return true
		case fenceOpens().MatchString(line):
			fence, indent = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))], in
		}
	}
	return fence != ""
}
