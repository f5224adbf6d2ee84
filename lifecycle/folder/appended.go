package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// inheritedDir is the folder of a fork that has the segments of the logs that the fork
// continues, each log in a folder named by its number from 1.
const inheritedDir = "inherited"

// InheritedLog returns the folder of the inherited log with index k, from 0, below the
// session's folder.
func InheritedLog(k int) string { return inheritedDir + "/" + strconv.Itoa(k+1) }

// Appended is a message or an event.
type Appended struct {
	Object  strictjson.Value // nil with an error
	Message session.Message  // the decoded message; zero for an event
	// At is the session's Mark up to this message or event. Its Seq is 0 for an inherited
	// one.
	At session.Mark
}

// ReadAppended yields the messages of a session up to a Mark or, with events set, the events
// of its transcript: first the inherited ones, then those of the session's own log. For lost
// ones it yields an error that wraps ErrDamaged and gives the missing numbers.
func ReadAppended(dir writer.FS, to session.Mark, events bool) iter.Seq2[Appended, error] {
	return func(yield func(Appended, error) bool) {
		r := &appendedReader{events: events, what: "message", yield: yield}
		if events {
			r.what = "event"
		}
		for k, upto := range to.Inherits {
			r.at = session.Mark{Inherits: to.Inherits[: k+1 : k+1]}
			sub, err := writer.OpenDir(dir, InheritedLog(k))
			if errors.Is(err, fs.ErrNotExist) {
				r.place = InheritedLog(k) + " is missing" // the numbers of the next records show the gap
				continue
			}
			if err == nil {
				err = (&logReader{appendedReader: r, dir: sub, upto: upto, reached: func(at *session.Mark, seq uint64) {
					at.Inherits = append(at.Inherits[:k:k], seq)
				}}).read()
				_ = sub.Close()
			}
			if err != nil {
				r.fail(err)
				return
			}
		}
		r.at = session.Mark{Inherits: to.Inherits}
		own := logReader{appendedReader: r, dir: dir, upto: to.Seq, reached: func(at *session.Mark, seq uint64) { at.Seq = seq }}
		if err := own.read(); err != nil {
			r.fail(err)
			return
		}
		r.missing(r.count(&to))
	}
}

// An appendedReader yields the messages or events of several logs.
type appendedReader struct {
	events bool
	what   string
	yield  func(Appended, error) bool
	at     session.Mark
	last   uint64 // number of the last message or event
	place  string // place of the first damage behind it, or ""
}

// errEnough ends the reading.
var errEnough = errors.New("enough")

func (r *appendedReader) fail(err error) {
	if !errors.Is(err, errEnough) {
		r.yield(Appended{}, err)
	}
}

// A logReader yields the messages or events of one log up to record upto.
type logReader struct {
	*appendedReader
	dir        writer.FS
	upto, done uint64
	reached    func(at *session.Mark, seq uint64) // sets the number of the last record in at
}

// read reads the log. When a writer rewrites segments meanwhile, it begins again behind the
// last record that was yielded.
func (r *logReader) read() (err error) {
	for range Tries {
		if err = r.parts(); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func (r *logReader) parts() error {
	if r.done >= r.upto {
		return nil
	}
	next := r.done + 1
	for part, err := range journal.Parts(r.dir) {
		if err != nil {
			return err
		}
		if n := len(part.Records); n > 0 {
			if first := part.Records[0].Seq; len(part.Faults) == 0 && first > next && first <= r.upto {
				r.damaged(r.dir, journal.Fault{Kind: journal.Damaged, Segment: part.Segment, Seq: next, Before: true})
			}
			next = part.Records[n-1].Seq + 1
		}
		if err := r.part(&part); err != nil {
			return err
		}
	}
	return nil
}

func (r *logReader) part(part *journal.Part) error {
	var refs []journal.Ref
	for _, ref := range part.Above(r.done) {
		if ref.Entry && ref.Seq <= r.upto {
			refs = append(refs, ref)
		}
	}
	faults := part.Faults
	err := part.Lines(refs, func(ref *journal.Ref, line []byte) error {
		for ; len(faults) > 0 && faults[0].Seq <= ref.Seq; faults = faults[1:] {
			r.damaged(r.dir, faults[0])
		}
		r.done = ref.Seq
		rec, err := wire.DecodeRecord(line)
		if err != nil {
			r.damaged(r.dir, journal.Fault{Kind: journal.Damaged, Segment: ref.Segment(), Offset: ref.Offset, Length: ref.Length, Seq: ref.Seq})
			return nil
		}
		r.at.Messages, r.at.Transcript = rec.Messages, rec.Transcript
		r.reached(&r.at, ref.Seq)
		return r.record(&rec)
	})
	if err != nil {
		return err
	}
	for _, f := range faults {
		if f.Seq <= r.upto {
			r.damaged(r.dir, f)
		}
	}
	return nil
}

// damaged remembers the first damaged place since the last message or event.
func (r *appendedReader) damaged(dir writer.FS, f journal.Fault) {
	if r.place == "" && f.Kind == journal.Damaged {
		r.place = filepath.Join(dir.Name(), f.String())
	}
}

func (r *appendedReader) record(rec *record.Record) error {
	a := Appended{Object: rec.Message, At: r.at}
	if r.events {
		a.Object = rec.TranscriptEvent
	}
	n := r.count(&r.at)
	switch {
	case a.Object == nil || n <= r.last:
		return nil
	case !r.missing(n - 1):
		return errEnough
	}
	r.last, r.place = n, ""
	err := strictjson.Check(a.Object)
	if err != nil {
		a.Object, err = nil, fmt.Errorf("%s %d is %w", r.what, n, ErrDamaged)
	} else if !r.events {
		if a.Message, err = wire.DecodeMessage(a.Object); err != nil {
			err = fmt.Errorf("%w: message %d: %w", ErrDamaged, n, err)
		}
	}
	if !r.yield(a, err) {
		return errEnough
	}
	return nil
}

func (r *appendedReader) count(at *session.Mark) uint64 {
	if r.events {
		return at.Transcript
	}
	return at.Messages
}

// missing yields an error if messages or events up to a number are missing.
func (r *appendedReader) missing(upto uint64) bool {
	if r.last >= upto {
		return true
	}
	if r.place == "" {
		r.place = "the log does not have them"
	}
	err := fmt.Errorf("the %ss %d to %d are %w: %s", r.what, r.last+1, upto, ErrDamaged, r.place)
	r.last, r.place = upto, ""
	return r.yield(Appended{}, err)
}

// FindMessage returns the Mark of a session right after a message.
func FindMessage(dir writer.FS, to session.Mark, id string) (session.Mark, error) {
	var open []string
	for a, err := range ReadAppended(dir, to, false) {
		if err != nil && !errors.Is(err, ErrDamaged) {
			return session.Mark{}, err
		}
		if err != nil {
			continue
		}
		open = session.Answered(open, &a.Message)
		if a.Message.ID == id {
			a.At.OpenCalls = open
			return a.At, nil
		}
	}
	return session.Mark{}, fmt.Errorf("message %q: %w", id, ErrNotFound)
}
