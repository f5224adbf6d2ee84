package lifecycle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A DamagedError says which session cannot be opened because its files are damaged, or
// were edited outside ([ErrEdited]), and where they are now. It wraps the reason.
type DamagedError struct {
	ID    session.ID
	Where string // the session's folder below .lopen: in corrupted/, or still in sessions/
	Err   error
}

func (e *DamagedError) Error() string {
	if e.Moved() {
		return fmt.Sprintf("%v; the session was moved to %s/%s", e.Err, Dir, e.Where)
	}
	return e.Err.Error()
}

// Moved says whether the session lies in corrupted/.
func (e *DamagedError) Moved() bool { return strings.HasPrefix(e.Where, corruptedDir+"/") }

func (e *DamagedError) Unwrap() error { return e.Err }

// damagedIn is err, as a [*DamagedError] where it says that files are damaged.
func damagedIn(id session.ID, where string, err error) error {
	var known *DamagedError
	if !errors.Is(err, ErrCorrupt) || errors.As(err, &known) {
		return err
	}
	return &DamagedError{ID: id, Where: where, Err: err}
}

// Aside lists the sessions in corrupted/ from which none was recovered, the newest ID
// first. Of each it returns as much of the summary as can be read, and a
// [*DamagedError].
func (s *Store) Aside() ([]Info, error) {
	if _, err := s.root().Lstat(corruptedDir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	infos, err := s.List()
	if err != nil {
		return nil, err
	}
	return s.aside(infos)
}

// aside is Aside beside the sessions that List returned. A folder whose session is
// among these is what was left of it when it was made again.
func (s *Store) aside(infos []Info) ([]Info, error) {
	folders, err := s.corrupted()
	if err != nil {
		return nil, err
	}
	var all []Info
	there, recovered := map[session.ID]bool{}, recoveredFrom(infos)
	for _, i := range infos {
		there[i.ID] = true
	}
	for _, f := range folders {
		if n := len(all); n > 0 && all[n-1].ID == f.id || there[f.id] {
			continue
		}
		if note := s.moved(f.path); note.RecoveredAs == "" && !note.Remains && !recovered[f.id] {
			all = append(all, s.lookAside(f, note))
		}
	}
	return all, nil
}

// corrupted lists the folders of sessions in corrupted/, the newest ID first and of one
// ID the folder that was moved last.
func (s *Store) corrupted() ([]folder, error) {
	all, err := s.folders(corruptedDir)
	slices.SortFunc(all, func(a, b folder) int {
		return cmp.Or(b.id.Compare(a.id), strings.Compare(b.name, a.name)) // the time is in the name
	})
	return all, err
}

// inCorrupted finds what is meant by a name in corrupted/: a folder there, the ID of a
// session, or a module for its newest one.
func (s *Store) inCorrupted(name string) (*DamagedError, bool) {
	folders, _ := s.corrupted()
	for _, f := range folders {
		if f.name == name || f.id.String() == name || f.id.Module == name {
			return s.damagedAside(f, s.moved(f.path)), true
		}
	}
	return nil, false
}

func (s *Store) lookAside(f folder, note movedAside) Info {
	a := Info{Err: s.damagedAside(f, note), moved: note.At}
	buf := make([]byte, summaryBytes)
	if n, err := writer.ReadHead(s.root(), f.path+"/"+stateFile, buf); err == nil {
		if sum, err := session.DecodeSummary(buf[:n]); err == nil && sum.ID == f.id {
			a.Summary = sum
			a.Status = a.Status.Seen(false)
		}
	}
	a.ID = f.id
	return a
}

// moved reads the note beside a folder in corrupted/, by its path. Of one that cannot be read
// nothing is known.
func (s *Store) moved(path string) (note movedAside) {
	if data, err := writer.ReadFile(s.root(), path+".json", 64<<10); err == nil {
		_ = json.Unmarshal(data, &note)
	}
	return note
}

func (s *Store) damagedAside(f folder, note movedAside) *DamagedError {
	reason := cmp.Or(note.Reason, "its files are damaged, and the note of why is missing")
	return &DamagedError{ID: f.id, Where: f.path, Err: &reasonError{reason, filepath.Join(s.Path(), f.path)}}
}

// reasonError is why a session was moved aside, as the note beside it says.
type reasonError struct{ reason, path string }

func (e *reasonError) Error() string { return e.reason }

func (e *reasonError) Unwrap() error {
	return &Error{Op: "open", Path: e.path, Class: writer.ClassCorrupt, Err: errors.New(e.reason)}
}

// recoveredFrom are the sessions from which one of these was recovered.
func recoveredFrom(infos []Info) map[session.ID]bool {
	from := map[session.ID]bool{}
	for _, i := range infos {
		if i.Lineage != nil && i.Lineage.Kind == session.LineageRecovered {
			from[i.Lineage.From] = true
		}
	}
	return from
}

// Unfinished returns the session that a run of a module resumes: the one that is not
// complete and was updated last; the boolean is false when there is none. With Err set
// it is one that cannot be opened, in its place or in corrupted/, and that nobody has
// decided about: no session was recovered from it, and none was begun after it. Of
// those whose state.json does not say when they were updated the newest ID counts.
func (s *Store) Unfinished(module string) (Info, bool, error) {
	infos, err := s.List()
	if err != nil {
		return Info{}, false, err
	}
	moved, err := s.aside(infos)
	if err != nil {
		return Info{}, false, err
	}
	infos = slices.DeleteFunc(infos, func(i Info) bool { return i.ID.Module != module })
	s.catchUp(infos)
	recovered := recoveredFrom(infos)
	for _, i := range infos {
		if i.Err != nil && !recovered[i.ID] {
			moved = append(moved, i)
		}
	}
	var best Info
	for _, i := range infos {
		if i.Err == nil && i.Status != session.StatusComplete {
			best = i
			break
		}
	}
	for _, a := range moved {
		if a.ID.Module == module && (best.ID.IsZero() || a.later(best)) && !s.decided(a, infos) {
			best = a
		}
	}
	return best, !best.ID.IsZero(), nil
}

// maxCaughtUp bounds how many sessions of a module catchUp looks at, the newest.
const maxCaughtUp = 16

// catchUp reads sessions from their logs: all that their state.json does not call
// complete, and those whose journal goes beyond it, as a kill may come between a commit
// and its publication.
func (s *Store) catchUp(infos []Info) {
	for n := range infos[:min(len(infos), maxCaughtUp)] {
		i := &infos[n]
		if i.Err != nil || i.Status == session.StatusComplete && !s.lags(*i) {
			continue
		}
		ld, err := s.readShown(i.ID)
		if errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrEdited) {
			i.Err = err
		}
		if err != nil {
			continue // it is as its state.json says, as far as it can be read
		}
		if sum, err := ld.summary(); err == nil {
			owner, err := s.Holder(i.ID)
			sum.Status = sum.Status.Seen(err != nil || owner != nil)
			i.Summary = sum
		}
	}
}

// lags says whether a session's journal goes beyond its state.json.
func (s *Store) lags(i Info) bool {
	last, _ := within(s, "log of", i.ID, func(dir writer.FS) (uint64, error) {
		log, err := journal.Read(dir, i.Seq, false)
		if err != nil {
			return 0, err
		}
		return log.Last(), nil
	})
	return last > i.Seq
}

// later says whether a session that cannot be opened counts rather than another one.
func (i Info) later(than Info) bool {
	if i.UpdatedAt.IsZero() || than.UpdatedAt.IsZero() {
		return i.ID.Compare(than.ID) > 0
	}
	return i.UpdatedAt.After(than.UpdatedAt)
}

// decided says whether a run may pass a session that cannot be opened over. infos are
// those of its module.
func (s *Store) decided(a Info, infos []Info) bool {
	if a.Status == session.StatusComplete {
		return true
	}
	if errors.Is(a.Err, ErrFutureVersion) {
		st, _, _ := s.Read(a.ID)
		if st != nil && st.Status() == session.StatusComplete {
			return true
		}
	}
	known := !a.moved.IsZero() && !a.UpdatedAt.IsZero()
	for _, i := range infos {
		if i.Err == nil && (known && i.CreatedAt.After(a.moved) || !known && i.ID.Compare(a.ID) > 0) {
			return true
		}
	}
	pruned, _ := s.folders(trashDir)
	return slices.ContainsFunc(pruned, func(f folder) bool { return f.id.Module == a.ID.Module && f.id.Compare(a.ID) > 0 })
}
