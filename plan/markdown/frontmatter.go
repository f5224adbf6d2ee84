package markdown

import (
	"bytes"
	"regexp"
)

var bom = []byte("\xef\xbb\xbf")

// yamlKey is what the first line of front matter that says anything looks like.
var yamlKey = regexp.MustCompile(`^[^\s#:\-*+>][^:]*:(\s|$)`)

// FrontMatter returns the byte range of a block of YAML between two lines of
// three dashes at the start of a file, both lines included, or 0, 0. A closing
// line of three dots counts. The block must begin with a key: a file that begins
// with a thematic break keeps what follows it.
func FrontMatter(src []byte) (start, end int) {
	if bytes.HasPrefix(src, bom) {
		start = len(bom)
	}
	keyed := false
	for at := start; at < len(src); {
		next := nextLine(src, at)
		line := bytes.TrimRight(src[at:next], " \t\r\n")
		switch {
		case at == start:
			if string(line) != "---" {
				return 0, 0
			}
		case string(line) == "---" || string(line) == "...":
			if !keyed {
				return 0, 0
			}
			return start, next
		case !keyed && len(line) > 0 && line[0] != '#':
			if !yamlKey.Match(line) {
				return 0, 0
			}
			keyed = true
		}
		at = next
	}
	return 0, 0
}

// nextLine returns where the line after the one at an offset begins. A lone CR
// ends a line, as it does in Markdown.
func nextLine(src []byte, at int) int {
	i := bytes.IndexAny(src[at:], "\r\n")
	if i < 0 {
		return len(src)
	}
	at += i + 1
	if src[at-1] == '\r' && at < len(src) && src[at] == '\n' {
		at++
	}
	return at
}

// contentStart returns where the Markdown begins, behind byte order mark and
// front matter.
func contentStart(src []byte) int {
	if _, end := FrontMatter(src); end > 0 {
		return end
	}
	if bytes.HasPrefix(src, bom) {
		return len(bom)
	}
	return 0
}
