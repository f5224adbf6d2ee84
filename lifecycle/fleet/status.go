package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A Standing is how far a session is here and in the fleet.
type Standing struct {
	ID          session.ID
	Incarnation string
	Here, There uint64 // the last record; 0 if it is not there
	Known       bool   // There is what the database says; else it is what it acknowledged last
	Host        string // of the last holder; "" if nobody ever had the lease
	Held        bool
	Left        time.Duration
	LagRecords  uint64
	LagBytes    int64     // of the records that are not there, in bytes
	LagSince    time.Time // when the first of them was written; zero if there is none
	Error       string    // of the last try to ship it from here; "" after a success
	ErrorAt     time.Time
	Restored    string // that the database once lacked what it had acknowledged
	Fork        string // the session that has what was done here after somebody else took this one
}

// Standings returns how far each session is, those that are here first, in the order of List. A nil
// store has none. If the
// database cannot be reached it says what is known here, and the error is returned as well.
func (f *Fleet) Standings(ctx context.Context, store *lifecycle.Store) (all []Standing, err error) {
	there, err := f.List(ctx, "")
	found := map[string]*Found{}
	for i := range there {
		found[there[i].ID.String()+" "+there[i].Incarnation] = &there[i]
	}
	if store != nil {
		var hereErr error
		if all, hereErr = f.here(store, found, err == nil); hereErr != nil {
			return nil, errors.Join(err, hereErr)
		}
	}
	for _, x := range there {
		if found[x.ID.String()+" "+x.Incarnation] != nil {
			s := Standing{ID: x.ID, Incarnation: x.Incarnation, Known: true}
			s.of(&x)
			all = append(all, s)
		}
	}
	return all, err
}

// here returns the standings of the sessions here, and removes them from those that were found.
func (f *Fleet) here(store *lifecycle.Store, found map[string]*Found, known bool) (all []Standing, err error) {
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	root, err := writer.OpenFS(store.Path())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, i := range infos {
		if i.Err != nil {
			continue
		}
		key := i.ID.String() + " " + i.Incarnation
		s, err := f.standing(root, i, found[key], known)
		if err != nil {
			s.Error = err.Error()
		}
		delete(found, key)
		all = append(all, s)
	}
	return all, nil
}

func (s *Standing) of(x *Found) {
	s.There, s.Host, s.Held, s.Left = x.Records, x.Host, x.Held, x.Left
}

// standing compares a session here with the one in the fleet, which may be nil.
func (f *Fleet) standing(root writer.FS, i lifecycle.Info, x *Found, known bool) (s Standing, err error) {
	s = Standing{ID: i.ID, Incarnation: i.Incarnation, Known: known}
	dir, err := writer.OpenDir(root, folder.Path(i.ID))
	if err != nil {
		return s, err
	}
	defer dir.Close()
	n, err := readNote(dir, f.opts.Project, i.Incarnation)
	if err != nil {
		return s, err
	}
	s.Restored = n.Restored
	s.There, s.Error, s.ErrorAt, s.Fork = n.Seq, n.Error, n.ErrorAt, n.Fork
	if x != nil {
		s.of(x)
	} else if known {
		s.There = 0
	}
	log, err := journal.Read(dir, s.There, false)
	if err != nil {
		return s, err
	}
	s.Here = log.Last()
	for _, r := range log.Above(s.There) {
		s.LagRecords, s.LagBytes = s.LagRecords+1, s.LagBytes+r.Length
	}
	if refs := log.Above(s.There); len(refs) > 0 {
		err = log.Lines(refs[:1], func(_ *journal.Ref, line []byte) error {
			rec, err := wire.DecodeRecord(line)
			s.LagSince = rec.At
			return err
		})
	}
	return s, err
}

// Mine reports whether the lease of a session is one that a process of this folder took last, which
// has ended by now or is this one: nobody else has the session.
func (f *Fleet) Mine(store *lifecycle.Store, x *Found) bool {
	root, err := writer.OpenFS(store.Path())
	if err != nil {
		return false
	}
	defer root.Close()
	dir, err := writer.OpenDir(root, folder.Path(x.ID))
	if err != nil {
		return false
	}
	defer dir.Close()
	n, err := readNote(dir, f.opts.Project, x.Incarnation)
	return err == nil && x.row.holder != "" && (x.row.holder == holderOf(f.secret) || holderOf(n.Secret) == x.row.holder && n.Term == x.row.term)
}

// Forget forgets what the fleet acknowledged of a session that nobody has open, so that it is shipped
// from its beginning: for one that the fleet has none of any more.
func (f *Fleet) Forget(store *lifecycle.Store, id session.ID) error {
	return noteIn(store, id, note{Project: f.opts.Project, Incarnation: store.Incarnation(id)})
}

// Leave removes what keeps the records of a store's sessions for the fleet, and returns when no process sends any
// of them: one that does notices by [Options.Joined]. It returns those that may still be sent when ctx ends. What was
// shipped is noted still, so that a later join continues there as far as the logs have the rest.
func Leave(ctx context.Context, store *lifecycle.Store) (sending []session.ID, err error) {
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	root, err := writer.OpenFS(store.Path())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, i := range infos {
		for hasCursor(root, i.ID) && ctx.Err() == nil {
			if owner, err := store.Holder(i.ID); err == nil && owner == nil {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil && hasCursor(root, i.ID) {
			sending = append(sending, i.ID)
		}
		dir, err := writer.OpenDir(root, folder.Path(i.ID))
		if errors.Is(err, fs.ErrNotExist) { // it was deleted meanwhile
			continue
		}
		if err == nil {
			err = errors.Join(forgetIn(dir), dir.Close())
		}
		if err != nil {
			return sending, fmt.Errorf("leave fleet: %w", err)
		}
	}
	return sending, nil
}

// hasCursor reports whether the records of a session are kept for the fleet.
func hasCursor(root writer.FS, id session.ID) bool {
	_, err := root.Lstat(folder.Path(id) + "/" + cursorFile)
	return err == nil
}

// cursorFile is the file of the cursor in a session's folder.
const cursorFile = "cursors/" + cursorName + ".json"

// forgetIn keeps the records of a session for the fleet no more.
func forgetIn(dir writer.FS) error {
	if err := dir.Remove(cursorFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return writer.NewError("leave fleet", filepath.Join(dir.Name(), cursorFile), writer.NotCommitted, err)
	}
	return nil
}
