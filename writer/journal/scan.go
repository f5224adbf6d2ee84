package journal

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// maxLine bounds the length of a line, in bytes. Writers refuse a longer record, so a
// longer line is no record.
const maxLine = 16 << 20

// maxGap is how far the scanner searches for a line feed, in bytes. A sparse file can be
// too large to be read to its end, so nothing behind such a gap is read.
const maxGap = 64 << 20

// A segment is the content of one file: its header, and its valid lines and holes in
// order.
type segment struct {
	name    name
	header  header
	valid   bool  // the header is valid
	listed  bool  // the list has the segment, so its name and what was copied into it are durable
	spoiled int64 // length of the damaged first line if the list has its content, else 0
	missing bool  // the list has the segment, and the folder has no file or less than its first line
	head    int64 // length of the first line
	size    int64 // in bytes, without the zeros at the end
	items   []item
	named   []Named
}

// An item is a record, a note or, with hole set, a run of bytes that are neither.
type item struct {
	Ref
	hole, note bool
}

// source opens a segment. in reads its uncompressed content. size is the length of the
// file, or maxLine for a compressed segment, whose content has an unknown length. The
// caller closes f.
func source(dir writer.FS, n name) (in io.Reader, size int64, f writer.File, err error) {
	f, info, err := writer.OpenRegular(dir, "read journal", n.String(), os.O_RDONLY)
	if err != nil {
		return nil, 0, nil, err
	}
	if n.packed() {
		u := newUnpacker(n.codec, f, info.Size())
		return u, maxLine, packedFile{f, u}, nil
	}
	return f, info.Size(), f, nil
}

// scan reads a whole segment and holds one line at a time in memory. Whatever the bytes
// are, they become records, notes and holes; only reading can fail. A read that races
// with an append may see zeros and then newer bytes behind them. So scan believes a hole
// with something behind it only when it reads the hole twice. known is the entry of the
// list, or the zero Segment.
func scan(dir writer.FS, n name, known Segment) (s *segment, err error) {
	var holes []item
	for try := range tries {
		if s, err = scanOnce(dir, n, known); err != nil {
			break
		}
		was := holes
		holes = slices.DeleteFunc(slices.Clone(s.items[:max(len(s.items)-1, 0)]), func(it item) bool { return !it.hole })
		if len(holes) == 0 || try > 0 && slices.Equal(holes, was) {
			break
		}
	}
	return s, err
}

func scanOnce(dir writer.FS, n name, known Segment) (*segment, error) {
	in, size, f, err := source(dir, n)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &segment{name: n}
	lines := newLines(in, size+1)
	defer func() { lines.release() }() // lines may be replaced below
	s.header, err = lines.header()
	switch ok := known.length > 0; {
	case errors.Is(err, envelope.ErrFutureVersion):
		return nil, &writer.Error{Op: "read journal", Path: filepath.Join(dir.Name(), n.String()), Class: writer.ClassFutureVersion, Err: err}
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errHeader):
		return nil, writer.NewError("read journal", filepath.Join(dir.Name(), n.String()), writer.NotCommitted, err)
	case err == nil && s.header.name() == n:
		s.valid, s.listed, s.head = true, ok, lines.end
	case ok && (size < known.length || errors.Is(err, io.EOF)): // the file is cut off, or all zeros
		return &segment{name: n, header: known.header, valid: true, missing: true, size: size}, nil
	case !n.packed(): // a packed segment needs no new reader: its first frame was read as a whole
		lines.release()
		lines = newLines(io.NewSectionReader(f, known.length, maxNumber), size+1)
		lines.end, lines.used = known.length, known.length
		fallthrough
	default:
		if ok {
			s.header = known.header
		}
		s.valid, s.listed, s.spoiled, s.head = ok, ok, known.length, known.length
	}
	if err := s.read(lines); err != nil {
		return nil, writer.NewError("read journal", filepath.Join(dir.Name(), n.String()), writer.NotCommitted, err)
	}
	return s, nil
}

// header reads the first line.
func (l *lines) header() (header, error) {
	line, err := l.next()
	if err != nil {
		return header{}, err
	}
	return decodeHeader(line)
}

// read adds the lines up to the end of the file as items. Only reading can fail.
func (s *segment) read(lines *lines) error {
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			s.size = lines.used
			return nil
		}
		if err != nil {
			return err
		}
		it, ok := decodeLine(line)
		joined := 0
		if !ok {
			it, joined, ok = decodeJoined(line)
		}
		at := lines.start + int64(joined)
		if joined > 0 || !ok {
			bad := at
			if !ok {
				bad = lines.used
			}
			s.add(item{Ref: Ref{segment: s.name, Offset: lines.start, Length: bad - lines.start}, hole: true})
		}
		if ok {
			it.segment, it.Offset, it.Length = s.name, at, lines.end-at
			if it.note {
				s.named = append(s.named, decodeNamed(line[joined:])...)
			}
			s.add(it)
		}
	}
}

// decodeJoined finds a valid line at the end of an invalid one, where the line before
// lost its line feed. An object within a record may begin like a line, so the first
// candidate with a valid checksum is taken. The number of candidates is bounded because
// each costs a checksum.
func decodeJoined(line []byte) (it item, at int, ok bool) {
	const tries = 64
	for range tries {
		rest := line[min(at+1, len(line)):]
		i, j := bytes.Index(rest, []byte(`{"seq":`)), bytes.Index(rest, []byte(`{"note":`))
		if i < 0 || j >= 0 && j < i {
			i = j
		}
		if i < 0 {
			return item{}, 0, false
		}
		at += 1 + i
		if it, ok = decodeLine(line[at:]); ok {
			return it, at, true
		}
	}
	return item{}, 0, false
}

// add appends an item, and merges a hole with a hole before it.
func (s *segment) add(it item) {
	if last := len(s.items) - 1; it.hole && last >= 0 && s.items[last].hole {
		s.items[last].Length += it.Length
		return
	}
	s.items = append(s.items, it)
}

// lines splits a file into lines. next returns nil for a line that is longer than maxLine
// or has no line feed. It ignores zeros at the end of a file, because a writer
// preallocates its segment.
type lines struct {
	r          *bufio.Reader
	start, end int64 // of the last line, in bytes from the begin of the file
	used       int64 // offset behind the last byte that is not zero
	buf        []byte
	gaveUp     bool // there is no line feed within maxGap
}

// newLines returns the lines of r. It reads ahead by the expected number of bytes, at most
// [readAhead]. The caller must call release.
func newLines(r io.Reader, expected int64) *lines { return &lines{r: ahead(r, expected)} }

func (l *lines) release() { giveBack(l.r) }

const (
	// readAhead is the buffer size for reading a segment, in bytes.
	readAhead = 64 << 10
	// headerSize is the buffer size for reading only the first line of a file, in bytes.
	headerSize = 4 << 10
)

// readers and headReaders pool readers of [readAhead] and of [headerSize] bytes. Each
// segment is read several times while a session is opened, and allocating the buffers took
// a fifth of the time of a crash test.
var (
	readers     = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readAhead) }}
	headReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, headerSize) }}
)

func ahead(r io.Reader, expected int64) *bufio.Reader {
	pool := &readers
	if expected <= headerSize {
		pool = &headReaders
	}
	b := pool.Get().(*bufio.Reader)
	b.Reset(r)
	return b
}

// giveBack returns a reader of [ahead] to the pool.
func giveBack(b *bufio.Reader) {
	pool := &readers
	if b.Size() == headerSize {
		pool = &headReaders
	}
	b.Reset(nil)
	pool.Put(b)
}

// next returns the next line with its line feed. The line is valid until next or release
// is called.
func (l *lines) next() ([]byte, error) {
	l.start, l.buf = l.end, l.buf[:0]
	if l.gaveUp {
		return nil, io.EOF
	}
	for {
		part, err := l.r.ReadSlice('\n')
		l.pass(part, err == nil)
		if err == nil && l.end-l.start == int64(len(part)) {
			return part, nil
		}
		if l.end-l.start <= maxLine && !errors.Is(err, io.EOF) { // a last line without a line feed is not returned
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && l.end-l.start > maxGap:
			l.gaveUp = true
			if l.used <= l.start {
				return nil, io.EOF
			}
			return nil, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && l.used > l.start:
			return nil, nil
		case err != nil:
			return nil, err
		case l.end-l.start > maxLine:
			return nil, nil
		}
		return l.buf, nil
	}
}

// pass counts a part of a line, which may be the end of it.
func (l *lines) pass(part []byte, last bool) {
	n := len(part)
	if !last {
		n = len(withoutZeros(part))
	}
	if n > 0 {
		l.used = l.end + int64(n)
	}
	l.end += int64(len(part))
}

// withoutZeros cuts the zeros at the end off. A segment is filled ahead with many of them,
// so they are compared by block.
func withoutZeros(b []byte) []byte {
	const block = 512
	for len(b) > block && bytes.Equal(b[len(b)-block:], zeros[:block]) {
		b = b[:len(b)-block]
	}
	return bytes.TrimRight(b, "\x00")
}

// intact reports whether a compressed segment has all the bytes that were written into it.
func (s *segment) intact() bool {
	hole := slices.ContainsFunc(s.items, func(it item) bool { return it.hole })
	return s.valid && !hole && s.spoiled == 0 && s.size == s.head+s.header.Copied
}

// mark returns the largest offset that a line of the segment proves to be durable. Records
// that were copied into the segment are ignored: their offsets refer to another file.
func (s *segment) mark() (durable int64) {
	for i := range s.items {
		if it := &s.items[i]; !it.hole && it.Offset >= s.head+s.header.Copied {
			durable = max(durable, int64(it.synced))
		}
	}
	return durable
}
