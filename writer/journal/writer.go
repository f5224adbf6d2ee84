package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/lopen-dev/lopen/writer"
)

// SegmentSize is the Limit of a Writer unless it is changed.
const SegmentSize = 8 << 20

// MaxBody bounds one record's body, in bytes.
const MaxBody = 8 << 20

// A Writer appends to the journal of one session. It belongs to one goroutine,
// which holds the session's lease; one other may call Segments, Pack and Drop meanwhile.
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
	off    int64       // where the next line goes
	synced int64       // all before it is durable
	filled int64       // length of the file: zeros from off on
	last   Position    // the last durable record
	state  uint64      // the newest one that the State rests on
	tight  bool        // the disk was full: the current segment is not filled ahead
	full   bool        // the next record begins a segment
	broken error       // sticky: why the current segment was given up

	mu   sync.Mutex
	list []header // of all segments. Guarded by mu: Pack and Drop replace it during commits.
}

// A segment is filled ahead with zeros, so that most records change no length and
// no block of the file: fdatasync then writes the data alone. A step is at least minFill
// and at most maxFill bytes, and as long as a few records.
const (
	minFill = 64 << 10
	maxFill = 256 << 10
)

var zeros [maxFill]byte

// buffers are for lines and the zeros behind them; a Writer has none between two calls.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxBuffer = 1 << 20 // a longer one is not reused

// Create begins the journal of a new session: its first segment, durable with its
// name. The folder has none yet.
func Create(dir writer.FS, session string) (*Writer, error) {
	w := &Writer{dir: dir, session: session, Limit: SegmentSize, at: name{epoch: 1}}
	if err := w.next(); err != nil {
		return nil, err
	}
	return w, nil
}

// Open resumes the journal from what was read, in a new epoch. Every record above the last one that
// a later line knows to be durable is copied, as it is, into the new
// epoch's first segment, which is complete and durable before it gets its name:
// records that this process finds in the page cache may not be on the disk, and
// the sync of the file that they stand in may report success without being one.
// The name is claimed by a hard link, which fails if it exists: an error of class
// fenced, as somebody else has opened the journal.
//
// When Open returns nil everything up to Last is durable.
func Open(dir writer.FS, session string, log *Log) (*Writer, error) {
	w := &Writer{dir: dir, session: session, Limit: SegmentSize}
	w.last, w.state = log.position(log.durable)
	for _, h := range log.heads {
		if w.at.epoch = max(w.at.epoch, h.name.epoch); h.ok {
			w.list = append(w.list, h.header)
		}
	}
	w.at = name{epoch: w.at.epoch + 1, n: 1}
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
	err = dir.SyncDir(".")
	if err == nil {
		err = writeList(dir, w.list)
	}
	if err != nil {
		w.drop()
		return nil, w.error("open journal", writer.NotDurable, err)
	}
	return w, nil
}

// copyTo writes the first segment of an epoch under a temporary name and syncs it.
func (w *Writer) copyTo(temp string, log *Log) error {
	refs := log.Above(w.last.Seq)
	h := w.header()
	for i := range refs {
		h.Copied += refs[i].Length
		h.Upto = refs[i].Seq
	}
	if len(refs) > 0 {
		_, h.UptoState = log.position(h.Upto)
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
	w.state, w.synced = max(w.state, h.UptoState), w.off
	return w.f.Sync()
}

// header is the first line of the current segment.
func (w *Writer) header() header {
	return header{Session: w.session, Epoch: w.at.epoch, Segment: w.at.n, After: w.last, State: w.state}
}

// claim gives the complete segment its name.
func (w *Writer) claim(temp string) error {
	final := w.at.String()
	err := w.dir.Link(temp, final)
	switch {
	case errors.Is(err, fs.ErrExist) && w.sameFile(temp, final):
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

// sameFile says whether two names are links of one file.
func (w *Writer) sameFile(a, b string) bool {
	one, err := w.dir.Lstat(a)
	if err != nil {
		return false
	}
	other, err := w.dir.Lstat(b)
	return err == nil && writer.SameFile(one, other)
}

// Last is the last durable record.
func (w *Writer) Last() Position { return w.last }

// Append makes records durable, in order, with one write, of many bytes several, and one
// fdatasync: when it returns nil all of them are. There is one at least.
//
// After an error none of them is acknowledged, and the segment is given up: every
// later Append fails until Reopen has succeeded. fsync is not tried again, and
// nothing is cut off: what a failed call left behind the last durable record is
// void by what the next segment says.
func (w *Writer) Append(records ...Record) (pos Position, err error) {
	if w.broken != nil {
		return w.last, w.broken
	}
	size, err := w.sizeOf(records)
	if err != nil {
		return w.last, err
	}
	if w.Rotates(size) {
		if err := w.next(); err != nil {
			return w.last, w.giveUp(err)
		}
	}
	last, state := w.last, w.state
	buf := buffers.Get().(*[]byte) //nolint:forcetypeassert // nothing else is put there
	lines := (*buf)[:0]
	for i := 0; i < len(records) && err == nil; i++ {
		r := &records[i]
		if len(lines) >= maxFill { // what is longer is faster in parts
			err, lines = w.write(lines), lines[:0]
		}
		last = Position{Epoch: w.at.epoch, Seq: last.Seq + 1}
		lines = encodeRecord(lines, last, w.synced, state, *r)
		if !r.Entry {
			state = last.Seq
		}
	}
	last.CRC = checksum(lines)
	if err == nil {
		lines, err = w.append(lines)
	}
	if *buf = lines; cap(*buf) <= maxBuffer {
		buffers.Put(buf)
	}
	if err != nil {
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
	w.last, w.state, w.synced = last, state, w.off
	return last, nil
}

// sizeOf is how many bytes the bodies of records have. The error is that of one that is too
// large.
func (w *Writer) sizeOf(records []Record) (size int64, err error) {
	for _, r := range records {
		n := len(r.Body) + len(r.Object)
		if n > MaxBody {
			return 0, &writer.Error{Op: "append", Path: w.path(), Class: writer.ClassInvalid, Err: fmt.Errorf("a record of %d bytes, more than %d", n, MaxBody)}
		}
		size += int64(n)
	}
	return size, nil
}

// append writes at the end, and fills the file ahead where it ends. It returns p, which may
// have grown.
func (w *Writer) append(p []byte) ([]byte, error) {
	end := w.off + int64(len(p))
	if end > w.filled && !w.tight {
		step := min(max(4*int64(len(p)), minFill), maxFill)
		w.filled = max(min((end+step)/step*step, w.Limit), end)
		p = append(p, zeros[:w.filled-end]...)
	}
	err := w.write(p)
	if err == nil {
		w.off = end
	}
	return p, err
}

// Note writes down that the last record is durable, and the snapshots that were made,
// without a sync: a later Append makes the line durable, and so does Close. From then on
// damage up to the last record can be distinguished from the end of the log. An error costs the note: the
// next record begins a segment.
func (w *Writer) Note(named ...Named) error {
	if w.broken != nil || w.full {
		return w.broken
	}
	line, err := encodeNote(w.last, w.synced, w.state, named)
	if err == nil {
		_, err = w.append(line)
	}
	if err != nil {
		w.full = true
		return w.error("note", writer.NotCommitted, err)
	}
	return nil
}

// Full makes the next record begin a segment.
func (w *Writer) Full() { w.full = true }

// Rotates says whether records with bodies of so many bytes begin a segment.
func (w *Writer) Rotates(size int64) bool {
	return w.full || w.off+size > w.Limit && w.off > w.Limit/2
}

// Reopen continues in a new segment after an error: what it says about the last
// durable record voids whatever the failed call left. A Writer that is whole stays
// as it is.
func (w *Writer) Reopen() error {
	if w.broken == nil {
		return nil
	}
	tight := writer.ClassOf(w.broken) == writer.ClassNoSpace
	w.drop()
	if err := w.next(); err != nil {
		w.broken = err
		return err
	}
	w.broken, w.tight = nil, tight
	return nil
}

// Close closes the current segment. What was acknowledged is durable already; notes are
// when it returns nil.
func (w *Writer) Close() error {
	err := w.end()
	w.broken = fs.ErrClosed
	return err
}

// end closes the current segment, notes durable.
func (w *Writer) end() error {
	if w.f == nil {
		return nil
	}
	var err error
	if w.synced < w.off && w.broken == nil {
		err = w.f.Datasync()
	}
	err = errors.Join(err, w.f.Close())
	w.f = nil
	if err != nil {
		return w.error("close journal", writer.NotCommitted, err)
	}
	return nil
}

// next opens the segment after the current one: header, fsync, folder fsync, list, all
// before its first record. The first record's fdatasync would make the header
// durable as well; a disk that still fails is noticed here, before a pause ends.
func (w *Writer) next() error {
	if err := w.end(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at.n++ // a number is used once, whatever becomes of it
	w.full, w.tight = false, false
	err := w.create(w.at.String(), w.header())
	if err == nil {
		w.synced = w.off
		err = w.f.Sync()
	}
	if err == nil {
		err = w.dir.SyncDir(".")
	}
	if err == nil && w.Confirm != nil {
		err = w.Confirm() // or the list would be another holder's
	}
	if err != nil {
		if w.f != nil {
			w.drop()
			_ = w.dir.Remove(w.at.String()) // it holds no record, and a full disk wants it back
			w.list = w.list[:len(w.list)-1]
		}
		return w.error("open segment", writer.NotCommitted, err)
	}
	// Where the list has no room it gets the segment with the next one: what is left is for
	// records.
	if err := writeList(w.dir, w.list); err != nil && writer.ClassOf(err) != writer.ClassNoSpace { // or its name may be in the list
		w.drop()
		return w.error("open segment", writer.NotDurable, err)
	}
	return nil
}

// create makes a file with a header. It is neither synced nor is its name.
func (w *Writer) create(file string, h header) error {
	line, err := headers.Encode(h)
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
	w.list = append(w.list, h)
	w.off, w.filled = 0, 0
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
		w.filled = max(w.filled, w.off)
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
