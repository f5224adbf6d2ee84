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
		if !to.valid(name) {
			yield(Entry{}, &writer.Error{Op: "read stream", Path: filepath.Join(dir.Name(), name), Class: writer.ClassCorrupt, Err: fmt.Errorf("the file %q is none of its own", to.File)})
			return
		}
		parts, err := streamParts(dir, name, to)
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
	parts, err := streamParts(dir, name, to)
	files := make([]string, len(parts))
	for i, p := range parts {
		files[i] = p.File
	}
	return files, err
}

// streamParts follows the headers back to the first file and returns how much of
// each counts. Where a header cannot be read, the file with the next lower name is
// taken, whole: what of it counts, the records behind it tell by their numbers.
func streamParts(dir writer.FS, name string, to Tail) ([]Tail, error) {
	var parts []Tail
	seen := map[string]bool{}
	for at := to; at.File != "" && !seen[at.File]; {
		seen[at.File] = true
		parts = append(parts, at)
		after, err := streamAfter(dir, name, at)
		if errors.Is(err, errHeader) || errors.Is(err, fs.ErrNotExist) {
			after, err = streamBefore(dir, name, at.File)
		}
		if err != nil {
			return nil, err
		}
		at = after
	}
	slices.Reverse(parts)
	return parts, nil
}

// streamAfter is what the header of a file names.
func streamAfter(dir writer.FS, name string, at Tail) (Tail, error) {
	f, _, err := writer.OpenRegular(dir, "read stream", at.File, os.O_RDONLY)
	if err != nil {
		return Tail{}, err
	}
	defer f.Close()
	line, err := newLines(f).next()
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

// streamBefore guesses the file before one whose header is damaged.
func streamBefore(dir writer.FS, name, file string) (Tail, error) {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return Tail{}, writer.NewError("read stream", dir.Name(), writer.NotCommitted, err)
	}
	var before Tail
	for _, e := range entries {
		if !isStreamFile(name, e.Name()) || compareStreamFiles(name, e.Name(), file) >= 0 {
			continue
		}
		if before.File == "" || compareStreamFiles(name, e.Name(), before.File) > 0 {
			before = Tail{File: e.Name(), Bytes: maxNumber, Count: maxNumber}
		}
	}
	return before, nil
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
	f, _, err := writer.OpenRegular(r.dir, "read stream", p.File, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		r.gap(p.File, 0, p.Bytes)
		return true // what is missing shows by the numbers
	}
	if err != nil {
		return r.fail(err)
	}
	defer f.Close()
	in := newLines(io.LimitReader(f, p.Bytes))
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
		start := in.start
		if i := bytes.LastIndex(line, []byte(entryStart)); !ok && i > 0 { // a line that lost the end of the one before
			e, ok = decodeEntry(line[i:])
			start += int64(i)
			r.gap(p.File, in.start, start-in.start)
		}
		if !ok {
			r.gap(p.File, start, in.end-start)
			continue
		}
		if e.N <= r.last || e.N > p.Count {
			continue // of a file whose own end is not known
		}
		if e.N > r.last+1 && !r.missing(e.N-1) {
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

// entryStart begins every record: in a string its quotes would have a backslash.
const entryStart = `{"seq":`

// decodeEntry reads the frame of a stream's line.
func decodeEntry(line []byte) (Entry, bool) {
	ref, ok := decodeRecord(line)
	if !ok {
		return Entry{}, false
	}
	_, rest, ok := strings.Cut(string(line[:min(len(line), 160)]), `,"n":`)
	if !ok {
		return Entry{}, false
	}
	digits, _, _ := strings.Cut(rest, ",")
	n, err := strconv.ParseUint(digits, 10, 63)
	return Entry{N: n, Seq: ref.Seq, Line: line}, err == nil && n > 0 && n <= maxNumber
}
