package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// An Entry is one record of a stream.
type Entry struct {
	N    uint64 // its number in the stream, from 1
	Seq  uint64 // the record of the journal that acknowledged it
	Line []byte // the whole line, good until the next step
	Tail Tail   // the stream as it was when this was the last record
}

// ErrDamaged says that records of a stream are lost: the error that wraps it names
// the place. Those behind them are not.
var ErrDamaged = errors.New("damaged")

// ReadStream returns the records of a stream up to a Tail, in order, with memory
// for one line whatever their number. Bytes that are no record, and files that are
// not there, come as errors that wrap ErrDamaged; after one of those the iteration
// goes on behind the place, after any other error it ends. It takes no lock: what a
// Tail covers does not change.
func ReadStream(dir writer.FS, name string, to Tail) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		parts, _, err := streamParts(dir, name, to)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		r := &streamReader{dir: dir, yield: yield}
		for _, p := range parts {
			if !r.part(p) {
				return
			}
		}
		r.missing(to.Count)
	}
}

// StreamFiles are the files that a stream up to a Tail stands in, in order.
func StreamFiles(dir writer.FS, name string, to Tail) ([]string, error) {
	parts, _, err := streamParts(dir, name, to)
	files := make([]string, len(parts))
	for i, p := range parts {
		files[i] = p.File
	}
	return files, err
}

// DamagedHeaders are the files that a stream up to a Tail stands in whose first line is
// damaged. Their records are read all the same, see [streamBefore]. A file that is not
// there is none of them: its records are missed.
func DamagedHeaders(dir writer.FS, name string, to Tail) ([]string, error) {
	_, damaged, err := streamParts(dir, name, to)
	return damaged, err
}

// streamParts follows the headers back to the first file and returns how much of
// each counts, and which of them are damaged. There the file before is found by its
// numbers, see [streamBefore].
func streamParts(dir writer.FS, name string, to Tail) (parts []Tail, damaged []string, err error) {
	if !to.valid(name) { // of a Tail that names nothing outside the folder, nor do the headers
		return nil, nil, &writer.Error{Op: "read stream", Path: filepath.Join(dir.Name(), name), Class: writer.ClassCorrupt, Err: fmt.Errorf("the file %q is none of its own", to.File)}
	}
	seen := map[string]bool{}
	var begins streamBegins
	for at := to; at.File != "" && !seen[at.File]; {
		seen[at.File] = true
		parts = append(parts, at)
		after, err := streamAfter(dir, name, at)
		if errors.Is(err, errHeader) {
			damaged = append(damaged, at.File)
		}
		if errors.Is(err, errHeader) || errors.Is(err, fs.ErrNotExist) {
			after, err = streamBefore(dir, name, at, seen, &begins)
		}
		if err != nil {
			return nil, nil, err
		}
		at = after
	}
	slices.Reverse(parts)
	return parts, damaged, nil
}

// streamAfter is what the header of a file names.
func streamAfter(dir writer.FS, name string, at Tail) (Tail, error) {
	f, _, err := writer.OpenRegular(dir, "read stream", at.File, os.O_RDONLY)
	if err != nil {
		return Tail{}, err
	}
	defer f.Close()
	line, err := newLines(f, headerSize).next()
	if err != nil && !errors.Is(err, io.EOF) {
		return Tail{}, err
	}
	h, err := decodeStreamHeader(name, line)
	if errors.Is(err, writer.ErrFutureVersion) {
		err = &writer.Error{Op: "read stream", Path: filepath.Join(dir.Name(), at.File), Class: writer.ClassFutureVersion, Err: err}
	}
	if err == nil && h.After.Count >= at.Count {
		err = errHeader
	}
	return h.After, err
}

// streamBefore finds the file before one whose header is damaged: of those that
// begin with a lower number the one with the highest, as names do not tell in a
// fork. Of two that begin alike the earlier one was given up. What of it counts ends
// before the first record that can be read of the damaged one; where that has none,
// its end may be a batch that was given up.
func streamBefore(dir writer.FS, name string, at Tail, seen map[string]bool, begins *streamBegins) (Tail, error) {
	upto := at.Count
	if first, err := streamFirst(dir, at); err != nil {
		return Tail{}, err
	} else if first > 0 {
		upto = min(upto, first)
	}
	if upto <= 1 {
		return Tail{}, nil // there is nothing before it
	}
	if err := begins.read(dir, name); err != nil {
		return Tail{}, err
	}
	var before Tail
	highest := uint64(0)
	for _, f := range begins.files {
		if f.first >= upto || f.first < highest || seen[f.name] {
			continue
		}
		highest, before = f.first, Tail{File: f.name, Bytes: maxNumber, Count: upto - 1}
	}
	return before, nil
}

// streamBegins are the files of a stream by their names' order, each with the number of
// its first record that can be read. They are read once, however many headers are damaged.
type streamBegins struct {
	files []streamBegin
	done  bool
}

type streamBegin struct {
	name  string
	first uint64
}

func (b *streamBegins) read(dir writer.FS, name string) error {
	if b.done {
		return nil
	}
	entries, err := dir.ReadDir(".")
	if err != nil {
		return writer.NewError("read stream", dir.Name(), writer.NotCommitted, err)
	}
	for _, e := range entries {
		if !isStreamFile(name, e.Name()) {
			continue
		}
		first, err := streamFirst(dir, Tail{File: e.Name(), Bytes: maxNumber, Count: maxNumber})
		if err != nil {
			return err
		}
		if first > 0 {
			b.files = append(b.files, streamBegin{e.Name(), first})
		}
	}
	slices.SortFunc(b.files, func(x, y streamBegin) int { return compareStreamFiles(name, x.name, y.name) })
	b.done = true
	return nil
}

// streamFirst is the number of the first record of a file that can be read, 0
// when there is none.
func streamFirst(dir writer.FS, at Tail) (first uint64, err error) {
	r := &streamReader{dir: dir, skip: true, yield: func(e Entry, failed error) bool {
		first, err = e.N, failed
		return false
	}}
	r.part(at)
	var invalid *writer.Error
	if errors.As(err, &invalid) && invalid.Class == writer.ClassInvalid {
		err = nil // no regular file: none of a stream
	}
	return first, err
}

// compareStreamFiles orders files by epoch and number; the one without is the first.
func compareStreamFiles(name, a, b string) int {
	x, _ := parseName("journal" + strings.TrimPrefix(a, name))
	y, _ := parseName("journal" + strings.TrimPrefix(b, name))
	return x.compare(y)
}

// A streamReader yields what the parts of a stream hold.
type streamReader struct {
	dir   writer.FS
	yield func(Entry, error) bool
	last  uint64 // number of the last record
	hole  hole   // invalid bytes since then
	skip  bool   // missing records are not reported
}

// gap notes bytes that are no record.
func (r *streamReader) gap(file string, offset, length int64) {
	if r.hole.file == "" {
		r.hole = hole{file: file, offset: offset}
	}
	r.hole.length += length
}

// A hole is a run of bytes that are no record.
type hole struct {
	file           string
	offset, length int64
}

// part yields the records of one file; false ends it all.
func (r *streamReader) part(p Tail) bool {
	f, info, err := writer.OpenRegular(r.dir, "read stream", p.File, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		r.gap(p.File, 0, p.Bytes)
		return true // what is missing shows by the numbers
	}
	if err != nil {
		return r.fail(err)
	}
	defer f.Close()
	in := newLines(io.LimitReader(f, p.Bytes), min(p.Bytes, info.Size())+1)
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			if in.end < p.Bytes && p.Bytes < maxNumber {
				r.gap(p.File, in.end, p.Bytes-in.end)
			}
			return true
		}
		if err != nil {
			return r.fail(writer.NewError("read stream", filepath.Join(r.dir.Name(), p.File), writer.NotCommitted, err))
		}
		if in.start == 0 && sealed(line) != "" && strings.HasPrefix(string(line[:min(len(line), 16)]), `{"stream":`) {
			continue
		}
		e, ok := decodeEntry(line)
		if !ok {
			var lost int
			e, lost, ok = decodeJoined(line)
			if !ok {
				r.gap(p.File, in.start, in.end-in.start)
				continue
			}
			r.gap(p.File, in.start, int64(lost))
		}
		if e.N <= r.last || e.N > p.Count {
			continue // of a file whose own end is not known
		}
		if e.N > r.last+1 && !r.skip && !r.missing(e.N-1) {
			return false
		}
		r.hole = hole{} // it held no number
		r.last = e.N
		e.Tail = Tail{File: p.File, Bytes: in.end, Count: e.N}
		if !r.yield(e, nil) {
			return false
		}
	}
}

// missing reports the records up to a number that are not there.
func (r *streamReader) missing(upTo uint64) bool {
	if r.last >= upTo {
		return true
	}
	h := r.hole
	if h.file == "" {
		h.file = "its files"
	}
	first := r.last + 1
	r.last, r.hole = upTo, hole{}
	return r.yield(Entry{}, fmt.Errorf("read %s: %d bytes at %d: records %d to %d of the stream are %w", filepath.Join(r.dir.Name(), h.file), h.length, h.offset, first, upTo, ErrDamaged))
}

func (r *streamReader) fail(err error) bool {
	r.yield(Entry{}, err)
	return false
}

// decodeJoined finds the record at the end of a line that begins with one that lost
// its line feed. An object within the record may begin as it does: so the first
// that fits is it, among few, as each costs a checksum.
func decodeJoined(line []byte) (e Entry, at int, ok bool) {
	const begin, tries = `{"seq":`, 64
	for range tries {
		i := bytes.Index(line[min(at+1, len(line)):], []byte(begin))
		if i < 0 {
			return Entry{}, 0, false
		}
		at += 1 + i
		if e, ok = decodeEntry(line[at:]); ok {
			return e, at, true
		}
	}
	return Entry{}, 0, false
}

// decodeEntry reads the frame of a stream's line.
func decodeEntry(line []byte) (Entry, bool) {
	ref, ok := decodeRecord(line)
	if !ok {
		return Entry{}, false
	}
	_, rest, ok := strings.Cut(string(line[:min(len(line), 160)]), `,"n":`) // behind "synced"
	if !ok {
		return Entry{}, false
	}
	digits, _, _ := strings.Cut(rest, ",")
	n, err := strconv.ParseUint(digits, 10, 63)
	return Entry{N: n, Seq: ref.Seq, Line: line}, err == nil && n > 0 && n <= maxNumber
}
