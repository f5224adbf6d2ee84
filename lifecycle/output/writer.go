package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

const (
	// Dir is the folder's name in that of the session.
	Dir = "output"
	// MaxSession bounds the folder, in bytes.
	MaxSession = 256 << 20

	// reserve is the room in bytes that is left to the journal on a disk that gets full.
	reserve = 8 << 20
	// lookEvery is how many bytes are written between two looks at the free space.
	lookEvery = 256 << 10

	maxFailure = 1 << 10 // bytes of Attempt.Failure
	filePerm   = 0o600
)

// An Attempt says what an output is of, and how that ended.
type Attempt struct {
	Task    string    `json:"task"`
	Attempt int       `json:"attempt"` // from 1
	Begun   time.Time `json:"begun"`
	// The Ending is the zero value while the attempt lasts, and after a kill.
	Ending
}

// An Ending is how an attempt ended: the second line of the file about it.
type Ending struct {
	Ended   time.Time `json:"ended,omitzero"`
	Outcome string    `json:"outcome,omitempty"` // as in record.Attempt.Then
	Failure string    `json:"failure,omitempty"` // why it failed, at most 1 KiB
}

// A Writer stores the output of one attempt.
type Writer struct {
	dir    writer.FS // Immutable.
	redact *redact.Redactor
	name   string // of the files, without what tells them apart. Immutable.
	limit  int64  // of the folder, in bytes. Immutable.
	by     codec.Options
	run    func(func() error) // nil: nothing is compressed

	mu       sync.Mutex
	meta     writer.File // Guarded by mu; nil once the Writer is closed.
	log, raw *capped     // Guarded by mu.
	streams  []*stream   // Guarded by mu.
	room     int         // Guarded by mu: bytes that may be written before the next look.
	err      error       // Guarded by mu: the first failure. Nothing is written after it.
}

// maxNames bounds how many names are tried for one iteration.
const maxNames = 1000

// Begin begins the output of an attempt in the folder, which is the Writer's from then on,
// also with an error. A file, a symlink or anything else that has a name of its files is
// left alone, and another name is taken.
func Begin(dir writer.FS, r *redact.Redactor, iteration int, a Attempt) (*Writer, error) {
	w := &Writer{dir: dir, redact: r, limit: MaxSession}
	err := w.look()
	for n := 1; err == nil && n <= maxNames; n++ {
		w.name = fmt.Sprintf("%06d", iteration)
		if n > 1 {
			w.name += fmt.Sprintf("-%d", n)
		}
		if err = w.begin(a); err == nil {
			return w, nil
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%d outputs of iteration %d are there", maxNames, iteration)
	}
	return nil, errors.Join(fmt.Errorf("keep output: %w", err), dir.Close())
}

// Discard returns a Writer that stores nothing. Its Close returns nil.
func Discard(r *redact.Redactor) *Writer { return &Writer{redact: r, err: errDiscarded} }

// errDiscarded keeps a Writer without files from writing.
var errDiscarded = errors.New("nothing is stored")

// begin makes the files of the Writer's name. fs.ErrExist says that it is taken.
func (w *Writer) begin(a Attempt) (err error) {
	if w.meta, err = create(w.dir, w.name+metaEnd); err != nil {
		return err
	}
	if err = w.note(a); err == nil {
		w.log, err = newCapped(w.dir, w.name+string(Log))
	}
	if err == nil {
		if w.raw, err = newCapped(w.dir, w.name+string(Raw)); err != nil {
			err = errors.Join(err, w.log.close(), w.dir.Remove(w.name+string(Log)))
		}
	}
	if err != nil {
		err = errors.Join(err, w.meta.Close(), w.dir.Remove(w.name+metaEnd))
	}
	return err
}

// create makes a file that is not there yet.
func create(dir writer.FS, name string) (writer.File, error) {
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePerm)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = writer.NewError("create", dir.Name()+"/"+name, writer.NotCommitted, err)
	}
	return f, err
}

// note writes a line about the attempt.
func (w *Writer) note(members any) error {
	data, err := strictjson.Marshal(members)
	if err == nil {
		_, err = w.meta.Write(append(data, '\n'))
	}
	return err
}

// Stream returns a writer of text that is stored in the log, or in the raw output, where an
// event in JSON is one line. Lines of the raw output that begin with without, where it is
// not "", are left out. Its Write never fails.
func (w *Writer) Stream(of File, without string) io.Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &stream{w: w, to: w.log, most: maxLine, without: []byte(without)}
	if of == Raw {
		s.to, s.most, s.events = w.raw, maxEvent, true
	}
	w.streams = append(w.streams, s)
	return s
}

// flush writes what streams hold back. The caller holds mu.
func (w *Writer) flush() {
	for _, s := range w.streams {
		s.end()
	}
}

// Note writes a line of the caller into the log, below what streams hold back. It is
// redacted.
func (w *Writer) Note(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	line, _ = w.redact.String(line)
	w.put(w.log, []byte(line+"\n"))
}

// Prompt stores the prompt, at most 16 MiB of it.
func (w *Writer) Prompt(text []byte) {
	text, _ = w.redact.Bytes(text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	f, err := newCapped(w.dir, w.name+string(Prompt))
	if err != nil {
		w.fail(err)
		return
	}
	w.put(f, text)
	w.fail(f.close())
}

// put writes to a file, unless something failed before. The caller holds mu.
func (w *Writer) put(to *capped, text []byte) {
	if w.err != nil {
		return
	}
	if w.room -= len(text); w.room < 0 {
		w.fail(w.look())
		w.room = lookEvery
	}
	if w.err == nil {
		w.fail(to.write(text))
	}
}

// fail keeps the first error.
func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// look says whether the disk has room for output.
func (w *Writer) look() error {
	if free, err := writer.FreeBytes(w.dir.Name()); err == nil && free < reserve {
		return fmt.Errorf("%d KiB are free in %s, and the last %d KiB are for the state", free>>10, w.dir.Name(), reserve>>10)
	}
	return nil
}

// Close notes how the attempt ended and removes what is beyond the bounds; without keep
// also the prompt and the raw output. The error is the first one that cost output. Of a
// Writer that was closed it does nothing.
func (w *Writer) Close(outcome, failure string, keep bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.meta == nil {
		return nil
	}
	w.flush()
	failure, _ = w.redact.String(failure)
	if outcome != "" {
		w.fail(w.note(Ending{time.Now().UTC(), outcome, plain.Clip(failure, maxFailure)}))
	}
	err := errors.Join(w.log.close(), w.raw.close(), w.meta.Close())
	w.meta = nil
	if !keep {
		err = errors.Join(err, removeFiles(w.dir, w.name, Raw), removeFiles(w.dir, w.name, Prompt))
	}
	err = errors.Join(err, thin(w.dir, w.name, w.limit))
	if w.run != nil {
		w.run(func() error { return errors.Join(compress(w.dir, w.name, w.by), w.dir.Close()) })
	} else {
		err = errors.Join(err, w.dir.Close())
	}
	w.fail(err)
	if w.err != nil {
		return fmt.Errorf("keep output: %w", w.err)
	}
	return nil
}
