package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// Condition is what a session's files are in.
type Condition string

// The conditions, from good to bad.
const (
	// Intact: every record and both readable files.
	Intact Condition = "intact"
	// Torn: the journal ends in bytes that were never acknowledged, or a readable file
	// is not whole, as a crash leaves them. Nothing is lost; the next run goes on without
	// the one and makes the other again.
	Torn Condition = "torn"
	// Flawed: the session is usable; a rule is broken that is not critical, or a
	// file beside the session's own is damaged, or what the journal has twice: the list of
	// segments, the first line of one.
	Flawed Condition = "flawed"
	// HistoryDamaged: damage at or below a State that the journal vouches for, or to
	// a snapshot. The session is whole, its past has a hole.
	HistoryDamaged Condition = "history-damaged"
	// Edited: well-formed, and edited outside. It is shown, and not opened for
	// writing until [Store.AcceptEdit].
	Edited Condition = "edited"
	// Unreadable: reading failed, or a newer lopen wrote it.
	Unreadable Condition = "unreadable"
	// Corrupt: the session cannot be opened.
	Corrupt Condition = "corrupt"
)

// A Report is what Verify found of one session.
type Report struct {
	ID        session.ID
	Condition Condition
	Err       error // why it is unreadable or corrupt
	Seq       uint64
	Shown     uint64 // the record that state.json is of
	Records   int    // of the journal that are whole and count
	Bytes     int64  // of these records
	Faults    []Fault
	Rules     []session.Finding // that are broken
	Leftovers []string          // of a crash, in words
	Blobs     int               // that were read
	Holder    *Owner
	Status    session.Status // see [session.Status.Seen]; "" where it cannot be read
	Orphan    *Orphan        // the command that outlived its loop; it is among the Leftovers

	RequiresValidation bool // it was recovered, and nobody has accepted it

	checkpoint string // that the session knows the project's files by
}

// A Fault is a place in a session's files where something is not as it was written.
type Fault struct {
	File    string
	Offset  int64 // in bytes
	Length  int64
	Seq     uint64 // the first record that is missing for it; 0 for a readable file
	Kind    string // torn, settled (torn once, and dealt with) or damaged
	Problem string // what is wrong, where more is known
}

func (f Fault) String() string {
	if f.Problem != "" {
		return fmt.Sprintf("%s: %s: %s", f.File, f.Kind, f.Problem)
	}
	return fmt.Sprintf("%s: %d bytes from %d on are %s (record %d)", f.File, f.Length, f.Offset, f.Kind, f.Seq)
}

// Verify reads everything that a session has, without a lock, and changes
// nothing. Beside a live writer the end of its journal may look torn for a moment:
// it is read again then. The error is for a session that is not there.
func (s *Store) Verify(id session.ID) (Report, error) {
	r := Report{ID: id}
	dir, err := s.sessionDir(id)
	if err != nil {
		return r, fmt.Errorf("verify session %s: %w", id, err)
	}
	defer dir.Close()
	for range readTries {
		if r.Holder, err = s.Holder(id); err != nil {
			return r, err
		}
		r = verify(dir, id, r.Holder)
		r.chain(s)
		if r.Condition == Intact || r.Holder == nil {
			break
		}
	}
	return r, nil
}

func verify(dir writer.FS, id session.ID, holder *Owner) Report {
	r := Report{ID: id, Holder: holder, Condition: Intact}
	ld, err := join(dir, id)
	var st *session.State
	if err == nil {
		st = ld.state
		r.Seq, r.Shown, r.checkpoint = ld.at.Seq, ld.named[0].Seq, ld.at.Checkpoint
		for _, x := range ld.spoilt {
			r.fault(Fault{File: x.name, Kind: journal.Torn.String(), Problem: x.err.Error()})
		}
		r.Rules = ld.findings()
		r.RequiresValidation = st.Header().RequiresValidation
		r.Status = st.Status().Seen(holder != nil)
		err = ld.edited()
	}
	if err != nil {
		r.Err = err
		switch {
		case errors.Is(err, ErrEdited):
			r.Condition = Edited
		case errors.Is(r.Err, ErrCorrupt):
			r.Condition = Corrupt
		default:
			r.Condition = Unreadable
		}
		if f, ok := session.FindingOf(err); ok {
			r.Rules = append(r.Rules, f)
		}
	}
	for _, f := range r.Rules {
		if f.Rule.Severity != session.SeverityWarning {
			r.worse(Flawed)
		}
	}
	r.beside(dir)
	if ld != nil {
		r.conversation(dir, ld.at)
	}
	if ld != nil && holder == nil { // or he may just have written to them
		r.copies(dir, ld.at)
	}
	if holder == nil {
		r.Leftovers = leftovers(dir, st)
		r.orphan(dir)
	}
	log, err := journal.Read(dir, 0, true)
	if err != nil {
		r.worse(Unreadable)
		r.Err = cmp.Or(r.Err, err)
		return r
	}
	for _, f := range log.Faults {
		if f.Seq == 0 { // no record is lost by it
			r.damaged(f.Segment, errors.New("its first line is damaged; the list of segments has it, and nothing is lost"))
			continue
		}
		problem := ""
		switch {
		case f.Before:
			problem = "what it goes on from is missing"
		case f.Length == 0 && f.Offset > 0:
			problem = fmt.Sprintf("lines are missing at %d", f.Offset)
		case f.Length == 0:
			problem = "it is missing or empty"
		}
		r.fault(Fault{File: f.Segment, Offset: f.Offset, Length: f.Length, Seq: f.Seq, Kind: f.Kind.String(), Problem: problem})
	}
	if log.ListErr != nil {
		if errors.Is(log.ListErr, fs.ErrNotExist) {
			log.ListErr = errors.New("it is missing")
		}
		r.damaged(journal.ListFile, fmt.Errorf("%w; nothing is lost by it, and the next run makes it again", log.ListErr))
	}
	var told []uint64
	for _, f := range r.Faults {
		if f.Kind == "damaged" {
			told = append(told, f.Seq)
		}
	}
	slices.Sort(told)
	first := log.Begin()
	for i := range log.Records { // of a segment whose header is damaged nothing counts
		next := log.Records[i].Seq
		if at, _ := slices.BinarySearch(told, first); first < next && (at == len(told) || told[at] >= next) {
			r.fault(Fault{File: "journal", Seq: first, Kind: "damaged", Problem: fmt.Sprintf("the records %d to %d are not there", first, next-1)})
		}
		first = max(first, next+1)
	}
	r.Records = len(log.Records)
	err = log.Lines(log.Records, func(ref *journal.Ref, line []byte) error {
		r.Bytes += ref.Length
		rec, err := session.DecodeRecord(line)
		if err == nil && rec.Snapshot != nil {
			_, _, err = history.Read(dir, history.ID{Epoch: rec.Epoch, Seq: rec.Seq}, rec.Snapshot.SHA256)
		}
		if err != nil {
			r.fault(Fault{File: ref.Segment(), Offset: ref.Offset, Length: ref.Length, Seq: ref.Seq, Kind: "damaged", Problem: err.Error()})
		}
		return nil
	})
	if err != nil {
		r.worse(Unreadable)
		r.Err = cmp.Or(r.Err, err)
	}
	return r
}

func (r *Report) fault(f Fault) {
	r.Faults = append(r.Faults, f)
	switch f.Kind {
	case journal.Torn.String():
		r.worse(Torn)
	case journal.Damaged.String():
		r.worse(HistoryDamaged)
	}
}

var conditions = []Condition{Intact, Torn, Flawed, HistoryDamaged, Edited, Unreadable, Corrupt}

func (r *Report) worse(c Condition) {
	if slices.Index(conditions, c) > slices.Index(conditions, r.Condition) {
		r.Condition = c
	}
}

// Log calls fn with every record of a session's journal above a number that is
// whole, oldest first, without a lock. An error of fn ends it and is returned.
func (s *Store) Log(id session.ID, above uint64, fn func(session.Record) error) error {
	_, err := s.logAbove(id, above, fn)
	return err
}

// logAbove is Log, and says how far the journal went.
func (s *Store) logAbove(id session.ID, above uint64, fn func(session.Record) error) (journal.Extent, error) {
	return within(s, "log of", id, func(dir writer.FS) (far journal.Extent, err error) {
		log, err := journal.Read(dir, above, above == 0)
		if err != nil {
			return far, fmt.Errorf("log of session %s: %w", id, err)
		}
		return log.Extent(), log.Lines(log.Above(above), func(_ *journal.Ref, line []byte) error {
			rec, err := session.DecodeRecord(line)
			if err != nil {
				return unreadable("read journal", dir.Name(), err)
			}
			return fn(rec)
		})
	})
}

// watchEvery is how often Watch looks whether the journal has grown.
const watchEvery = 250 * time.Millisecond

// Watch is Log, and goes on with each record that is appended until ctx ends or
// fn returns an error. A record may be seen before it is durable.
func (s *Store) Watch(ctx context.Context, id session.ID, above uint64, fn func(session.Record) error) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var seen journal.Extent
	grown := func(dir writer.FS) (bool, error) { return journal.Grown(dir, seen), nil }
	for {
		if is, err := within(s, "log of", id, grown); is || err != nil { // reading it says why
			far, err := s.logAbove(id, above, func(r session.Record) error {
				above = r.Seq
				return fn(r)
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a segment may have been dropped meanwhile
				return err
			}
			seen = far
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
