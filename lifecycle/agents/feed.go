package agents

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A lineFeed reads the lines of a file.
type lineFeed struct {
	path, thread string
	src          *source
	closer       io.Closer
	lines        *lines
	codex        bool // else it is of Claude Code
}

// openLines opens a file at a position.
func openLines(f file, p *FilePosition, agent string) (*lineFeed, error) {
	src, err := openSource(f.path)
	if err != nil {
		return nil, err
	}
	from, closer := src.content(p.Until)
	if err := skip(from, p.Offset); err != nil {
		return nil, errors.Join(err, closer.Close(), src.Close())
	}
	l := &lineFeed{path: f.path, thread: f.thread, src: src, closer: closer, lines: newLines(from, p.Offset, p.Lines, src.unread(p.Offset)), codex: agent == Codex}
	if !l.codex && p.Offset == 0 && f.thread != "" {
		p.Copied = true
	}
	return l, nil
}

// Close closes the file.
func (f *lineFeed) Close() error { return errors.Join(f.closer.Close(), f.src.Close()) }

// take reads the next line of the open file. It returns nothing at the end of the file.
func (f *lineFeed) take(r *Reader, p *FilePosition) ([]Item, bool) {
	l, err := f.lines.next()
	if err == nil {
		rest := l.cutUnfinished()
		var items []Item
		if rest < l.size {
			items = f.items(r, p, l)
			p.Offset = f.lines.offset - rest
		}
		if rest == 0 {
			p.Lines = f.lines.number
			return items, true
		}
		r.report.bad(Place{f.path, l.number, p.Offset, rest, "the file ends within this line"})
		if items != nil {
			return items, true
		}
		err = io.EOF
	}
	if !errors.Is(err, io.EOF) {
		r.report.bad(Place{Path: f.path, Line: l.number, Offset: l.offset, Why: err.Error()})
	} else if f.src.coded {
		p.Packed = f.src.size
	}
	p.Until = p.Offset
	p.Print = f.src.print(p.Offset)
	return nil, false
}

// items turns a line into items.
func (f *lineFeed) items(r *Reader, p *FilePosition, l line) []Item {
	var items []Item
	rec := &record{at: p, thread: f.thread, line: l, report: &r.report, asked: r.asked}
	bad := func(why string) Item {
		return r.bad(Place{f.path, l.number, l.offset, l.size, why}, rec.text)
	}
	text := l.text
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	if l.zeros > 0 {
		items = append(items, bad("NUL bytes beside the record"))
	}
	switch rec.text = bytes.TrimSpace(text); {
	case l.long:
		f.lost(p)
		return append(items, bad("it is too long"))
	case len(rec.text) == 0:
		return items
	}
	parse := (*record).claude
	if f.codex {
		parse = (*record).codex
	}
	made, err := parse(rec)
	if err == nil {
		return append(items, made...)
	}
	for text, err := range strictjson.Records(rec.text, beginnings...) {
		rec.text, made = text, nil
		if err == nil {
			made, err = parse(rec)
		}
		if err != nil {
			items = append(items, bad(err.Error()))
			f.lost(p)
			continue
		}
		items = append(items, made...)
		rec.nth++
	}
	return items
}

// lost notes that a record could not be read: what follows it in a file of Claude Code is no branch. Records of Codex do
// not say what they follow.
func (f *lineFeed) lost(p *FilePosition) {
	if !f.codex {
		p.Last = ""
	}
}

// maxKept bounds the text of a bad line that is kept, in bytes.
const maxKept = 4 << 10

// bad reports a record that cannot be read, and returns the event that stands for it.
func (r *Reader) bad(place Place, text []byte) Item {
	r.report.bad(place)
	event, err := strictjson.Marshal(struct {
		Type string `json:"type"`
		Place
		Text string `json:"text,omitempty"`
	}{BadLine, place, strings.ToValidUTF8(string(text[:min(len(text), maxKept)]), "\uFFFD")})
	if err != nil { // does not happen for texts
		event = strictjson.Value(`{}`)
	}
	return Item{Event: event}
}

// BadLine is the type of an event that stands for what could not be read.
const BadLine = "lopen-bad-line"

// beginnings are how the records of agents begin.
var beginnings = []string{`{"parentUuid":`, `{"type":`, `{"timestamp":`}

// cutUnfinished cuts off what stands behind the whole records of a torn line, and returns its size in bytes: the agent
// is writing it, or never finished it.
func (l *line) cutUnfinished() (size int64) {
	if !l.torn {
		return 0
	}
	for piece, err := range strictjson.Records(l.text) {
		if err != nil {
			l.text, size = bytes.TrimSuffix(l.text, piece), int64(len(piece))
		}
	}
	if len(l.text) == 0 {
		return l.size
	}
	return size
}

// each calls fn with each record of a line that is a T, until it returns false.
func each[T any](text []byte, fn func(*T) bool) bool {
	for record, err := range strictjson.Records(text, beginnings...) {
		var v T
		if err == nil && record[0] == '{' && strictjson.UnmarshalLenient(record, &v) == nil && !fn(&v) {
			return false
		}
	}
	return true
}

func isObject(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && text[0] == '{' && strictjson.Check(text) == nil
}
