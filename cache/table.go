package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var errTable = errors.New("damaged table of sections")

// AppendTable appends what it takes to make the Outline again from its file's
// bytes without parsing them: a sequence of unsigned varints, strings with
// their length before them. First the file's length, the title's index plus one
// and the number of sections; then of each section level, start (counted from
// the start before), end (from start), first line (from the one before), last line
// (from the first), the index of the one around it plus one, header and anchor.
func (o *Outline) AppendTable(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(o.src)))
	b = binary.AppendUvarint(b, uint64(o.title+1))
	b = binary.AppendUvarint(b, uint64(len(o.sections)))
	start, line := 0, 0
	for i, s := range o.sections {
		for _, n := range [...]int{s.Level, s.Start - start, s.End - s.Start, s.FirstLine - line, s.LastLine - s.FirstLine, o.parents[i] + 1} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		for _, text := range [...]string{s.Header, s.Anchor} {
			b = binary.AppendUvarint(b, uint64(len(text)))
			b = append(b, text...)
		}
		start, line = s.Start, s.FirstLine
	}
	return b
}

// OutlineOf makes an Outline from a file's bytes and the table that AppendTable
// made of them. It refuses a table that no file of this length has, and believes
// the rest: who keeps tables makes sure that the bytes are the same.
func OutlineOf(src, table []byte) (*Outline, error) {
	r := tableReader{rest: table}
	if n := r.number(len(src)); n != len(src) {
		return nil, fmt.Errorf("%w: it is of another file", errTable)
	}
	title := r.number(len(src)) - 1
	n := r.number(len(r.rest) / 8) // a section takes eight bytes at least
	o := &Outline{src: string(src), title: title, sections: make([]Section, 0, n), parents: make([]int, 0, n)}
	start, line := 0, 0
	for i := range n {
		var s Section
		s.Level = r.number(6)
		s.Start = start + r.number(len(src)-start)
		s.End = s.Start + r.number(len(src)-s.Start)
		s.FirstLine = line + r.number(len(src)+1-line)
		s.LastLine = s.FirstLine + r.number(len(src)+1-s.FirstLine)
		o.parents = append(o.parents, r.number(i)-1)
		s.Header, s.Anchor = r.text(), r.text()
		if s.Level == 0 || s.FirstLine == 0 {
			r.bad = true
		}
		start, line = s.Start, s.FirstLine
		o.sections = append(o.sections, s)
	}
	if r.bad || len(r.rest) > 0 || title >= n {
		return nil, errTable
	}
	o.index()
	return o, nil
}

// A tableReader takes a table apart. After the first thing that is wrong all is
// zero and bad is set.
type tableReader struct {
	rest []byte
	bad  bool
}

func (r *tableReader) number(most int) int {
	n, size := binary.Uvarint(r.rest)
	if r.bad || size <= 0 || most < 0 || n > uint64(most) {
		r.bad = true
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *tableReader) text() string {
	n := r.number(math.MaxInt)
	if n > len(r.rest) {
		r.bad = true
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}
