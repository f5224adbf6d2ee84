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

// Contents is a session as its log has it.
type Contents struct {
	Dir   writer.FS // the session's folder
	State *session.State
	At    session.Mark
	Log   *journal.Log // nil for a session of a newer version
	// Named are state.json and metrics.json, if the log vouches for both. The zero value
	// means that a file has to be written again.
	Named [2]journal.Named
	// Stale are the readable files that differ from what a publication wrote.
	Stale []StaleFile
	// Edits are the readable files that were edited outside. Then State is that of the
	// edited files and Unedited that of the log.
	Edits    []StaleFile
	Unedited *session.State

	base  Base
	found []session.Finding // findings of the files; those of the State are not included
}

// Edited returns an error if a readable file was edited outside, else nil.
func (ld *Contents) Edited() error {
	if len(ld.Edits) == 0 {
		return nil
	}
	return Unreadable("load session", ld.Dir.Name(), ld.Edits[0].Err)
}

// A StaleFile is a readable file that differs from what a publication wrote.
type StaleFile struct {
	Name string
	Err  error // how it differs
}

// Load reads a session. Only its log decides what is true; Load begins with the readable
// files if the log vouches for them. It takes no lock and changes nothing. If a file was
// edited outside, Load returns the edited State, and Edits names the file. Errors have a
// class.
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
	snapshots, err := history.IDs(dir) // before the journal: a writer may add both in between
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
	if end := b.Log.End(); end.Seq > got.At.Seq { // only messages and events are lost there
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

// judge finds out why the log does not vouch for the readable files, and sets Stale or Edits.
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

// judgeFile judges file i of two; the other one was made from the log. stale is why the file is
// stale, or ErrEdited if it was edited, or nil. behind excludes the session, because the log
// ends before the file.
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

// Discard gives up the edits: the State becomes that of the log, and the edited files are
// stale.
func (ld *Contents) Discard() {
	if ld.Unedited != nil {
		ld.Stale, ld.State = append(ld.Stale, ld.Edits...), ld.Unedited
	}
}

// Broken reports that the log alone no longer leads to the State, so that its next record has
// to name a snapshot of the whole State.
func (ld *Contents) Broken() bool { return ld.base.At.Seq > 0 && ld.Log.LostAbove(0) > 0 }

// takeEdit replaces the State by that of the edited files with the records above them. If the
// records do not fit the edited files, the State stays that of the log.
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

// ends returns an error if the journal ends before a record that was durable when a snapshot
// in history/ was written.
func ends(dir writer.FS, log *journal.Log, last uint64, snapshots []history.ID) error {
	for i := len(snapshots) - 1; i >= 0 && snapshots[i].Seq > last; i-- {
		id := snapshots[i]
		if m, err := history.ReadManifest(dir, id); err == nil && m.Durable() > last && log.Holds(id.Epoch, id.Seq) {
			return fmt.Errorf("%w: the journal ends at record %d, and %s is of a later one", envelope.ErrCorrupt, last, history.Path(dir, id))
		}
	}
	return nil
}

// Findings returns the rules that the files and the State break. None of them is critical.
func (ld *Contents) Findings() []session.Finding { return append(ld.found, session.Check(ld.State)...) }

// applyLine applies a record, with the snapshot that it names.
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
	return r.Load(state, metrics) // replaces all that was applied before
}

// Unreadable returns err with a class: future-version, or corrupt for damaged content. An error
// of reading has its own class and is returned unchanged.
func Unreadable(op, path string, err error) error {
	var e *writer.Error
	class := writer.ClassCorrupt
	switch {
	case errors.Is(err, envelope.ErrFutureVersion):
		class = writer.ClassFutureVersion
	case errors.As(err, &e) && e.Class != writer.ClassInvalid:
		return err // reading failed, or the error has its class already
	}
	return &writer.Error{Op: op, Path: filepath.Clean(path), Class: class, Err: err}
}

// Look is Load for a caller that only shows the session. With session.ErrEdited it returns the
// edited session, and with ErrFutureVersion the part of the files that this version understands.
// A session must not be resumed from these.
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

// Summary returns what a listing shows of the session.
func (ld *Contents) Summary() (wire.Summary, error) {
	return wire.DecodeSummary(wire.EncodeState(ld.State, ld.At))
}
