package repair

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/process"
)

// Condition is the condition of a session's files as a whole.
type Condition string

// The conditions, from good to bad.
const (
	// Intact means that every record and both readable files are intact.
	Intact Condition = "intact"
	// Torn means that the journal ends in bytes that were never acknowledged, or that a
	// readable file is incomplete, as a crash leaves them. Nothing is lost: the next run
	// ignores the bytes and writes the file again.
	Torn Condition = "torn"
	// Flawed means that the session is usable, but a rule is broken that is not critical, a
	// small file is damaged, or a part of the journal is damaged of which there is a copy:
	// the list of segments, or a first line.
	Flawed Condition = "flawed"
	// HistoryDamaged means that a snapshot is damaged, or a record at or below a State that
	// the journal vouches for. The session is whole; its history has a gap.
	HistoryDamaged Condition = "history-damaged"
	// Edited means that the files are well-formed and were edited outside. The session is
	// shown, and cannot be opened for writing until a person accepts or discards the edit.
	Edited Condition = "edited"
	// Unreadable means that reading failed, or that a newer lopen wrote the session.
	Unreadable Condition = "unreadable"
	// Corrupt means that the session cannot be opened.
	Corrupt Condition = "corrupt"
)

// A Report is the result of Verify for one session. Its readers must not change it.
type Report struct {
	ID        session.ID
	Condition Condition
	Err       error // why it is unreadable or corrupt
	Seq       uint64
	Shown     uint64 // the record of state.json
	Records   int    // number of intact records that count
	Bytes     int64  // size of these records
	Faults    []Fault
	Rules     []session.Finding // broken rules
	Leftovers []string          // texts about what a crash left
	Blobs     int               // number of blobs that were read
	Unread    int               // number of contents of files that were not
	Holder    *writer.Owner
	Status    session.Status     // see [session.Status.Seen]; "" if it cannot be read
	Origin    session.Origin     // what made it; that of a run if it cannot be read
	Rewind    *session.Rewinding // begun and not finished, while nobody holds the session; it is among the Leftovers
	Orphan    *process.Orphan    // a command that outlived its loop; it is among the Leftovers

	RequiresValidation bool // the session was recovered and not accepted yet

	checkpoint string // the session's newest checkpoint
}

// A Fault is a damaged or incomplete place in a session's files.
type Fault struct {
	File    string `json:"file"`
	Offset  int64  `json:"offset"` // in bytes
	Length  int64  `json:"length"`
	Seq     uint64 `json:"seq"`               // the first record that the fault makes missing; 0 in a readable file
	Kind    string `json:"kind"`              // torn, settled (torn once, and dealt with) or damaged
	Problem string `json:"problem,omitempty"` // what is wrong, where more is known
}

func (f Fault) String() string {
	if f.Problem != "" {
		return fmt.Sprintf("%s: %s: %s", f.File, f.Kind, f.Problem)
	}
	return fmt.Sprintf("%s: %d bytes from %d on are %s (record %d)", f.File, f.Length, f.Offset, f.Kind, f.Seq)
}

// A Subject is a session that Verify checks.
type Subject struct {
	ID     session.ID
	Dir    writer.FS
	Holder *writer.Owner // nil if the session is not held
	Others []File        // small files that the session may have
	// Loaded is the session as it was loaded, where its readable files were just made of that.
	// With nil Verify loads it.
	Loaded *folder.Contents
}

// A File is a small file of a session. When it is damaged the session is still usable.
type File struct {
	Name  string
	Check func(dir writer.FS) error // returns fs.ErrNotExist if there is no such file
}

// Verify reads all files of a session, without a lock, and changes nothing. While a writer is
// live the end of the log may look torn for a moment. [Report.CheckChain] adds the check of
// the checkpoints that the session needs.
func Verify(s Subject) Report {
	r := Report{ID: s.ID, Holder: s.Holder, Condition: Intact}
	ld := r.state(&s)
	r.history(s.Dir)
	for _, f := range s.Others {
		if err := f.Check(s.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.damaged(f.Name, err)
		}
	}
	if ld != nil {
		r.conversation(s.Dir, ld.At)
	}
	if ld != nil && s.Holder == nil { // a holder may be writing them
		r.copies(s.Dir, ld.At)
	}
	if s.Holder == nil {
		r.Leftovers = leftovers(s.Dir, ld)
		r.orphan(s.Dir)
		if ld != nil {
			r.rewind(ld.At.Rewinding)
		}
	}
	log, err := journal.Read(s.Dir, 0, true)
	if err == nil {
		r.places(log)
		r.gaps(log)
		err = r.records(s.Dir, log)
	}
	if err != nil {
		r.worse(Unreadable)
		r.Err = cmp.Or(r.Err, err)
	}
	return r
}

// state loads the session and sets the condition. It returns nil if the session cannot be
// loaded.
func (r *Report) state(s *Subject) (ld *folder.Contents) {
	var err error
	if ld = s.Loaded; ld == nil {
		ld, err = folder.Load(s.Dir, r.ID)
	}
	if err == nil {
		st := ld.State
		r.Seq, r.Shown, r.checkpoint = ld.At.Seq, ld.Named[0].Seq, ld.At.Checkpoint
		for _, x := range ld.Stale {
			r.fault(Fault{File: x.Name, Kind: journal.Torn.String(), Problem: x.Err.Error()})
		}
		r.Rules = ld.Findings()
		r.RequiresValidation, r.Origin = st.Header().RequiresValidation, st.Header().Origin
		r.Status = st.Status().Seen(r.Holder != nil)
		err = ld.Edited()
	}
	if err != nil {
		r.Err = err
		switch {
		case errors.Is(err, session.ErrEdited):
			r.Condition = Edited
		case errors.Is(err, envelope.ErrCorrupt):
			r.Condition = Corrupt
		default:
			r.Condition = Unreadable
		}
		if f, ok := session.FindingOf(err); ok {
			r.Rules = append(r.Rules, f)
		}
	}
	for _, f := range r.Rules {
		if f.Severity != session.SeverityWarning {
			r.worse(Flawed)
		}
	}
	return ld
}

// places adds the faults of the log.
func (r *Report) places(log *journal.Log) {
	for _, f := range log.Faults {
		if f.Seq == 0 { // no record is lost
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
}

// gaps adds a fault for missing records that no fault of the log covers: those of a segment with a damaged
// header are not among these.
func (r *Report) gaps(log *journal.Log) {
	known := slices.Clone(r.Faults)
	for _, g := range log.Gaps() {
		if !slices.ContainsFunc(known, func(f Fault) bool { return f.Kind == journal.Damaged.String() && g.Has(f.Seq) }) {
			r.fault(Fault{File: "journal", Seq: g.First, Kind: journal.Damaged.String(), Problem: g.String()})
		}
	}
}

// records reads every record that counts, and the snapshots that they name.
func (r *Report) records(dir writer.FS, log *journal.Log) error {
	r.Records = len(log.Records)
	return log.Lines(log.Records, func(ref *journal.Ref, line []byte) error {
		r.Bytes += ref.Length
		rec, err := wire.DecodeRecord(line)
		if err == nil && rec.Snapshot != nil {
			_, _, err = history.Read(dir, history.ID{Epoch: rec.Epoch, Seq: rec.Seq}, rec.Snapshot.SHA256)
		}
		if err != nil {
			r.fault(Fault{File: ref.Segment(), Offset: ref.Offset, Length: ref.Length, Seq: ref.Seq, Kind: "damaged", Problem: err.Error()})
		}
		return nil
	})
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

// history reads the snapshots and adds damaged ones to the report.
func (r *Report) history(dir writer.FS) {
	all, unread, err := history.List(dir)
	if err != nil {
		r.damaged(history.Dir, err)
	}
	for _, m := range all {
		if _, _, err := history.Read(dir, m.ID(), m.SHA256); err != nil {
			unread = append(unread, history.Unread{ID: m.ID(), Err: err})
		}
	}
	for _, u := range unread {
		r.Faults = append(r.Faults, Fault{File: history.File(dir, u.ID), Seq: u.ID.Seq, Kind: "damaged", Problem: u.Err.Error()})
		r.worse(HistoryDamaged)
	}
}

// conversation reads the messages and the transcript, and adds lost ones to the report. The
// session stays usable without them.
func (r *Report) conversation(dir writer.FS, at session.Mark) {
	for i, what := range []string{"messages", "transcript"} {
		for _, err := range folder.ReadAppended(dir, at, i == 1) {
			if err != nil {
				r.damaged(what, err)
			}
		}
	}
}

// copies compares the readable copies with the log. A copy with other content is torn: the next
// publication quarantines it and makes it again.
func (r *Report) copies(dir writer.FS, at session.Mark) {
	commit.CompareCopies(dir, at, func(name string, why error) {
		r.fault(Fault{File: name, Kind: journal.Torn.String(), Problem: why.Error()})
	})
}

func (r *Report) damaged(name string, err error) {
	r.Faults = append(r.Faults, Fault{File: name, Kind: "damaged", Problem: err.Error()})
	r.worse(Flawed)
}
