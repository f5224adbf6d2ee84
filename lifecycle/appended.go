package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"strconv"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// inheritedDir is where a fork has the segments of the logs that it goes on from, each
// log in a folder with its number, from 1.
const inheritedDir = "inherited"

func inheritedLog(k int) string { return inheritedDir + "/" + strconv.Itoa(k+1) }

// An appendedOne is a message or an event.
type appendedOne struct {
	object  json.RawMessage
	message session.Message // that it is
	// at is what the session has up to here: of its own log nothing where Seq is 0.
	at session.Mark
}

// readAppended returns the messages of a session up to a Mark, or the events of its
// transcript: the inherited ones, then those of its own log. What is lost comes as an
// error that wraps ErrDamaged, by the numbers that are missing.
func readAppended(dir writer.FS, to session.Mark, events bool) iter.Seq2[appendedOne, error] {
	return func(yield func(appendedOne, error) bool) {
		r := &appendedReader{events: events, what: "message", yield: yield}
		if events {
			r.what = "event"
		}
		for k, upto := range to.Inherits {
			r.at = session.Mark{Inherits: to.Inherits[: k+1 : k+1]}
			sub, err := openDir(dir, inheritedLog(k))
			if errors.Is(err, fs.ErrNotExist) {
				r.place = inheritedLog(k) + " is missing" // what stood there shows by the numbers
				continue
			}
			if err == nil {
				err = r.log(sub, upto, func(at *session.Mark, seq uint64) {
					at.Inherits = append(at.Inherits[:k:k], seq)
				})
				_ = sub.Close()
			}
			if err != nil {
				r.fail(err)
				return
			}
		}
		r.at = session.Mark{Inherits: to.Inherits}
		if err := r.log(dir, to.Seq, func(at *session.Mark, seq uint64) { at.Seq = seq }); err != nil {
			r.fail(err)
			return
		}
		r.missing(r.count(&to))
	}
}

// An appendedReader yields what logs have.
type appendedReader struct {
	events bool
	what   string
	yield  func(appendedOne, error) bool
	at     session.Mark
	last   uint64 // number of the last one
	place  string // of the first damage behind it
}

// errEnough ends the reading.
var errEnough = errors.New("enough")

func (r *appendedReader) fail(err error) {
	if !errors.Is(err, errEnough) {
		r.yield(appendedOne{}, err)
	}
}

// log yields what one log has up to a record. What a writer wrote again meanwhile is read
// there.
func (r *appendedReader) log(dir writer.FS, upto uint64, at func(*session.Mark, uint64)) (err error) {
	done := uint64(0)
	for range readTries {
		if err = r.parts(dir, &done, upto, at); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func (r *appendedReader) parts(dir writer.FS, done *uint64, upto uint64, at func(*session.Mark, uint64)) error {
	if *done >= upto {
		return nil
	}
	next := *done + 1
	for part, err := range journal.Parts(dir) {
		if err != nil {
			return err
		}
		if n := len(part.Records); n > 0 {
			if first := part.Records[0].Seq; len(part.Faults) == 0 && first > next && first <= upto {
				r.damaged(dir, journal.Fault{Kind: journal.Damaged, Segment: part.Segment, Seq: next, Before: true})
			}
			next = part.Records[n-1].Seq + 1
		}
		var refs []journal.Ref
		for _, ref := range part.Above(*done) {
			if ref.Entry && ref.Seq <= upto {
				refs = append(refs, ref)
			}
		}
		faults := part.Faults
		err = part.Lines(refs, func(ref *journal.Ref, line []byte) error {
			for ; len(faults) > 0 && faults[0].Seq <= ref.Seq; faults = faults[1:] {
				r.damaged(dir, faults[0])
			}
			*done = ref.Seq
			rec, err := session.DecodeRecord(line)
			if err != nil {
				r.damaged(dir, journal.Fault{Kind: journal.Damaged, Segment: ref.Segment(), Offset: ref.Offset, Length: ref.Length, Seq: ref.Seq})
				return nil
			}
			r.at.Messages, r.at.Transcript = rec.Messages, rec.Transcript
			at(&r.at, ref.Seq)
			return r.record(&rec)
		})
		if err != nil {
			return err
		}
		for _, f := range faults {
			if f.Seq <= upto {
				r.damaged(dir, f)
			}
		}
	}
	return nil
}

// damaged notes the first place behind the last one.
func (r *appendedReader) damaged(dir writer.FS, f journal.Fault) {
	if r.place == "" && f.Kind == journal.Damaged {
		r.place = filepath.Join(dir.Name(), f.String())
	}
}

func (r *appendedReader) record(rec *session.Record) error {
	a := appendedOne{object: rec.Message, at: r.at}
	if r.events {
		a.object = rec.TranscriptEvent
	}
	n := r.count(&r.at)
	switch {
	case a.object == nil || n <= r.last:
		return nil
	case !r.missing(n - 1):
		return errEnough
	}
	r.last, r.place = n, ""
	err := strictjson.Check(a.object)
	if err != nil {
		a.object, err = nil, fmt.Errorf("%s %d is %w", r.what, n, ErrDamaged)
	} else if !r.events {
		if a.message, err = session.DecodeMessage(a.object); err != nil {
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

// missing reports those up to a number that are not there.
func (r *appendedReader) missing(upto uint64) bool {
	if r.last >= upto {
		return true
	}
	if r.place == "" {
		r.place = "the log does not have them"
	}
	err := fmt.Errorf("the %ss %d to %d are %w: %s", r.what, r.last+1, upto, ErrDamaged, r.place)
	r.last, r.place = upto, ""
	return r.yield(appendedOne{}, err)
}
