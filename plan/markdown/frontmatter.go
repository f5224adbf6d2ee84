package markdown

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

var bom = []byte("\xef\xbb\xbf")

// yamlKey is what the first line of front matter that says anything looks like.
var yamlKey = pattern(`^[^\s#:\-*+>][^:]*:(\s|$)`)

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
			if !yamlKey().Match(line) {
				return 0, 0
			}
			keyed = true
		}
		at = next
	}
	return 0, 0
}

// MaxMeta is the size of the longest front matter that is read, in bytes.
const MaxMeta = 64 << 10

// maxMetaDepth bounds how deep values nest in each other on a line, or in brackets: the
// YAML library takes the square of it.
const maxMetaDepth = 32

// A Field is one entry of a file's front matter.
type Field struct {
	Name  string
	Value any // string, number, bool, nil, time.Time, []any or a map
}

// Meta returns the entries of a file's front matter in their order, none where
// there is no front matter. The error says where it is no YAML mapping, or beyond what
// DecodeMeta reads.
func Meta(src []byte) ([]Field, error) {
	var entries yaml.MapSlice
	if err := DecodeMeta(src, &entries); err != nil {
		return nil, fmt.Errorf("read front matter: %w", err)
	}
	fields := make([]Field, 0, len(entries))
	for _, e := range entries {
		fields = append(fields, Field{Name: fmt.Sprint(e.Key), Value: e.Value})
	}
	return fields, nil
}

// DecodeMeta decodes a file's front matter into a value, as the YAML library does it, and
// leaves the value alone where there is none. Front matter of more than MaxMeta bytes is
// refused, with anchors and aliases (a few of them make gigabytes) and with values that
// nest more than 32 levels deep.
func DecodeMeta(src []byte, into any) error {
	start, end := FrontMatter(src)
	if end-start > MaxMeta {
		return fmt.Errorf("it has %d bytes, more than the %d that are read", end-start, MaxMeta)
	}
	block := bytes.TrimRight(src[start:end], " \t\r\n")
	block = bytes.TrimRight(bytes.TrimRight(block, "-"), ".") // the closing line would begin another document
	if err := plainMeta(string(block)); err != nil {
		return err
	}
	return yaml.Unmarshal(block, into)
}

// plainMeta says why front matter is not read.
func plainMeta(block string) error {
	brackets, line, marks := 0, 0, 0
	for _, t := range lexer.Tokenize(block) {
		if t.Position.Line != line {
			line, marks = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return fmt.Errorf("line %d: anchors and aliases are not read", line)
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType:
			marks++
		}
		if brackets > maxMetaDepth || marks > maxMetaDepth {
			return fmt.Errorf("line %d: values nest more than %d levels deep", line, maxMetaDepth)
		}
	}
	return nil
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
