package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// shareCheckpoints gives a session's new folder those of another one up to the record
// that it goes on from, and returns the one that the loop last knew the files by, ""
// where that is none of them. Of a damaged session it is all of them, each read in
// full first: the record that could be recovered says nothing of what files there
// are, and who has lost the tasks needs the files most. The caller holds the store
// lock, so that nothing is swept.
func (s *Store) shareCheckpoints(from, to string, at session.Mark, damaged bool) (string, error) {
	dir, err := openDir(s.root(), from+"/"+checkpointsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	cps := checkpoint.New(dir, nil, nil)
	upTo := at.Seq
	if damaged {
		upTo = math.MaxUint64
	}
	ids, err := cps.UpTo(upTo)
	if err != nil {
		return "", err
	}
	if damaged {
		ids = slices.DeleteFunc(ids, func(id checkpoint.ID) bool {
			_, err := cps.Load(id)
			return err != nil
		})
	}
	shared, err := checkpoint.Share(s.root(), from+"/"+checkpointsDir, to+"/"+checkpointsDir, ids)
	if err != nil {
		return "", err
	}
	if last, err := checkpoint.ParseID(at.Checkpoint); err == nil && slices.Contains(shared, last) {
		return at.Checkpoint, nil
	}
	return "", nil
}

// A maker is a session on the line that a session comes from, itself included, and
// the checkpoints on that line that were made in it.
type maker struct {
	id         session.ID
	after, top checkpoint.ID // after < ID <= top
}

// makers are the sessions that made the checkpoints that a session has, the session
// itself first, as far back as they are there.
func (p *rewindPlanner) makers() (all []maker, err error) {
	id, lineage, cps := p.id, p.state.Header().Lineage, p.cps.Store
	for top := ^checkpoint.ID(0); ; {
		after, err := cps.Inherited()
		if err != nil {
			return nil, err
		}
		all = append(all, maker{id, after, top})
		if after == 0 || lineage == nil {
			return all, nil
		}
		id, top = lineage.From, min(after, top)
		st, _, err := p.store.Read(id)
		if err != nil {
			return all, nil //nolint:nilerr // it is gone or damaged, and what it made stays
		}
		made, err := p.store.Checkpoints(id)
		if err != nil {
			return all, nil //nolint:nilerr // likewise
		}
		defer made.Close()
		lineage, cps = st.Header().Lineage, made.Store
	}
}

// madeIn is the session whose log has the State that a checkpoint is of.
func (p *rewindPlanner) madeIn(cp checkpoint.ID) (session.ID, error) {
	all, err := p.makers()
	if err != nil {
		return session.ID{}, err
	}
	for _, m := range all {
		if m.after < cp && cp <= m.top {
			return m.id, nil
		}
	}
	return session.ID{}, fmt.Errorf("the tasks at %s are in the log of the session that it was made in, which cannot be read: bring back the files alone, with --scope files: %w", cp, ErrNotFound)
}
