package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
)

// Contents are a session as its log has it.
type Contents struct {
	Dir   writer.FS // the session's folder
	State *session.State
	At    session.Mark
	Log   *journal.Log // nil where a newer version wrote the session
	// Named are state.json and metrics.json where the log vouches for them: it begins
	// with them, or knows more. The zero value is a file that is to be made again.
	Named [2]journal.Named
	// Stale are the readable files that are not as a publication left them.
	Stale []StaleFile
	// Edits are the readable files that were edited outside; State is that of the edited
	// files then and Unedited that of the log.
	Edits    []StaleFile
	Unedited *session.State

	base  Base
	found []session.Finding // of the files; the State has its own
}

// Edited says that a readable file was edited outside; nil if not.
func (ld *Contents) Edited() error {
	if len(ld.Edits) == 0 {
		return nil
	}
	return Unreadable("load session", ld.Dir.Name(), ld.Edits[0].Err)
}

// A StaleFile is a readable file that is not as a publication left it.
type StaleFile struct {
	Name string
	Err  error // why
}

// Load reads a session. Its log alone says what is true: it may begin with the readable
// files where it vouches for them. It takes no lock and changes nothing. What was
// edited outside is taken as it is, and Edits name it. Errors have a class.
func Load(dir writer.FS, id session.ID) (*Contents, error) {
	ld, err := load(dir, id)
	if err != nil {
		return nil, Unreadable("load session", dir.Name(), err)
	}
	return ld, nil
}

func load(dir writer.FS, id session.ID) (*Contents, error) {
	p, err := ReadFiles(dir)
	if err != nil {
		return nil, err
	}
	snapshots, err := history.IDs(dir) // before the journal, to which a writer may append
	if err != nil {
		return nil, err
	}
	b := &Builder{Dir: dir, ID: id}
	var got *Built
	if p.replay != nil {
		if b.Log, err = journal.Read(dir, p.Base().At.Seq, false); err != nil {
			return nil, err
		}
		if from, ok := b.vouched(p); ok && b.Log.Lost == 0 {
			got, err = b.Replay(from, AllRecords)
		}
	}
	if got == nil && err == nil {
		if err = b.Read(p); err == nil {
			got, err = b.Newest(AllRecords)
		}
	}
	if err == nil {
		err = got.Ended
	}
	if err != nil {
		return nil, err
	}
	if end := b.Log.End(); end.Seq > got.At.Seq { // only messages and events are lost
		got.At.Epoch, got.At.Seq = end.Epoch, end.Seq
	}
	if err := ends(dir, b.Log, got.At.Seq, snapshots); err != nil {
		return nil, err
	}
	ld := &Contents{Dir: dir, State: got.State, At: got.At, Log: b.Log, Named: b.Named, base: got.Base}
	if p.replay != nil {
		ld.found = p.replay.Findings()
	}
	return ld, ld.judge(p)
}

// judge says of the readable files that the log does not vouch for what became of them.
func (ld *Contents) judge(p *Files) error {
	if ld.Named[0].File != "" && ld.Named[1].File != "" {
		return nil
	}
	instead := [2][]byte{wire.EncodeState(ld.State, ld.At), wire.EncodeMetrics(ld.State, ld.At)}
	edited := p.data
	for i, name := range Readable {
		err := p.errs[i]
		if err == nil {
			both := instead
			both[i] = p.data[i]
			var behind error
			if err, behind = ld.judgeFile(i, both); behind != nil {
				return behind
			}
		}
		switch {
		case errors.Is(err, session.ErrEdited):
			ld.Edits = append(ld.Edits, StaleFile{name, fmt.Errorf("%s: %w", name, session.ErrEdited)})
		case err != nil:
			ld.Stale = append(ld.Stale, StaleFile{name, err})
			edited[i] = instead[i]
		}
	}
	if len(ld.Edits) > 0 {
		ld.takeEdit(edited)
	}
	return nil
}

// judgeFile says of one of two files, the other of which the log made, why it is stale, or with
// ErrEdited that it was edited. The second error excludes the session: the log is behind.
func (ld *Contents) judgeFile(i int, files [2][]byte) (stale, behind error) {
	r := &wire.Replay{}
	err := r.Load(files[0], files[1])
	at := [2]session.Mark{r.At(), r.Metrics()}[i]
	switch {
	case err != nil && !errors.Is(err, session.ErrEdited):
		return err, nil
	case r.ID() != ld.State.ID() || i == 0 && at.Incarnation != ld.At.Incarnation:
		return fmt.Errorf("%w: it is that of another session", envelope.ErrCorrupt), nil
	case !ld.Log.Holds(at.Epoch, at.Seq):
		return fmt.Errorf("%w: a writer that had lost the session wrote it", envelope.ErrCorrupt), nil
	case at.Seq > ld.At.Seq && err == nil:
		return nil, fmt.Errorf("%w: the journal ends at record %d, and %s is of record %d: what was acknowledged in between is missing", envelope.ErrCorrupt, ld.At.Seq, Readable[i], at.Seq)
	case at.Seq > ld.At.Seq:
		return fmt.Errorf("%w: it is damaged", envelope.ErrCorrupt), nil
	}
	return err, nil
}

// Discard gives up what was edited outside: the edited files are stale like any other.
func (ld *Contents) Discard() {
	if ld.Unedited != nil {
		ld.Stale, ld.State = append(ld.Stale, ld.Edits...), ld.Unedited
	}
}

// Broken says that the log alone does not lead to the State any more: its next record has
// to name a snapshot of all of it.
func (ld *Contents) Broken() bool { return ld.base.At.Seq > 0 && ld.Log.LostAbove(0) > 0 }

// takeEdit makes the State that of the files as somebody edited them, with the records
// above them. Where these do not fit any more it stays that of the log.
func (ld *Contents) takeEdit(files [2][]byte) {
	ld.Unedited = ld.State
	r := &wire.Replay{}
	if err := r.Load(files[0], files[1]); err != nil && !errors.Is(err, session.ErrEdited) {
		return
	}
	found := r.Findings()
	err := ld.Log.Lines(ld.Log.Above(min(r.At().Seq, r.Metrics().Seq)), func(_ *journal.Ref, line []byte) error { return applyLine(ld.Dir, r, line) })
	if err != nil {
		return
	}
	if st, _, err := r.State(ld.State.ID()); err == nil {
		ld.State, ld.found = st, found
	}
}

// ends says whether the journal is as long as it was when the snapshots in history/ were
// written.
func ends(dir writer.FS, log *journal.Log, last uint64, snapshots []history.ID) error {
	for i := len(snapshots) - 1; i >= 0 && snapshots[i].Seq > last; i-- {
		id := snapshots[i]
		if m, err := history.ReadManifest(dir, id); err == nil && m.Durable() > last && log.Holds(id.Epoch, id.Seq) {
			return fmt.Errorf("%w: the journal ends at record %d, and %s is of a later one", envelope.ErrCorrupt, last, history.Path(dir, id))
		}
	}
	return nil
}

// Findings are the rules that files and State break; none is critical.
func (ld *Contents) Findings() []session.Finding { return append(ld.found, session.Check(ld.State)...) }

// applyLine does what a record says.
func applyLine(dir writer.FS, r *wire.Replay, line []byte) error {
	rec, err := r.Apply(line)
	if err != nil || rec.Snapshot == nil {
		return err
	}
	id := history.ID{Epoch: rec.Epoch, Seq: rec.Seq}
	state, metrics, err := history.Read(dir, id, rec.Snapshot.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", envelope.ErrCorrupt, history.Path(dir, id))
	}
	if err != nil {
		return err
	}
	return r.Load(state, metrics) // what it covers of later records comes after it once more
}

// Unreadable gives what is wrong with a session's files its class.
func Unreadable(op, path string, err error) error {
	var e *writer.Error
	class := writer.ClassCorrupt
	switch {
	case errors.Is(err, envelope.ErrFutureVersion):
		class = writer.ClassFutureVersion
	case errors.As(err, &e) && e.Class != writer.ClassInvalid:
		return err // reading failed, which says nothing of the content, or it has its class
	}
	return &writer.Error{Op: op, Path: filepath.Clean(path), Class: class, Err: err}
}

// Look is Load, and returns with session.ErrEdited what somebody edited, and with ErrFutureVersion
// what a newer version's files show: there is something to look at, and nothing to resume from.
func Look(dir writer.FS, id session.ID) (*Contents, error) {
	ld, err := Load(dir, id)
	if err == nil {
		return ld, ld.Edited()
	}
	if errors.Is(err, envelope.ErrFutureVersion) {
		if st, at, shown := asWritten(dir, id); shown == nil {
			return &Contents{Dir: dir, State: st, At: at}, err
		}
	}
	return nil, err
}

// Summary is what a listing shows of the State.
func (ld *Contents) Summary() (wire.Summary, error) {
	return wire.DecodeSummary(wire.EncodeState(ld.State, ld.At))
}
