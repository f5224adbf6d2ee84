package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// maxFile bounds what is read into memory of one state or metrics file.
const maxFile = 1 << 30

// loaded is a session as its log has it.
type loaded struct {
	dir   writer.FS // of the session
	state *session.State
	at    session.Mark
	log   *journal.Log
	base  base
	// named are state.json and metrics.json where the log vouches for them: it begins
	// with them, or knows more. The zero value is a file that is to be made again.
	named  [2]journal.Named
	found  []session.Finding // of the files; the State has its own
	spoilt []spoilt
	// edits are the readable files that were edited outside; state is that of the edited
	// files then and unedited that of the log.
	edits    []spoilt
	unedited *session.State
}

// edited says that a readable file was edited outside; nil if not.
func (ld *loaded) edited() error {
	if len(ld.edits) == 0 {
		return nil
	}
	return unreadable("load session", ld.dir.Name(), ld.edits[0].err)
}

// A spoilt is a readable file that is not as a publication left it.
type spoilt struct {
	name string
	err  error
}

// readable are the two files that a publication makes.
var readable = [2]string{stateFile, metricsFile}

// A pair is what state.json and metrics.json hold.
type pair struct {
	data [2][]byte
	sums [2]string       // SHA-256, in hex
	errs [2]error        // why there is none
	r    *session.Replay // of both; nil where they are no States
	used bool            // r is
}

// readPair reads state.json and metrics.json. What is wrong with their content is no
// error, but for a newer version's.
func readPair(dir writer.FS) (*pair, error) {
	p := &pair{}
	for i, name := range readable {
		var err error
		if p.data[i], err = writer.ReadText(dir, name, maxFile); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %s is missing", session.ErrCorrupt, name)
		}
		if err != nil && !damagedOnly(err) {
			return nil, err
		}
		p.errs[i] = err
	}
	if errors.Join(p.errs[:]...) != nil {
		return p, nil
	}
	summed := make(chan struct{})
	go func() { // takes as long as half of the reading
		p.sums = [2]string{sha256Of(p.data[0]), sha256Of(p.data[1])}
		close(summed)
	}()
	r := &session.Replay{}
	err := r.Load(p.data[0], p.data[1])
	<-summed
	if errors.Is(err, session.ErrFutureVersion) {
		return p, err
	}
	if err == nil {
		p.r = r
	}
	return p, nil
}

// base is the State of both files; r is one.
func (p *pair) base() base {
	at := p.r.At()
	if p.r.Metrics().Seq < at.Seq {
		at = p.r.Metrics()
	}
	return base{name: stateFile, at: at, load: func() (*session.Replay, error) {
		if !p.used {
			p.used = true
			return p.r, nil
		}
		r := &session.Replay{}
		return r, r.Load(p.data[0], p.data[1])
	}}
}

// damagedOnly says whether an error is of what a file holds, and not of reading it.
func damagedOnly(err error) bool {
	var e *Error
	return !errors.As(err, &e) || e.Class == writer.ClassCorrupt || e.Class == writer.ClassInvalid
}

// join loads a session. Its log alone says what is true: it may begin with the readable
// files where it vouches for them. It takes no lock and changes nothing. What was
// edited outside is taken as it is, and said. Errors have a class.
func join(dir writer.FS, id session.ID) (*loaded, error) {
	ld, err := joined(dir, id)
	if err != nil {
		return nil, unreadable("load session", dir.Name(), err)
	}
	return ld, nil
}

func joined(dir writer.FS, id session.ID) (*loaded, error) {
	p, err := readPair(dir)
	if err != nil {
		return nil, err
	}
	kept, err := history.IDs(dir) // before the journal, which a writer may go on with
	if err != nil {
		return nil, err
	}
	b := &builder{dir: dir, id: id}
	var got *built
	if p.r != nil {
		if b.log, err = journal.Read(dir, p.base().at.Seq, false); err != nil {
			return nil, err
		}
		if from, ok := b.vouched(p); ok && b.log.Lost == 0 {
			got, err = b.goOn(from, allRecords)
		}
	}
	if got == nil && err == nil {
		if err = b.read(p); err == nil {
			got, err = b.fromNewest(allRecords)
		}
	}
	if err == nil {
		err = got.ended
	}
	if err != nil {
		return nil, err
	}
	if end := b.log.End(); end.Seq > got.at.Seq { // only messages and events are lost
		got.at.Epoch, got.at.Seq = end.Epoch, end.Seq
	}
	if err := ends(dir, b.log, got.at.Seq, kept); err != nil {
		return nil, err
	}
	ld := &loaded{dir: dir, state: got.st, at: got.at, log: b.log, base: got.base, named: b.named}
	if p.r != nil {
		ld.found = p.r.Findings()
	}
	return ld, ld.judge(p)
}

// judge says of the readable files that the log does not vouch for what became of them.
func (ld *loaded) judge(p *pair) error {
	if ld.named[0].File != "" && ld.named[1].File != "" {
		return nil
	}
	id, instead := ld.state.ID(), [2][]byte{session.EncodeState(ld.state, ld.at), session.EncodeMetrics(ld.state, ld.at)}
	edited := p.data
	for i, name := range readable {
		err := p.errs[i]
		if err == nil {
			both := instead
			both[i] = p.data[i]
			r := &session.Replay{}
			err = r.Load(both[0], both[1])
			at := [2]session.Mark{r.At(), r.Metrics()}[i]
			sealed := err == nil
			switch {
			case err != nil && !errors.Is(err, session.ErrChecksum):
			case r.ID() != id || i == 0 && at.Incarnation != ld.at.Incarnation:
				err = fmt.Errorf("%w: it is that of another session", session.ErrCorrupt)
			case !ld.log.Holds(at.Epoch, at.Seq):
				err = fmt.Errorf("%w: a writer that had lost the session wrote it", session.ErrCorrupt)
			case at.Seq > ld.at.Seq && sealed:
				return fmt.Errorf("%w: the journal ends at record %d, and %s is of record %d: what was acknowledged in between is missing", session.ErrCorrupt, ld.at.Seq, name, at.Seq)
			case at.Seq > ld.at.Seq:
				err = fmt.Errorf("%w: it is damaged", session.ErrCorrupt)
			case !sealed:
				ld.edits = append(ld.edits, spoilt{name, fmt.Errorf("%s: %w", name, session.ErrChecksum)})
			}
		}
		if err != nil && !errors.Is(err, session.ErrChecksum) {
			ld.spoilt = append(ld.spoilt, spoilt{name, err})
			edited[i] = instead[i]
		}
	}
	if len(ld.edits) > 0 {
		ld.takeEdit(edited)
	}
	return nil
}

// takeEdit makes the State that of the files as somebody edited them, with the records
// above them. Where these do not fit any more it stays that of the log.
func (ld *loaded) takeEdit(files [2][]byte) {
	ld.unedited = ld.state
	r := &session.Replay{}
	if err := r.Load(files[0], files[1]); err != nil && !errors.Is(err, session.ErrChecksum) {
		return
	}
	found := r.Findings()
	err := ld.log.Lines(ld.log.Above(min(r.At().Seq, r.Metrics().Seq)), func(_ *journal.Ref, line []byte) error { return applyLine(ld.dir, r, line) })
	if err != nil {
		return
	}
	if st, _, err := r.State(ld.state.ID()); err == nil {
		ld.state, ld.found = st, found
	}
}

// joinHeld is join for who holds the session's lease: a damaged session is moved aside.
// One that was edited outside is an error unless it is to be taken as it is.
func (s *Store) joinHeld(dir writer.FS, id session.ID, lease *writer.Lock, edited bool) (*loaded, error) {
	ld, err := join(dir, id)
	if err == nil && !edited {
		err = ld.edited()
	}
	if err != nil {
		return nil, s.setAside(id, lease, err)
	}
	return ld, nil
}

// ends says whether the journal is as long as the snapshots beside it know it to
// have been.
func ends(dir writer.FS, log *journal.Log, last uint64, kept []history.ID) error {
	for i := len(kept) - 1; i >= 0 && kept[i].Seq > last; i-- {
		id := kept[i]
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
	p, err := readPair(dir)
	if p == nil {
		return nil, session.Mark{}, err
	}
	r := &session.Replay{}
	if err := r.Load(p.data[0], p.data[1]); r.ID() != id {
		return nil, session.Mark{}, err
	}
	r.Level()
	return r.State(id)
}

// applyLine does what a record says.
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
