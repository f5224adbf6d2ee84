package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
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
	// Torn: the journal ends in bytes that were never acknowledged, as a crash
	// leaves them. Nothing is lost; the next run goes on without them.
	Torn Condition = "torn"
	// Flawed: the session is usable; a rule is broken that is not critical, or a
	// file beside the session's own is damaged.
	Flawed Condition = "flawed"
	// HistoryDamaged: damage at or below the readable files. The session is
	// whole, its log has a hole.
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
		r.Seq, r.Shown, r.checkpoint = ld.at.Seq, ld.shown.Seq, ld.at.Checkpoint
		r.Rules = ld.findings()
		r.RequiresValidation = st.Header().RequiresValidation
		r.Status = st.Status().Seen(holder != nil)
		err = ld.edited
	}
	if err != nil {
		r.Err = unreadable("load session", dir.Name(), err)
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
		r.streams(dir, ld.at)
	}
	if holder == nil {
		r.Leftovers = leftovers(dir, st)
		r.orphan(dir)
	}
	base := uint64(0)
	if ld != nil {
		base = ld.base.Seq
	}
	log, err := journal.Read(dir, base, true)
	if err != nil {
		r.worse(Unreadable)
		r.Err = cmp.Or(r.Err, err)
		return r
	}
	for _, f := range log.Faults {
		r.fault(Fault{File: f.Segment, Offset: f.Offset, Length: f.Length, Seq: f.Seq, Kind: f.Kind.String()})
	}
	if ld != nil && ld.base.Epoch > 0 && log.Last() < ld.base.Seq {
		r.fault(Fault{File: "journal", Seq: log.Last() + 1, Kind: "damaged", Problem: fmt.Sprintf("the records %d to %d are not there", log.Last()+1, ld.base.Seq)})
	}
	if first := log.LostBegin(); first > 0 && !slices.ContainsFunc(r.Faults, func(f Fault) bool { return f.Kind == "damaged" && f.Seq < first }) {
		r.fault(Fault{File: "journal", Seq: 1, Kind: "damaged", Problem: fmt.Sprintf("the records before %d are not there", first)})
	}
	var told []uint64
	for _, f := range r.Faults {
		if f.Kind == "damaged" {
			told = append(told, f.Seq)
		}
	}
	slices.Sort(told)
	for i := 1; i < len(log.Records); i++ { // of a segment whose header is damaged nothing counts
		first, next := log.Records[i-1].Seq+1, log.Records[i].Seq
		if at, _ := slices.BinarySearch(told, first); first < next && (at == len(told) || told[at] >= next) {
			r.fault(Fault{File: "journal", Seq: first, Kind: "damaged", Problem: fmt.Sprintf("the records %d to %d are not there", first, next-1)})
		}
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
	for _, each := range conditions {
		if each == r.Condition { // at least as good as c
			r.Condition = c
			return
		}
		if each == c {
			return
		}
	}
}

// Log calls fn with every record of a session's journal above a number that is
// whole, oldest first, without a lock. An error of fn ends it and is returned.
func (s *Store) Log(id session.ID, above uint64, fn func(session.Record) error) error {
	dir, err := s.sessionDir(id)
	if err != nil {
		return fmt.Errorf("log of session %s: %w", id, err)
	}
	defer dir.Close()
	base, all := above, false
	if above == 0 {
		all = true
		if r, err := snapshots(dir); err == nil {
			base = min(r.At().Seq, r.Metrics().Seq)
		}
	}
	log, err := journal.Read(dir, base, all)
	if err != nil {
		return fmt.Errorf("log of session %s: %w", id, err)
	}
	return log.Lines(log.Above(above), func(_ *journal.Ref, line []byte) error {
		rec, err := session.DecodeRecord(line)
		if err != nil {
			return unreadable("read journal", dir.Name(), err)
		}
		return fn(rec)
	})
}

// watchEvery is how often Watch looks whether the journal has grown.
const watchEvery = 250 * time.Millisecond

// Watch is Log, and goes on with each record that is appended until ctx ends or
// fn returns an error. A record may be seen before it is durable.
func (s *Store) Watch(ctx context.Context, id session.ID, above uint64, fn func(session.Record) error) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	seen := int64(-1)
	for {
		if size := s.journalSize(id); size != seen {
			seen = size
			err := s.Log(id, above, func(r session.Record) error {
				above = r.Seq
				return fn(r)
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a segment may have been dropped meanwhile
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// journalSize changes whenever the journal does.
func (s *Store) journalSize(id session.ID) (n int64) {
	dir := sessionsDir + "/" + id.String()
	entries, err := s.root().ReadDir(dir)
	if err != nil {
		return -2
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "journal-") {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
	}
	return n
}
