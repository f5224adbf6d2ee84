package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/journal"
)

// beside reads what a session has beside its state: what is damaged of it costs
// what it is for, and not the session.
func (r *Report) beside(dir writer.FS) {
	all, unread, err := history.ListAll(dir)
	if err != nil {
		r.damaged(history.Dir, err)
	}
	for _, m := range all {
		if _, _, err := history.Read(dir, m.ID(), m.SHA256); err != nil {
			unread = append(unread, history.Unread{ID: m.ID(), Err: err})
		}
	}
	for _, u := range unread {
		r.Faults = append(r.Faults, Fault{File: u.ID.Name(), Seq: u.ID.Seq, Kind: "damaged", Problem: u.Err.Error()})
		r.worse(HistoryDamaged)
	}
	for _, each := range []struct {
		name string
		v    any
	}{{metaFile, &metaJSON{}}, {recoveryFile, &recoveryJSON{}}} {
		if err := readSealed(dir, each.name, each.v); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.damaged(each.name, err)
		}
	}
}

// conversation reads the messages and the transcript: what is lost of them costs just that.
func (r *Report) conversation(dir writer.FS, at session.Mark) {
	for i, what := range []string{"messages", "transcript"} {
		for _, err := range readAppended(dir, at, i == 1) {
			if err != nil {
				r.damaged(what, err)
			}
		}
	}
}

// copies compares the readable copies with the log: what they lack is made up for, and
// what else is in them is set aside.
func (r *Report) copies(dir writer.FS, at session.Mark) {
	for i, name := range copyFiles {
		c := copied{name: name, events: i == 1}
		if _, _, whole, err := c.compare(dir, at); err != nil || !whole {
			r.fault(Fault{File: name, Kind: journal.Torn.String(), Problem: cmp.Or(err, errNotOurs).Error()})
		}
	}
}

func (r *Report) damaged(name string, err error) {
	r.Faults = append(r.Faults, Fault{File: name, Kind: "damaged", Problem: err.Error()})
	r.worse(Flawed)
}

// chain reads the chain of checkpoints, and the trees of those that the session made.
func (r *Report) chain(s *Store) {
	cps, err := s.Checkpoints()
	if errors.Is(err, ErrNotFound) && r.checkpoint == "" {
		return
	}
	if err != nil {
		r.damaged(checkpointsDir, err)
		return
	}
	defer cps.Close()
	all, faults, err := cps.List()
	if err != nil {
		r.damaged(chainFile, err)
		return
	}
	named := func(e *checkpoint.Entry) bool { return e.ID.String() == r.checkpoint }
	dropped := len(all) > 0 && all[0].Number > 1 // the lines of entries that were removed
	if r.checkpoint != "" && !dropped && !slices.ContainsFunc(all, named) {
		r.damaged(chainFile, fmt.Errorf("checkpoint %s is not there, by which the session knows the project's files", short(r.checkpoint)))
	}
	if made := madeBy(all, r.ID); len(made) > 0 || r.checkpoint != "" {
		for _, err := range faults { // any of them may have been of this session
			r.damaged(chainFile, err)
		}
		seen := map[blob.Hash]struct{}{}
		for _, e := range made {
			if err := cps.Objects(e, unseen(seen)); err != nil {
				r.damaged(chainFile, fmt.Errorf("checkpoint %d: %w", e.Number, err))
			}
		}
	}
}

// madeBy are those of some checkpoints that a session made and that were not removed.
func madeBy(all []*checkpoint.Entry, id session.ID) []*checkpoint.Entry {
	return slices.DeleteFunc(all, func(e *checkpoint.Entry) bool { return e.Session != id.String() || e.Removed != "" })
}

const chainFile = checkpointsDir + "/" + checkpoint.MainTree + ".jsonl"

// VerifyData reads every blob that the checkpoints of the session of a report need, which
// may be many bytes, and adds to the report what is damaged or missing.
func (s *Store) VerifyData(r *Report) error {
	cps, err := s.Checkpoints()
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer cps.Close()
	all, _, err := cps.List()
	if err != nil {
		return err
	}
	seen := map[blob.Hash]struct{}{}
	first := unseen(seen)
	for _, e := range madeBy(all, r.ID) {
		_ = cps.Objects(e, func(h blob.Hash) bool { // Verify tells of a folder that cannot be read
			if !first(h) {
				return false
			}
			if err := cps.blobs.Verify(h); err != nil {
				r.damaged(s.fileOf(err), fmt.Errorf("checkpoint %d needs it: %w", e.Number, err))
			}
			return true
		})
	}
	r.Blobs = len(seen)
	return nil
}

// VerifyBlobs reads every blob of the store, whoever names it, and returns how many
// there are and which are damaged.
func (s *Store) VerifyBlobs() (n int, damaged []Fault, err error) {
	root, err := openDir(s.root(), blobsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	defer root.Close()
	store := blob.New(root)
	for h, err := range store.All() {
		switch {
		case err == nil:
			n++
			err = store.Verify(h)
		case ClassOf(err) != writer.ClassCorrupt: // or it is a pack that is left out
			return n, damaged, fmt.Errorf("list blobs: %w", err)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // or swept meanwhile
			damaged = append(damaged, Fault{File: s.fileOf(err), Kind: "damaged", Problem: err.Error()})
		}
	}
	return n, damaged, nil
}

// fileOf is the file that an error on a blob is of, below .lopen.
func (s *Store) fileOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		if name, err := filepath.Rel(s.Path(), e.Path); err == nil {
			return filepath.ToSlash(name)
		}
	}
	return blobsDir
}
