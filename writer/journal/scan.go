package journal

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer"
)

// maxLine bounds what is held of one line in memory. Writers refuse a longer
// record; a longer line is no record.
const maxLine = 16 << 20

// maxGap is how far a line feed is looked for, in bytes: a sparse file can be larger than
// anybody has time to read. What stands behind so long a gap is not looked at.
const maxGap = 1 << 30

// A segment is what one file holds: its header, and valid records and holes in
// the order in which they stand.
type segment struct {
	name   name
	header header
	valid  bool // the header is
	size   int64
	items  []item
}

// An item is a record or, with hole set, a run of bytes that are none.
type item struct {
	Ref
	hole bool
}

// scan reads a segment from end to end, with memory for one line. Only reading
// itself fails: whatever the bytes are, they become records and holes.
func scan(dir writer.FS, n name) (*segment, error) {
	f, info, err := writer.OpenRegular(dir, "read journal", n.String(), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &segment{name: n}
	lines := newLines(f, info.Size()+1)
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			s.size = lines.end
			return s, nil
		}
		if err != nil {
			return nil, writer.NewError("read journal", filepath.Join(dir.Name(), n.String()), writer.NotCommitted, err)
		}
		if lines.start == 0 {
			s.header, err = decodeHeader(line)
			if errors.Is(err, writer.ErrFutureVersion) {
				return nil, &writer.Error{Op: "read journal", Path: filepath.Join(dir.Name(), n.String()), Class: writer.ClassFutureVersion, Err: err}
			}
			s.valid = err == nil && s.header.Epoch == n.epoch && s.header.Segment == n.n
			if s.valid {
				continue
			}
		}
		r, ok := decodeRecord(line)
		r.segment, r.Offset, r.Length = n, lines.start, lines.end-lines.start
		s.add(item{r, !ok})
	}
}

// add joins a hole to the one before it.
func (s *segment) add(it item) {
	if last := len(s.items) - 1; it.hole && last >= 0 && s.items[last].hole {
		s.items[last].Length += it.Length
		return
	}
	s.items = append(s.items, it)
}

// lines splits a file. A line that is longer than maxLine, and one that lacks
// its end, come back as nil.
type lines struct {
	r          *bufio.Reader
	start, end int64 // of the last line, in bytes from the file's begin
	buf        []byte
	given      bool // up: what is left has no line within maxGap
}

// newLines reads ahead by 64 KiB, or by less where no more is expected: most files are
// small, and what is read ahead has to be cleared and collected.
func newLines(r io.Reader, expected int64) *lines {
	return &lines{r: bufio.NewReaderSize(r, int(min(max(expected, headerSize), 64<<10)))}
}

// headerSize is read where only the first line of a file is asked for, in bytes.
const headerSize = 4 << 10

func (l *lines) next() ([]byte, error) {
	l.start, l.buf = l.end, l.buf[:0]
	if l.given {
		return nil, io.EOF
	}
	for {
		part, err := l.r.ReadSlice('\n')
		l.end += int64(len(part))
		if l.end-l.start <= maxLine {
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && l.end-l.start > maxGap:
			l.given = true
			return nil, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && l.end > l.start:
			return nil, nil
		case err != nil:
			return nil, err
		case l.end-l.start > maxLine:
			return nil, nil
		}
		return l.buf, nil
	}
}

// mark is the furthest offset that a record of the segment knows to be durable.
// Records that were copied into it speak of another file.
func (s *segment) mark(header int64) int64 {
	durable := header + s.header.Copied
	for i := range s.items {
		if it := &s.items[i]; !it.hole && it.Offset >= header+s.header.Copied {
			durable = max(durable, int64(it.synced))
		}
	}
	return durable
}

// headerLen is the length of the first line.
func (s *segment) headerLen() int64 {
	if len(s.items) > 0 {
		return s.items[0].Offset
	}
	return s.size
}
