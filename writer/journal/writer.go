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
	"github.com/lopen-dev/lopen/writer/codec"
)

// SegmentSize is the default of Writer.Limit, in bytes.
const SegmentSize = 8 << 20

// MaxBody bounds one record's body, in bytes.
const MaxBody = 8 << 20

// A Writer appends to the journal of one session. It belongs to one goroutine of the
// process that holds the session's lease. One other goroutine may call Segments,
// FirstLine, Pack and Drop concurrently.
type Writer struct {
	// Limit is the length in bytes beyond which a segment gets no more records.
	// It may be changed between two calls.
	Limit int64
	// Confirm, unless nil, is called after the sync and returns an error when the writer
	// no longer holds the session's lease. Then Append acknowledges nothing: a successor
	// may have begun before the records were written, and they are void.
	Confirm func() error
	// Compression says how Pack and Drop compress. It is set before either is called.
	Compression codec.Options

	dir     writer.FS
	session string

	at     name        // the current segment
	f      writer.File // nil when there is none to write to
	off    int64       // where the next line goes
	synced int64       // everything before this offset is durable
	filled int64       // length of the file; zeros from off on
	last   Position    // the last durable record
	state  uint64      // the newest record that the State rests on
	tight  bool        // the disk was full, so the current segment is not preallocated
	full   bool        // the next record begins a segment
	broken error       // sticky: why the current segment was given up

	mu   sync.Mutex
	list []header // of all segments. Guarded by mu: Pack and Drop replace it during appends.
}

// A segment is preallocated with zeros, so that most records change neither the length
// nor the blocks of the file, and fdatasync writes the data alone. A step is four times
// as long as the append that needs it, but at least minFill and at most maxFill bytes.
const (
	minFill = 64 << 10
	maxFill = 256 << 10
)

var zeros [maxFill]byte

// buffers pools the buffers for lines and the zeros behind them. A Writer holds none between
// two calls.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxBuffer = 1 << 20 // a larger buffer is not reused

// Create begins the journal of a new session in a folder without segments. When it
// returns nil the first segment and its name are durable.
func Create(dir writer.FS, session string) (*Writer, error) {
	w := &Writer{dir: dir, session: session, Limit: SegmentSize, at: name{epoch: 1}}
	if err := w.next(); err != nil {
		return nil, err
	}
	return w, nil
}

// Open resumes the journal that Read returned, in a new epoch. It copies every record
// that no later line proves to be durable into the new epoch's first segment, which is
// complete and durable before it gets its name: records that this process finds in the
// page cache may not be on the disk, and a sync of their own file may report success
// although they are not. A hard link makes the name. If the name exists, another process
// has opened the journal, and the error has class fenced.
//
// When Open returns nil, everything up to Last is durable.
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

// header returns the header of the current segment.
func (w *Writer) header() header {
	return header{Session: w.session, Epoch: w.at.epoch, Segment: w.at.n, After: w.last, State: w.state}
}

// claim gives the complete segment its name, and fails if the name exists.
func (w *Writer) claim(temp string) error {
	final := w.at.String()
	err := w.dir.Link(temp, final)
	switch {
	case errors.Is(err, fs.ErrExist) && w.sameFile(temp, final):
		// The link was made; a network server's answer got lost.
	case errors.Is(err, fs.ErrExist):
		return &writer.Error{Op: "open journal", Path: w.path(), Class: writer.ClassFenced, Err: err}
	case writer.RefusesLinks(err):
		if _, err := w.dir.Lstat(final); !errors.Is(err, fs.ErrNotExist) {
			return &writer.Error{Op: "open journal", Path: w.path(), Class: writer.ClassFenced, Err: fs.ErrExist}
		}
		return w.dir.Rename(temp, final) // without hard links only the lease excludes other processes
	case err != nil:
		return err
	}
	_ = w.dir.Remove(temp) // if this fails, the next Open removes the second name
	return nil
}

// sameFile reports whether two names are links of one file.
func (w *Writer) sameFile(a, b string) bool {
	one, err := w.dir.Lstat(a)
	if err != nil {
		return false
	}
	other, err := w.dir.Lstat(b)
	return err == nil && writer.SameFile(one, other)
}

// Last returns the last durable record.
func (w *Writer) Last() Position { return w.last }

// Append makes records durable, in order. It needs one write, or several above 256 KiB,
// and one fdatasync. When it returns nil all records are durable. The caller passes at
// least one.
//
// After a failed write or sync none of the records is acknowledged, and the segment is
// given up: every later Append fails until Reopen has succeeded. The sync is not retried,
// and nothing is truncated: the header of the next segment voids what the failed call left
// behind the last durable record. A record that is too large is refused with class invalid
// and gives nothing up.
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
		if len(lines) >= maxFill { // several smaller writes are faster than a larger one
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

// sizeOf returns the size of the records' bodies in bytes, and an error if one is larger than
// MaxBody.
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

// append writes p behind the last line, and preallocates more of the file when p reaches
// beyond its end. It returns p, which may have grown.
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

// Note appends a line that says that the last record is durable, and that names snapshots.
// It does not sync: a later Append makes the line durable, and so does Close. From then on
// damage up to the last record can be distinguished from a torn tail. After an error only
// the note is lost, and the next record begins a segment.
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

// Rotates reports whether records with bodies of size bytes would begin a new segment.
func (w *Writer) Rotates(size int64) bool {
	return w.full || w.off+size > w.Limit && w.off > w.Limit/2
}

// Reopen continues in a new segment after an error. The new header names the last durable
// record and so voids whatever the failed call left. Without an error before, Reopen does
// nothing.
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

// Close closes the current segment. Acknowledged records are durable already; notes are
// durable when Close returns nil.
func (w *Writer) Close() error {
	err := w.end()
	w.broken = fs.ErrClosed
	return err
}

// end makes notes durable and closes the current segment.
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

// next opens the segment after the current one: it writes the header, syncs the file and
// the folder, and writes the list, all before the first record. The first record's
// fdatasync would make the header durable as well; the sync here makes Reopen fail while
// the disk still fails.
func (w *Writer) next() error {
	if err := w.end(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at.n++ // a number is never reused, even when the segment cannot be opened
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
		err = w.Confirm() // before the list is replaced, which may belong to another holder by now
	}
	if err != nil {
		if w.f != nil {
			w.drop()
			_ = w.dir.Remove(w.at.String()) // it holds no record, and a full disk needs the space
			w.list = w.list[:len(w.list)-1]
		}
		return w.error("open segment", writer.NotCommitted, err)
	}
	// On a full disk the list waits for the next segment, and records get the space that is left.
	if err := writeList(w.dir, w.list); err != nil && writer.ClassOf(err) != writer.ClassNoSpace {
		w.drop() // the file stays: its name may be in the list
		return w.error("open segment", writer.NotDurable, err)
	}
	return nil
}

// create creates a file with a header. It syncs neither the file nor the folder.
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

// write writes p at w.off, in one call. A short write is an error.
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

// drop closes a file that is given up; an error of close no longer matters.
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

// Epoch returns the epoch of the records that the Writer writes.
func (w *Writer) Epoch() uint64 { return w.at.epoch }

// Segment returns the name of the current segment's file.
func (w *Writer) Segment() string { return w.at.String() }
