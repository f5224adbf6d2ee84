package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// maxFile bounds what is read into memory of one state or metrics file.
const maxFile = 1 << 30

// large is the size in bytes from which on a file with a wrong checksum is not
// looked into any further, for showing what somebody edited.
const large = 64 << 20

// loaded is a session as its files have it.
type loaded struct {
	state *session.State
	at    session.Mark
	log   *journal.Log
	// base is the record that both snapshots cover: those above it were applied.
	base journal.Position
	// shown are the records that state.json and metrics.json are of.
	shown, metrics session.Mark
	version        int64             // of the older one of them
	found          []session.Finding // of the files; the State has its own
	edited         error             // says that one was edited outside; nil if not
}

// join puts the snapshots of a session's folder and the records above them together.
// It takes no lock and changes nothing. What was edited outside is taken as it is, and
// said.
func join(dir writer.FS, id session.ID) (*loaded, error) {
	r, edited := snapshots(dir)
	if edited != nil && !errors.Is(edited, session.ErrChecksum) {
		return nil, edited
	}
	if err := session.CheckFolder(r.ID(), id); err != nil {
		return nil, err
	}
	kept, err := history.IDs(dir) // before the journal, which a writer may go on with
	if err != nil {
		return nil, err
	}
	version, found := r.Version(), r.Findings()
	shown, metrics := r.At(), r.Metrics()
	base := min(shown.Seq, metrics.Seq)
	log, err := journal.Read(dir, base, false)
	if err != nil {
		return nil, err
	}
	if !log.Holds(shown.Epoch, shown.Seq) || !log.Holds(metrics.Epoch, metrics.Seq) {
		// A writer that had lost the session wrote them: the journal alone tells.
		r, base, shown, metrics = &session.Replay{}, 0, session.Mark{}, session.Mark{}
		if log, err = journal.Read(dir, 0, false); err != nil {
			return nil, err
		}
	}
	if err := replay(dir, id, r, log, base); err != nil {
		return nil, err
	}
	st, at, err := r.State(id)
	if err != nil {
		return nil, err
	}
	if err := ends(dir, log, at.Seq, kept); err != nil {
		return nil, err
	}
	epoch := shown.Epoch
	if metrics.Seq < shown.Seq {
		epoch = metrics.Epoch
	}
	return &loaded{state: st, at: at, log: log, base: journal.Position{Epoch: epoch, Seq: base}, shown: shown, metrics: metrics,
		version: version, found: found, edited: edited}, nil
}

// joinHeld is join for who holds the session's lease: a damaged session is moved aside.
// One that was edited outside is an error unless it is to be taken as it is.
func (s *Store) joinHeld(dir writer.FS, id session.ID, lease *writer.Lock, edited bool) (*loaded, error) {
	ld, err := join(dir, id)
	if err == nil && ld.edited != nil && !edited {
		err = ld.edited
	}
	if err != nil {
		return nil, s.setAside(id, lease, unreadable("load session", dir.Name(), err))
	}
	return ld, nil
}

// ends says whether the journal is as long as the snapshots beside it know it to
// have been.
func ends(dir writer.FS, log *journal.Log, last uint64, kept []history.ID) error {
	for _, id := range slices.Backward(kept) {
		if id.Seq <= last {
			break
		}
		if m, err := history.ReadManifest(dir, id); err == nil && m.Durable() > last && log.Holds(id.Epoch, id.Seq) {
			return fmt.Errorf("%w: the journal ends at record %d, and %s is of a later one", session.ErrCorrupt, last, history.Path(dir, id))
		}
	}
	return nil
}

// findings are the rules that files and State break; none is critical.
func (ld *loaded) findings() []session.Finding { return append(ld.found, session.Check(ld.state)...) }

// asWritten is what a newer version's state.json says, as far as it is known here,
// without the records that its writer may have added.
func asWritten(dir writer.FS, id session.ID) (*session.State, session.Mark, error) {
	r, err := snapshots(dir)
	if r == nil || r.ID() != id {
		return nil, session.Mark{}, err
	}
	r.Level()
	return r.State(id)
}

// snapshots reads state.json and metrics.json. The error is that of
// [session.Replay.Load], which may have taken them nevertheless. A large file is taken into memory
// only when its checksum says that it is worth it.
func snapshots(dir writer.FS) (*session.Replay, error) {
	var files [2][]byte
	for i, name := range []string{stateFile, metricsFile} {
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s is missing", session.ErrCorrupt, name)
		}
		if err == nil && info.Mode().IsRegular() && info.Size() > large {
			err = sealed(dir, name)
		}
		if err == nil {
			files[i], err = writer.ReadText(dir, name, maxFile)
		}
		if err != nil {
			return nil, err
		}
	}
	r := &session.Replay{}
	return r, r.Load(files[0], files[1])
}

// sealed reads a file piece by piece and returns nil if its checksum fits.
func sealed(dir writer.FS, name string) error {
	f, _, err := writer.OpenRegular(dir, "read", name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := session.CheckSeal(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// replay applies the records above base.
func replay(dir writer.FS, id session.ID, r *session.Replay, log *journal.Log, base uint64) error {
	if log.Session != "" && log.Session != id.String() {
		return fmt.Errorf("%w: the journal is that of session %s", session.ErrCorrupt, log.Session)
	}
	if log.Lost > 0 {
		return fmt.Errorf("%w: record %d of the journal, which was durable, is missing or damaged%s", session.ErrCorrupt, log.Lost, damage(log))
	}
	return apply(dir, r, log, log.Above(base))
}

// apply does what records say.
func apply(dir writer.FS, r *session.Replay, log *journal.Log, refs []journal.Ref) error {
	return log.Lines(refs, func(_ *journal.Ref, line []byte) error { return applyLine(dir, r, line) })
}

func applyLine(dir writer.FS, r *session.Replay, line []byte) error {
	rec, err := r.Apply(line)
	if err != nil || rec.Snapshot == nil {
		return err
	}
	id := history.ID{Epoch: rec.Epoch, Seq: rec.Seq}
	state, metrics, err := history.Read(dir, id, rec.Snapshot.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", session.ErrCorrupt, history.Path(dir, id))
	}
	if err != nil {
		return err
	}
	return r.Load(state, metrics) // what it covers of later records comes after it once more
}

// damage names the first places of a log that are damaged.
func damage(log *journal.Log) (s string) {
	n := 0
	for _, f := range log.Faults {
		if f.Kind == journal.Damaged {
			if n++; n <= maxNamed {
				s += "; " + f.String()
			}
		}
	}
	if n > maxNamed {
		s += fmt.Sprintf("; and %d more places", n-maxNamed)
	}
	return s
}

// unreadable gives what is wrong with a session's files its class.
func unreadable(op, path string, err error) error {
	var e *Error
	class := writer.ClassCorrupt
	switch {
	case errors.Is(err, session.ErrFutureVersion), errors.Is(err, writer.ErrFutureVersion):
		class = writer.ClassFutureVersion
	case errors.As(err, &e) && e.Class != writer.ClassInvalid:
		return err // reading failed, which says nothing of the content, or it has its class
	}
	return &Error{Op: op, Path: filepath.Clean(path), Class: class, Err: err}
}
