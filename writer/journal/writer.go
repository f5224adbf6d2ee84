package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer"
)

// SegmentSize is the Limit of a Writer unless it is changed.
const SegmentSize = 8 << 20

// MaxBody bounds one record's body, in bytes.
const MaxBody = 8 << 20

// A Writer appends to the journal of one session. It belongs to one goroutine,
// which holds the session's lease.
type Writer struct {
	// Limit is the length in bytes beyond which a segment gets no more records.
	// It may be changed between two calls.
	Limit int64
	// Confirm says after the sync whether the writer still holds the session; nil asks
	// nobody. After its error nothing is acknowledged: a successor may have begun before
	// the records were written, and then they are void.
	Confirm func() error

	dir     writer.FS
	session string

	at     name        // the current segment
	f      writer.File // nil when there is none to write to
	off    int64       // its length; all of it is durable
	last   Position    // the last durable record
	broken error       // sticky: why the current segment was given up
	buf    []byte
}

// Create begins the journal of a new session: its first segment, durable with its
// name. The folder has none yet.
func Create(dir writer.FS, session string) (*Writer, error) {
	w := &Writer{dir: dir, session: session, Limit: SegmentSize, at: name{epoch: 1}}
	if err := w.next(); err != nil {
		return nil, err
	}
	return w, nil
}

// Open goes on from what was read, in a new epoch. base is the record that a
// durable snapshot covers. Every record above it is copied, as it is, into the new
// epoch's first segment, which is complete and durable before it gets its name:
// records that this process finds in the page cache may not be on the disk, and
// the sync of the file that they stand in may report success without being one.
// The name is claimed by a hard link, which fails if it exists: an error of class
// fenced, as somebody else has opened the journal.
//
// When Open returns nil everything up to Last is durable.
func Open(dir writer.FS, session string, log *Log, base Position) (*Writer, error) {
	if known := log.position(base.Seq); known.Seq == base.Seq {
		base = known
	}
	w := &Writer{dir: dir, session: session, Limit: SegmentSize, at: name{epoch: base.Epoch}, last: base}
	for _, n := range log.names {
		w.at.epoch = max(w.at.epoch, n.epoch)
	}
	w.at = name{w.at.epoch + 1, 1}
	temp := writer.TempName(w.at.String())
	err := w.copyTo(temp, log)
	if err == nil {
		err = w.claim(temp)
	}
	if err != nil {
		w.drop()
		_ = dir.Remove(temp)
		return nil, w.error("open journal", writer.NotCommitted, err)
	}
	if err := dir.SyncDir("."); err != nil {
		w.drop()
		return nil, w.error("open journal", writer.NotDurable, err)
	}
	return w, nil
}

// copyTo writes the first segment of an epoch under a temporary name and syncs it.
func (w *Writer) copyTo(temp string, log *Log) error {
	refs := log.Above(w.last.Seq)
	h := header{Version: Version, Session: w.session, Epoch: w.at.epoch, Segment: w.at.n, After: w.last}
	for i := range refs {
		h.Copied += refs[i].Length
		h.Upto = refs[i].Seq
	}
	if err := w.create(temp, h); err != nil {
		return err
	}
	err := log.Lines(refs, func(r *Ref, line []byte) error {
		w.last = r.Position
		return w.write(line)
	})
	if err != nil {
		return err
	}
	return w.f.Sync()
}

// claim gives the complete segment its name.
func (w *Writer) claim(temp string) error {
	final := w.at.String()
	err := w.dir.Link(temp, final)
	switch {
	case errors.Is(err, fs.ErrExist) && writer.SameName(w.dir, temp, final):
		// It was made all the same: a network server's answer got lost.
	case errors.Is(err, fs.ErrExist):
		return &writer.Error{Op: "open journal", Path: w.path(), Class: writer.ClassFenced, Err: err}
	case writer.RefusesLinks(err):
		if _, err := w.dir.Lstat(final); !errors.Is(err, fs.ErrNotExist) {
			return &writer.Error{Op: "open journal", Path: w.path(), Class: writer.ClassFenced, Err: fs.ErrExist}
		}
		return w.dir.Rename(temp, final) // the lease alone keeps others away here
	case err != nil:
		return err
	}
	_ = w.dir.Remove(temp) // a second name of the segment: the next opener clears it
	return nil
}

// Last is the last durable record.
func (w *Writer) Last() Position { return w.last }

// Append makes records durable, in order, with one write and one fdatasync: when
// it returns nil all of them are. A body holds the members of one JSON object
// without its braces and without a line feed, at most MaxBody bytes.
//
// After an error none of them is acknowledged, and the segment is given up: every
// later Append fails until Reopen has succeeded. fsync is not tried again, and
// nothing is cut off: what a failed call left behind the last durable record is
// void by what the next segment says.
func (w *Writer) Append(bodies ...[]byte) (Position, error) {
	if w.broken != nil {
		return w.last, w.broken
	}
	size := int64(0)
	for _, b := range bodies {
		if len(b) > MaxBody {
			return w.last, &writer.Error{Op: "append", Path: w.path(), Class: writer.ClassInvalid, Err: fmt.Errorf("a record of %d bytes, more than %d", len(b), MaxBody)}
		}
		size += int64(len(b))
	}
	if w.off+size > w.Limit && w.off > w.Limit/2 {
		if err := w.next(); err != nil {
			return w.last, w.giveUp(err)
		}
	}
	last := w.last
	w.buf = w.buf[:0]
	for _, b := range bodies {
		start := len(w.buf)
		w.buf = encodeRecord(w.buf, w.at.epoch, last.Seq+1, w.off, b)
		last = Position{w.at.epoch, last.Seq + 1, sealed(w.buf[start:])}
	}
	if err := w.write(w.buf); err != nil {
		return w.last, w.giveUp(w.error("append", writer.NotCommitted, err))
	}
	if err := w.f.Datasync(); err != nil {
		return w.last, w.giveUp(w.error("append", writer.OutcomeUnknown, err))
	}
	if w.Confirm != nil {
		if err := w.Confirm(); err != nil {
			return w.last, w.giveUp(err)
		}
	}
	w.last = last
	return last, nil
}

// Reopen goes on in a new segment after an error: what it says about the last
// durable record voids whatever the failed call left. A Writer that is whole stays
// as it is.
func (w *Writer) Reopen() error {
	if w.broken == nil {
		return nil
	}
	w.drop()
	if err := w.next(); err != nil {
		w.broken = err
		return err
	}
	w.broken = nil
	return nil
}

// Close closes the current segment. What was acknowledged is durable already.
func (w *Writer) Close() error {
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f, w.broken = nil, fs.ErrClosed
	if err != nil {
		return w.error("close journal", writer.NotCommitted, err)
	}
	return nil
}

// next opens the segment after the current one: header, fsync, folder fsync, all
// before its first record. The first record's fdatasync would make the header
// durable as well; a disk that still fails is noticed here, before a pause ends.
func (w *Writer) next() error {
	if w.f != nil {
		err := w.f.Close()
		w.f = nil
		if err != nil {
			return w.error("close journal", writer.NotCommitted, err)
		}
	}
	w.at.n++ // a number is used once, whatever becomes of it
	h := header{Version: Version, Session: w.session, Epoch: w.at.epoch, Segment: w.at.n, After: w.last}
	err := w.create(w.at.String(), h)
	if err == nil {
		err = w.f.Sync()
	}
	if err != nil {
		if w.f != nil {
			w.drop()
			_ = w.dir.Remove(w.at.String()) // it holds no record, and a full disk wants it back
		}
		return w.error("open segment", writer.NotCommitted, err)
	}
	if err := w.dir.SyncDir("."); err != nil {
		w.drop()
		return w.error("open segment", writer.NotDurable, err)
	}
	return nil
}

// create makes a file with a header. It is neither synced nor is its name.
func (w *Writer) create(file string, h header) error {
	line, err := h.encode()
	if err != nil {
		return err
	}
	err = writer.Retry(func() (err error) {
		w.f, err = w.dir.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		w.f = nil
		return err
	}
	w.off = 0
	return w.write(line)
}

// write writes at the end that is known, in one call. A short write is an error.
func (w *Writer) write(p []byte) error {
	n, err := w.f.WriteAt(p, w.off)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err == nil {
		w.off += int64(n)
	}
	return err
}

// drop closes a file that is given up: what close says no longer matters.
func (w *Writer) drop() {
	if w.f != nil {
		_ = w.f.Close()
		w.f = nil
	}
}

func (w *Writer) giveUp(err error) error {
	w.broken = err
	return err
}

func (w *Writer) path() string { return filepath.Join(w.dir.Name(), w.at.String()) }

func (w *Writer) error(op string, outcome writer.Outcome, err error) error {
	var e *writer.Error
	if errors.As(err, &e) {
		return err
	}
	return writer.NewError(op, w.path(), outcome, err)
}

// Epoch is the one that the records are written in.
func (w *Writer) Epoch() uint64 { return w.at.epoch }

// Segment is the name of the current segment's file.
func (w *Writer) Segment() string { return w.at.String() }
