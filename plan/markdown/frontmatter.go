package markdown

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/goccy/go-yaml"
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

// MaxMeta is the size of the longest front matter that Meta reads, in bytes.
const MaxMeta = 64 << 10

// A Field is one entry of a file's front matter.
type Field struct {
	Name  string
	Value any // string, number, bool, nil, time.Time, []any or a map
}

// Meta returns the entries of a file's front matter in their order, none where
// there is no front matter. The error says where it is no YAML mapping.
func Meta(src []byte) ([]Field, error) {
	start, end := FrontMatter(src)
	if end-start > MaxMeta {
		return nil, fmt.Errorf("read front matter: it has %d bytes, more than the %d that are read", end-start, MaxMeta)
	}
	block := bytes.TrimRight(src[start:end], " \t\r\n")
	block = bytes.TrimRight(bytes.TrimRight(block, "-"), ".") // the closing line would begin another document
	var entries yaml.MapSlice
	if err := yaml.Unmarshal(block, &entries); err != nil {
		return nil, fmt.Errorf("read front matter: %w", err)
	}
	fields := make([]Field, 0, len(entries))
	for _, e := range entries {
		fields = append(fields, Field{Name: fmt.Sprint(e.Key), Value: e.Value})
	}
	return fields, nil
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
