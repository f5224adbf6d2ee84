package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// maxFile bounds what is read into memory of one state or metrics file.
const maxFile = 1 << 30

// files is the Committer of one session: its folder, its lease and the
// sequence number of its last commit. Owned by the session's actor once started.
type files struct {
	root  writer.FS // the store's root, from which the lease is looked up
	dir   writer.FS // the session's folder
	lease string    // path of the lease below root
	lock  *writer.Lock

	seq uint64
	// totals are those of the iterations that the durable metrics.json holds, nil
	// when that is not known. Their number alone would not tell a State from one
	// that goes on from an earlier State with other iterations.
	totals *session.Totals
}

// Commit replaces metrics.json, if it changed, and then state.json. A crash in
// between leaves metrics that are ahead; loading cuts them to what the state names.
func (f *files) Commit(b actors.Batch) (actors.Committed, error) {
	if err := f.lock.Check(f.root, f.lease); err != nil {
		return actors.Committed{}, err
	}
	seq, bytes := f.seq+1, 0
	if totals := b.State.Totals(); f.totals == nil || totals != *f.totals {
		f.totals = nil
		data := session.EncodeMetrics(b.State, seq)
		if err := writer.ReplaceFile(f.dir, metricsFile, data, filePerm); err != nil {
			return actors.Committed{}, err
		}
		f.totals = &totals
		bytes += len(data)
	}
	data := session.EncodeState(b.State, seq)
	if err := writer.ReplaceFile(f.dir, stateFile, data, filePerm); err != nil {
		return actors.Committed{}, err
	}
	f.seq = seq
	return actors.Committed{Seq: seq, Bytes: bytes + len(data)}, nil
}

// Recover has nothing to prepare: every replacement begins with a new file.
func (f *files) Recover() error { return nil }

// Close gives the lease back.
func (f *files) Close() error {
	var errs []error
	if f.lock != nil {
		errs = append(errs, f.lock.Unlock())
	}
	if f.dir != nil {
		errs = append(errs, f.dir.Close())
	}
	return errors.Join(errs...)
}

// load reads and joins the two files of a session's folder.
func load(dir writer.FS, id session.ID) (*session.State, uint64, error) {
	state, err := writer.ReadFile(dir, stateFile, maxFile)
	if err != nil {
		return nil, 0, err
	}
	metrics, err := writer.ReadFile(dir, metricsFile, maxFile)
	if err != nil {
		return nil, 0, err
	}
	st, seq, err := session.Decode(state, metrics)
	if err == nil && st.ID() != id {
		err = fmt.Errorf("state.json is that of session %s", st.ID())
	}
	if err != nil {
		return nil, 0, unreadable("load session", dir.Name(), err)
	}
	return st, seq, nil
}

// unreadable gives what is wrong with a session's files its class.
func unreadable(op, path string, err error) error {
	class := writer.ClassCorrupt
	if errors.Is(err, session.ErrFutureVersion) {
		class = writer.ClassFutureVersion
	}
	return &Error{Op: op, Path: path, Class: class, Err: err}
}

// crashed notes on a State that its last holder ended without saying so.
func crashed(st *session.State, now time.Time) (*session.State, error) {
	e := st.Edit()
	h := e.Header()
	h.ExitReason = session.ExitCrashed
	h.UpdatedAt = now
	return e.State()
}
