package repair

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/process"
)

// Condition is the state of a session's files, as a whole.
type Condition string

// The conditions, from good to bad.
const (
	// Intact: every record and both readable files.
	Intact Condition = "intact"
	// Torn: the journal ends in bytes that were never acknowledged, or a readable file
	// is not whole, as a crash leaves them. Nothing is lost; the next run ignores
	// the bytes and writes the file again.
	Torn Condition = "torn"
	// Flawed: the session is usable; a rule is broken that is not critical, or a
	// small file of the session is damaged, or what the journal has twice: the list of
	// segments, the first line of one.
	Flawed Condition = "flawed"
	// HistoryDamaged: damage at or below a State that the journal vouches for, or to
	// a snapshot. The session is whole, its past has a hole.
	HistoryDamaged Condition = "history-damaged"
	// Edited: well-formed, and edited outside. It is shown, and not opened for
	// writing until somebody accepts or discards the edit.
	Edited Condition = "edited"
	// Unreadable: reading failed, or a newer lopen wrote it.
	Unreadable Condition = "unreadable"
	// Corrupt: the session cannot be opened.
	Corrupt Condition = "corrupt"
)

// A Report is what Verify found of one session. Whoever reads one changes nothing in it.
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
	Holder    *writer.Owner
	Status    session.Status  // see [session.Status.Seen]; "" where it cannot be read
	Orphan    *process.Orphan // the command that outlived its loop; it is among the Leftovers

	RequiresValidation bool // it was recovered, and nobody has accepted it

	checkpoint string // that the session knows the project's files by
}

// A Fault is a place in a session's files where something is not as it was written.
type Fault struct {
	File    string `json:"file"`
	Offset  int64  `json:"offset"` // in bytes
	Length  int64  `json:"length"`
	Seq     uint64 `json:"seq"`               // the first record that is missing for it; 0 for a readable file
	Kind    string `json:"kind"`              // torn, settled (torn once, and dealt with) or damaged
	Problem string `json:"problem,omitempty"` // what is wrong, where more is known
}

func (f Fault) String() string {
	if f.Problem != "" {
		return fmt.Sprintf("%s: %s: %s", f.File, f.Kind, f.Problem)
	}
	return fmt.Sprintf("%s: %d bytes from %d on are %s (record %d)", f.File, f.Length, f.Offset, f.Kind, f.Seq)
}

// A Subject is a session's folder and what is known of it.
type Subject struct {
	ID     session.ID
	Dir    writer.FS
	Holder *writer.Owner // nil for nobody
	Others []File        // small files that the session may have
}

// A File is a small file of a session, whose damage costs just what it is for.
type File struct {
	Name  string
	Check func(dir writer.FS) error // fs.ErrNotExist where there is none
}

// Verify reads everything that a session has, without a lock, and changes nothing. While a
// writer is live the end of the log may look torn for a moment. What of the project's
// checkpoints the session needs is added by [Report.CheckChain].
func Verify(s Subject) Report {
	r := Report{ID: s.ID, Holder: s.Holder, Condition: Intact}
	ld := r.state(s.Dir)
	r.history(s.Dir)
	for _, f := range s.Others {
		if err := f.Check(s.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.damaged(f.Name, err)
		}
	}
	if ld != nil {
		r.conversation(s.Dir, ld.At)
	}
	if ld != nil && s.Holder == nil { // or the holder may just have written to them
		r.copies(s.Dir, ld.At)
	}
	if s.Holder == nil {
		r.Leftovers = leftovers(s.Dir, ld)
		r.orphan(s.Dir)
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

// state loads the session and judges its condition by that; nil where it cannot be loaded.
func (r *Report) state(dir writer.FS) *folder.Contents {
	ld, err := folder.Load(dir, r.ID)
	if err == nil {
		st := ld.State
		r.Seq, r.Shown, r.checkpoint = ld.At.Seq, ld.Named[0].Seq, ld.At.Checkpoint
		for _, x := range ld.Stale {
			r.fault(Fault{File: x.Name, Kind: journal.Torn.String(), Problem: x.Err.Error()})
		}
		r.Rules = ld.Findings()
		r.RequiresValidation = st.Header().RequiresValidation
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

// places notes what the log's reader found.
func (r *Report) places(log *journal.Log) {
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
}

// gaps notes the missing records that no place names.
func (r *Report) gaps(log *journal.Log) {
	var known []uint64
	for _, f := range r.Faults {
		if f.Kind == "damaged" {
			known = append(known, f.Seq)
		}
	}
	slices.Sort(known)
	first := log.Begin()
	for i := range log.Records { // of a segment whose header is damaged nothing counts
		next := log.Records[i].Seq
		if at, _ := slices.BinarySearch(known, first); first < next && (at == len(known) || known[at] >= next) {
			r.fault(Fault{File: "journal", Seq: first, Kind: "damaged", Problem: fmt.Sprintf("the records %d to %d are not there", first, next-1)})
		}
		first = max(first, next+1)
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
