package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/private"
	"github.com/lopen-dev/lopen/writer/process"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A DamagedError is returned for a session that cannot be opened because its files are
// damaged or were edited outside ([ErrEdited]). It says where they are, and wraps the
// reason.
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

// Moved reports whether the session is in corrupted/.
func (e *DamagedError) Moved() bool { return strings.HasPrefix(e.Where, corruptedDir+"/") }

func (e *DamagedError) Unwrap() error { return e.Err }

// damagedIn wraps err in a [*DamagedError] if it says that files are damaged, and otherwise
// returns it unchanged.
func damagedIn(id session.ID, where string, err error) error {
	if _, known := errors.AsType[*DamagedError](err); known || !errors.Is(err, ErrCorrupt) {
		return err
	}
	return &DamagedError{ID: id, Where: where, Err: err}
}

// Quarantined lists the sessions in corrupted/ from which no session was recovered, the
// newest ID first. Each Info has as much of the summary as can be read, and a
// [*DamagedError].
func (s *Store) Quarantined() ([]Info, error) {
	if _, err := s.root().Lstat(corruptedDir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	infos, err := s.List()
	if err != nil {
		return nil, err
	}
	return s.notRecovered(infos)
}

// notRecovered is Quarantined, given the sessions that List returned. A folder whose session is
// among these holds the remains of a session that was recreated.
func (s *Store) notRecovered(infos []Info) ([]Info, error) {
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
			all = append(all, s.quarantined(f, note))
		}
	}
	return all, nil
}

// corrupted lists the session folders in corrupted/, the newest ID first, and the folders of
// one ID with the one that was moved last first.
func (s *Store) corrupted() ([]sessionFolder, error) {
	all, err := s.folders(corruptedDir)
	slices.SortFunc(all, func(a, b sessionFolder) int {
		return cmp.Or(b.id.Compare(a.id), strings.Compare(b.name, a.name)) // the time is in the name
	})
	return all, err
}

// inCorrupted finds a session in corrupted/ by the name of its folder, by its ID, or by its
// module, which means the newest one.
func (s *Store) inCorrupted(name string) (*DamagedError, bool) {
	folders, _ := s.corrupted()
	for _, f := range folders {
		if f.name == name || f.id.String() == name || f.id.Module == name {
			return s.quarantineError(f, s.moved(f.path)), true
		}
	}
	return nil, false
}

func (s *Store) quarantined(f sessionFolder, note quarantineNote) Info {
	a := Info{Err: s.quarantineError(f, note), moved: note.At}
	buf := make([]byte, folder.SummaryBytes)
	if n, _, err := writer.ReadHead(s.root(), f.path+"/"+folder.StateFile, buf); err == nil {
		if sum, err := wire.DecodeSummary(buf[:n]); err == nil && sum.ID == f.id {
			a.Summary = sum
			a.Status = a.Status.Seen(false)
		}
	}
	a.ID = f.id
	return a
}

// moved returns the note on a folder in corrupted/, by its path. If the note cannot be read,
// it is zero.
func (s *Store) moved(path string) (note quarantineNote) {
	if data, err := writer.ReadFile(s.root(), path+".json", 64<<10); err == nil {
		_ = strictjson.Unmarshal(data, &note)
	}
	return note
}

func (s *Store) quarantineError(f sessionFolder, note quarantineNote) *DamagedError {
	reason := cmp.Or(note.Reason, "its files are damaged, and the note of why is missing")
	return &DamagedError{ID: f.id, Where: f.path, Err: &reasonError{reason, filepath.Join(s.Path(), f.path)}}
}

// reasonError is the reason in the note of a quarantined session.
type reasonError struct{ reason, path string }

func (e *reasonError) Error() string { return e.reason }

func (e *reasonError) Unwrap() error {
	return &Error{Op: "open", Path: e.path, Class: writer.ClassCorrupt, Err: errors.New(e.reason)}
}

// recoveredFrom returns the sessions from which one of infos was recovered.
func recoveredFrom(infos []Info) map[session.ID]bool {
	from := map[session.ID]bool{}
	for _, i := range infos {
		if i.Lineage != nil && i.Lineage.Kind == session.LineageRecovered {
			from[i.Lineage.From] = true
		}
	}
	return from
}

// Unfinished returns the session that a run of a module resumes: of those that are not
// complete, the one that was updated last. The boolean is false when there is none. If Err
// is set, the session cannot be opened, whether it is in its place or in corrupted/, and a
// person has to decide: no session was recovered from it or begun after it. When it is not
// known when sessions were updated, the newest ID wins.
func (s *Store) Unfinished(module string) (Info, bool, error) {
	infos, err := s.List()
	if err != nil {
		return Info{}, false, err
	}
	moved, err := s.notRecovered(infos)
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
		if i.Err == nil && i.Status != session.StatusComplete && i.Origin == session.OriginRun {
			best = i
			break
		}
	}
	for _, a := range moved {
		if a.ID.Module == module && (best.ID.IsZero() || a.Later(best)) && !s.decided(a, infos) {
			best = a
		}
	}
	return best, !best.ID.IsZero(), nil
}

// maxCaughtUp is the number of sessions, the newest ones, that catchUp looks at.
const maxCaughtUp = 16

// catchUp replaces the summaries of sessions by those from their logs: of sessions that are
// not complete by their state.json, and of those whose journal goes beyond it. A kill may
// come between a commit and its publication.
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
			continue // what state.json says has to do
		}
		if sum, err := ld.Summary(); err == nil {
			owner, err := s.Holder(i.ID)
			sum.Status = sum.Status.Seen(err != nil || owner != nil)
			i.Summary = sum
		}
	}
}

// lags reports whether a session's journal goes beyond its state.json.
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

// Later reports whether i was updated after than. If a time is missing, the newer ID wins.
func (i Info) Later(than Info) bool {
	if i.UpdatedAt.IsZero() || than.UpdatedAt.IsZero() {
		return i.ID.Compare(than.ID) > 0
	}
	return i.UpdatedAt.After(than.UpdatedAt)
}

// decided reports whether a run may ignore a session that cannot be opened: it is complete,
// or a newer session of the module exists or existed. infos are those of its module.
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
	return slices.ContainsFunc(pruned, func(f sessionFolder) bool { return f.id.Module == a.ID.Module && f.id.Compare(a.ID) > 0 })
}

const (
	corruptedDir = "corrupted"
	asideTime    = "20060102T150405Z" // format of the time in the names of its folders
)

// quarantineNote is the content of corrupted/{id}-{time}.json.
type quarantineNote struct {
	SchemaVersion int       `json:"schemaVersion"`
	Session       string    `json:"session"`
	At            time.Time `json:"at"`
	Reason        string    `json:"reason"`
	File          string    `json:"file,omitempty"`        // the readable file, if it is not the whole session
	RecoveredAs   string    `json:"recoveredAs,omitempty"` // the session that was last recovered from it
	Remains       bool      `json:"remains,omitempty"`     // the session was recreated, so there is nothing to recover
}

// loadHeld is folder.Load for the holder of the session's lease: it quarantines a damaged
// session. A session that was edited outside is an error unless edited is set.
func (s *Store) loadHeld(dir writer.FS, id session.ID, lease *writer.Lock, edited bool) (*folder.Contents, error) {
	ld, err := folder.Load(dir, id)
	if err == nil && !edited {
		err = ld.Edited()
	}
	if err != nil {
		return nil, s.quarantine(id, lease, err)
	}
	if owner := heldFor(ld.State.Status(), ld.State.Header().Holder); owner != nil && !s.opts.holds(ld.State) {
		return nil, &BusyError{Path: dir.Name(), Owner: *owner}
	}
	return ld, nil
}

// heldFor returns the process for which an active session is held between two processes that
// write it, or nil if there is none or it has ended.
func heldFor(status session.Status, h *session.Holder) *Owner {
	if status != session.StatusActive || h == nil {
		return nil
	}
	owner := Owner(*h)
	if !owner.Alive() {
		return nil
	}
	return &owner
}

// quarantine moves the whole folder of a damaged session to corrupted/ and writes the reason
// into a note. It returns the reason and the new place as a [*DamagedError]. A session that was
// edited outside, was written by a newer version or could not be read stays in its place. The
// caller holds the session's lease, which is checked once more before the move. When the move
// fails, the session stays in its place and cannot be opened.
func (s *Store) quarantine(id session.ID, lease *writer.Lock, cause error) error {
	place := sessionsDir + "/" + id.String()
	if !errors.Is(cause, ErrCorrupt) || errors.Is(cause, ErrEdited) {
		return damagedIn(id, place, cause)
	}
	err := lease.Check(s.project, Dir+"/"+place+"/"+leaseFile)
	var to string
	if err == nil {
		to, err = s.moveToCorrupted(id, quarantineNote{Reason: cause.Error()})
	}
	if to == "" {
		return damagedIn(id, place, fmt.Errorf("%w; it could not be moved aside and stays where it is: %w", cause, err))
	}
	if err != nil {
		cause = fmt.Errorf("%w; a power cut may bring it back to its place: %w", cause, err)
	}
	s.Logger(id).Warn().AnErr("reason", cause).Str("path", to).Msg("damaged session moved aside")
	return damagedIn(id, to, cause)
}

// moveToCorrupted moves a session's folder to corrupted/, with a note, and returns
// its new name. The caller holds the lease in it.
func (s *Store) moveToCorrupted(id session.ID, note quarantineNote) (to string, err error) {
	data, err := note.encode(id.String(), s.opts.Now())
	if err != nil {
		return "", err
	}
	if err := private.Make(s.root(), corruptedDir); err != nil {
		return "", err
	}
	return writer.Quarantine(s.root(), sessionsDir+"/"+id.String(), corruptedDir, id.String()+"-"+note.At.Format(asideTime), data)
}

// filesSuffix ends the name of the folder in corrupted/ that has a session's readable files, each as
// {name}-{time}. maxSetAside is the number of versions of one that stay.
const (
	filesSuffix = ".files"
	maxSetAside = 5
)

// SetAside implements [commit.Place].
func (p place) SetAside(dir writer.FS, name string, why error) (string, error) {
	root, from := p.root(), folder.Path(p.id)+"/"+name
	held, err := dir.Lstat(name)
	if err != nil {
		return "", writer.NewError("set aside", filepath.Join(dir.Name(), name), writer.NotCommitted, err)
	}
	if there, err := root.Lstat(from); err != nil || !writer.SameFile(held, there) { // the folder was removed meanwhile
		return "", writer.NewError("set aside", filepath.Join(dir.Name(), name), writer.NotCommitted, cmp.Or(err, fs.ErrNotExist))
	}
	return p.putAside(from, p.id.String(), why)
}

// SetPlanAside moves a module's plan to corrupted/ with a note of why, durably, and returns its new
// path. The error wraps fs.ErrNotExist if there is none. The caller holds the lock of the module.
func (s *Store) SetPlanAside(module string, why string) (to string, err error) {
	if err := session.ValidateModule(module); err != nil {
		return "", &Error{Op: "set aside", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	return s.putAside(modulesDir+"/"+module+"/plan.md", module, errors.New(why))
}

// putAside moves a file of a session or a module, which of names, to corrupted/.
func (s *Store) putAside(from, of string, why error) (string, error) {
	root, to, name := s.root(), corruptedDir+"/"+of+filesSuffix, filepath.Base(from)
	if _, err := root.Lstat(from); err != nil {
		return "", writer.NewError("set aside", filepath.Join(root.Name(), from), writer.NotCommitted, err)
	}
	note := quarantineNote{Reason: why.Error(), File: name}
	data, err := note.encode(of, s.opts.Now())
	if err == nil {
		err = private.Make(root, corruptedDir)
	}
	if err != nil {
		return "", err
	}
	all, err := s.setAside(to, name)
	if err != nil {
		return "", err
	}
	label := name + "-" + note.At.Format("20060102T150405.000000000Z")
	if n := len(all); n > 0 && all[n-1] >= label { // the clock went back
		label = all[n-1] + "+"
	}
	moved, err := writer.Quarantine(root, from, to, label, data)
	if err != nil {
		return "", err
	}
	for _, old := range all[:max(len(all)+1-maxSetAside, 0)] {
		for _, file := range []string{to + "/" + old, to + "/" + old + ".json"} {
			if err := root.RemoveAll(file); err != nil {
				return "", writer.NewError("remove", filepath.Join(root.Name(), file), writer.NotCommitted, err)
			}
		}
	}
	return filepath.Join(root.Name(), moved), nil
}

// setAside lists the versions of a readable file in a folder of corrupted/, the oldest first.
func (s *Store) setAside(dir, name string) (all []string, err error) {
	entries, err := s.root().ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, writer.NewError("set aside", filepath.Join(s.Path(), dir), writer.NotCommitted, err)
	}
	for _, e := range entries {
		if v := e.Name(); strings.HasPrefix(v, name+"-") && !strings.HasSuffix(v, ".json") {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all, nil
}

// encode returns the note's file, of a session, or a module whose plan it is, that is moved at a time.
func (n *quarantineNote) encode(of string, at time.Time) ([]byte, error) {
	n.SchemaVersion, n.Session, n.At = 1, of, at.UTC()
	data, err := strictjson.Marshal(n)
	return append(data, '\n'), err
}

// noteRecovered writes the recovered session into the note on a folder in corrupted/, so that
// the damaged one is not reported again, even if the recovered one is deleted.
func (s *Store) noteRecovered(where string, as session.ID) {
	if !strings.HasPrefix(where, corruptedDir+"/") {
		return
	}
	note := s.moved(where)
	note.SchemaVersion, note.RecoveredAs = 1, as.String()
	data, err := strictjson.Marshal(note)
	if err == nil {
		err = writer.ReplaceFile(s.root(), where+".json", append(data, '\n'), filePerm)
	}
	if err != nil {
		s.Logger(as).Warn().Err(err).Str("path", where).Msg("that the session was recovered could not be noted beside the damaged one")
	}
}

// Orphan returns the command of a session that still holds its lock, or nil if there is none
// or the session was deleted. The session may be in corrupted/. The caller holds the session
// or its module, so that no run starts a command meanwhile; others call [Store.Abandoned].
func (s *Store) Orphan(id session.ID) (*process.Orphan, error) {
	dir, err := writer.OpenDir(s.root(), s.folderOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a command that outlived session %s: %w", id, err)
	}
	defer dir.Close()
	return process.FindOrphan(dir, childFile)
}

// Abandoned returns the command of a session that is not held, if the command or a process
// that it left behind still runs; else nil. It makes no file and blocks no run, so anybody may
// call it.
func (s *Store) Abandoned(id session.ID) (*process.Orphan, error) {
	return repair.Abandoned(s.root(), s.folderOf(id)+"/")
}

// folderOf returns the folder of a session: in sessions/, or in corrupted/ if it was moved
// there.
func (s *Store) folderOf(id session.ID) string {
	name := sessionsDir + "/" + id.String()
	if _, err := s.root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
		if moved, ok := s.inCorrupted(id.String()); ok {
			return moved.Where
		}
	}
	return name
}
