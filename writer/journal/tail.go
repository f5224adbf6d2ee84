package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer"
)

// A Tail reads the lines of a journal in order, each once, while the Writer of the journal
// appends. A Read costs what was appended since the one before, and some more after the Writer
// began another segment. It belongs to one goroutine.
type Tail struct {
	dir    writer.FS
	last   uint64 // number of the last record that was read
	begin  uint64 // [Log.Begin] of the journal when it was last read as a whole
	at     name   // the segment of the last record; the zero name if it must be looked for
	offset int64  // behind the last record, in bytes
}

// NewTail returns a Tail that begins with the first record above a number. It does not touch the
// disk.
func NewTail(dir writer.FS, above uint64) *Tail { return &Tail{dir: dir, last: above} }

// Last returns the number of the last record that was read.
func (t *Tail) Last() uint64 { return t.last }

// Begin returns what Log.Begin was at the last Read that began a segment: records below it may be
// missing in what Read gives, except for entries.
func (t *Tail) Begin() uint64 { return t.begin }

// Read calls fn with the line of each record above the last one, up to record upto, which is known
// to be durable: the caller took its number from the Writer. The line is valid until fn returns.
// A record for which fn returns an error counts as not read, and Read returns that error. The
// error has class corrupt if a record is damaged.
func (t *Tail) Read(upto uint64, fn func(r *Ref, line []byte) error) error {
	if t.last >= upto {
		return nil
	}
	// The list is newer than upto. So if the segment is still the newest, the record that follows
	// in it is no one that was given up: a Writer acknowledges the next record in a later segment.
	names, err := segments(t.dir)
	if err != nil {
		return err
	}
	if t.at != (name{}) && len(names) > 0 && names[len(names)-1] == t.at {
		if err := t.along(upto, fn); err != nil || t.last >= upto {
			return err
		}
	}
	return t.anew(upto, fn)
}

// along reads on in the segment of the last record. It ends before anything that is not the next
// record.
func (t *Tail) along(upto uint64, fn func(r *Ref, line []byte) error) error {
	f, size, closer, err := source(t.dir, t.at)
	if err != nil || size < t.offset {
		if closer != nil {
			_ = closer.Close() // nothing was written to it
		}
		return nil //nolint:nilerr // it was rewritten; anew finds the records
	}
	defer closer.Close()
	at, ok := f.(io.ReaderAt)
	if !ok {
		return nil
	}
	lines := newLines(io.NewSectionReader(at, t.offset, maxNumber), size-t.offset+1)
	defer lines.release()
	base := t.offset
	for t.last < upto {
		line, err := lines.next()
		if err != nil || line == nil {
			return nil //nolint:nilerr // anew says what is wrong
		}
		it, ok := decodeLine(line)
		if !ok || !it.note && (it.Seq != t.last+1 || it.Epoch != t.at.epoch) {
			return nil
		}
		if it.segment, it.Offset = t.at, base+lines.start; !it.note {
			if err := fn(&it.Ref, line); err != nil {
				return err
			}
			t.last = it.Seq
		}
		t.offset = base + lines.end
	}
	return nil
}

// anew looks for the record that follows the last one, and reads from there.
func (t *Tail) anew(upto uint64, fn func(r *Ref, line []byte) error) error {
	log, err := Read(t.dir, t.last, false)
	if err != nil {
		return err
	}
	t.begin, t.at = log.Begin(), name{}
	if log.Lost > 0 && log.Lost <= upto || log.Last() < upto {
		return &writer.Error{Op: "read journal", Path: filepath.Clean(t.dir.Name()), Class: writer.ClassCorrupt,
			Err: fmt.Errorf("record %d is damaged or missing", max(log.Lost, log.Last()+1))}
	}
	refs := log.Above(t.last)
	refs = refs[:len(refs)-len(log.Above(upto))]
	for _, g := range log.Gaps() { // lost entries have no copy elsewhere
		if g.First <= upto && (g.Last == 0 || g.Last > t.last && g.Last >= t.begin) { // it may begin with records that were read
			return &writer.Error{Op: "read journal", Path: filepath.Clean(t.dir.Name()), Class: writer.ClassCorrupt, Err: errors.New(g.String())}
		}
	}
	err = log.Lines(refs, func(r *Ref, line []byte) error {
		if err := fn(r, line); err != nil {
			return err
		}
		t.last = r.Seq
		if t.at = (name{}); !r.segment.packed() {
			t.at, t.offset = r.segment, r.Offset+r.Length
		}
		return nil
	})
	if err == nil {
		t.last = max(t.last, upto) // what lies between was dropped
	}
	return err
}
