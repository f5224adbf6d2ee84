package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// summaryBytes is how much of state.json a listing reads: the summary fields
// stand in the first part of it.
const summaryBytes = 4 << 10

// An Info is one session as a listing shows it. Its Status is that of
// [session.Status.Seen]. With Err set the session cannot be read, and only the ID is
// known.
type Info struct {
	session.Summary
	Err error

	moved time.Time // to corrupted/; zero if it was not, or that is not known
}

// List returns all sessions, the most recently updated first. A session that
// cannot be read is listed with its error and hides no other. It reads the
// beginning of each state.json, with a worker for each processor. Of a session that is
// active, or whose state.json cannot be read, it reads the log, unless state.json is larger
// than 1 MiB.
func (s *Store) List() ([]Info, error) {
	dir, err := openDir(s.root(), sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	defer dir.Close()
	entries, err := s.project.ReadDir(Dir + "/" + sessionsDir) // which is faster than dir
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	folders := foldersOf(sessionsDir, entries)
	all := make([]Info, len(folders))
	var next atomic.Int64
	var g errgroup.Group
	for range min(runtime.GOMAXPROCS(0), 1+len(folders)/64) {
		g.Go(func() error {
			buf := make([]byte, summaryBytes)
			for i := next.Add(1) - 1; i < int64(len(folders)); i = next.Add(1) - 1 {
				all[i] = s.summary(dir, folders[i].id, buf)
			}
			return nil
		})
	}
	_ = g.Wait()
	infos := slices.DeleteFunc(all, func(i Info) bool { return i.Err == errDeleted }) //nolint:errorlint // it is never wrapped
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), b.ID.Compare(a.ID))
	})
	return infos, nil
}

// Incarnation names the folder that a session's records are in, see
// [Session.Incarnation]; "" where it cannot be read.
func (s *Store) Incarnation(id session.ID) string {
	ld, _ := s.read(id)
	if ld == nil {
		return ""
	}
	_ = ld.dir.Close()
	return ld.at.Incarnation
}

// errDeleted says that a session went between the listing and the reading.
var errDeleted = errors.New("deleted")

// summary is what a listing shows of a session. Of one that is active, or whose state.json
// cannot be read, its log is read.
func (s *Store) summary(dir writer.FS, id session.ID, buf []byte) Info {
	sum, err := s.readSummary(id, buf)
	if err == nil && sum.Status != session.StatusActive {
		return Info{Summary: sum}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := dir.Lstat(id.String()); gone != nil {
			return Info{Summary: session.Summary{ID: id}, Err: errDeleted}
		}
	}
	held, ever := s.holds(id)
	if err == nil && !ever {
		sum.Status = sum.Status.Seen(false)
		return Info{Summary: sum}
	}
	info, serr := dir.Lstat(id.String() + "/" + stateFile)
	switch {
	case err == nil && (serr != nil || info.Size() > small):
		if again, rerr := s.readSummary(id, buf); rerr == nil { // its holder may have paused it before it let go
			sum = again
		}
	default:
		if logged, lerr := logged(dir, id); lerr == nil {
			sum, err = logged, nil
		} else if err != nil && !errors.Is(err, ErrFutureVersion) {
			err = lerr
		}
	}
	sum.ID, sum.Status = id, sum.Status.Seen(held)
	return Info{Summary: sum, Err: damagedIn(id, sessionsDir+"/"+id.String(), err)}
}

// logged is the summary of a session as its log has it.
func logged(sessions writer.FS, id session.ID) (session.Summary, error) {
	dir, err := openDir(sessions, id.String())
	if err != nil {
		return session.Summary{}, err
	}
	defer dir.Close()
	ld, err := join(dir, id)
	if err != nil {
		return session.Summary{}, err
	}
	return ld.summary()
}

func (ld *loaded) summary() (session.Summary, error) {
	return session.DecodeSummary(session.EncodeState(ld.state, ld.at))
}

// holds says whether somebody holds a session, and whether anybody ever did.
func (s *Store) holds(id session.ID) (held, ever bool) {
	held, ever, err := writer.Locked(s.project, inProject(id, leaseFile))
	return held || err != nil, ever
}

func (s *Store) readSummary(id session.ID, buf []byte) (session.Summary, error) {
	name := inProject(id, stateFile)
	var sum session.Summary
	n, err := writer.ReadHead(s.project, name, buf)
	if err == nil {
		sum, err = session.DecodeSummary(buf[:n])
	}
	if err == nil && sum.ID != id {
		err = fmt.Errorf("state.json is that of session %s", sum.ID)
	}
	if err != nil {
		return session.Summary{}, unreadable("read", filepath.Join(s.project.Name(), name), err)
	}
	return sum, nil
}

// inProject is the path of a session's file from the project's folder. The project's FS is
// faster than one of a folder in it.
func inProject(id session.ID, file string) string {
	return Dir + "/" + sessionsDir + "/" + id.String() + "/" + file
}

// readTries bounds how often a reader starts again because the writer moved on.
const readTries = 5

// Read returns the newest State of a session that its files show, without a lock,
// whoever holds it, and its sequence number. Beside a live writer it may be one
// that is not durable yet. It changes nothing. With ErrEdited the State is returned
// as it was edited, with ErrFutureVersion as far as this version knows of it.
func (s *Store) Read(id session.ID) (*session.State, uint64, error) {
	ld, err := s.read(id)
	if ld == nil {
		return nil, 0, err
	}
	return ld.state, ld.at.Seq, errors.Join(err, ld.dir.Close())
}

// read loads a session and leaves its folder open for more, also where it says that the
// session was edited outside, or is of a newer version.
func (s *Store) read(id session.ID) (ld *loaded, err error) {
	for tries, alone := 0, 0; tries < readTries && alone < 2; tries++ {
		var dir writer.FS
		if dir, err = s.sessionDir(id); err != nil {
			break
		}
		if ld, err = read(dir, id); ld != nil {
			break
		}
		_ = dir.Close()
		if held, herr := s.Holder(id); herr != nil || held == nil {
			alone++ // the writer may have gone since; the second time it is as it is
		}
	}
	if err != nil && ld == nil {
		err = damagedIn(id, sessionsDir+"/"+id.String(), err)
	}
	if err != nil {
		err = fmt.Errorf("read session %s: %w", id, err)
	}
	return ld, err
}

// readWhole is read for who goes on from what is read.
func (s *Store) readWhole(id session.ID) (*loaded, error) {
	ld, err := s.read(id)
	if err != nil && ld != nil {
		_ = ld.dir.Close()
	}
	return ld, err
}

// read is join, with what there is to show of a session that is not to be written.
func read(dir writer.FS, id session.ID) (*loaded, error) {
	ld, err := join(dir, id)
	if err == nil {
		return ld, ld.edited()
	}
	if errors.Is(err, ErrFutureVersion) {
		if st, at, shown := asWritten(dir, id); shown == nil {
			return &loaded{dir: dir, state: st, at: at}, err
		}
	}
	return nil, err
}

// Holder returns who holds a session for writing, nil when nobody does.
func (s *Store) Holder(id session.ID) (*Owner, error) {
	owner, held, err := writer.Holder(s.root(), sessionsDir+"/"+id.String()+"/"+leaseFile)
	if err != nil || !held {
		return nil, err
	}
	return &owner, nil
}

// Resolve turns what a person typed into an ID: an ID, the prefix of exactly
// one, "latest" or "" for the latest session, or a module's name for its
// newest session. An exact ID wins over a prefix, a module's name over a prefix. A
// [*DamagedError] says that what is meant lies in corrupted/.
func (s *Store) Resolve(name string) (session.ID, error) {
	if name == "" || name == latestLink {
		return s.Latest("")
	}
	infos, err := s.List()
	if err != nil {
		return session.ID{}, err
	}
	var fits []string
	var fit session.ID
	for _, info := range infos {
		if info.ID.String() == name {
			return info.ID, nil
		}
		if strings.HasPrefix(info.ID.String(), name) {
			fits, fit = append(fits, info.ID.String()), info.ID
		}
	}
	if id, ok := newest(infos, name); ok {
		return id, nil
	}
	switch len(fits) {
	case 0:
		if bad, ok := s.inCorrupted(name); ok {
			return session.ID{}, fmt.Errorf("session %s: %w", bad.ID, bad)
		}
		return session.ID{}, fmt.Errorf("session %q: %w", name, ErrNotFound)
	case 1:
		return fit, nil
	}
	return session.ID{}, fmt.Errorf("session %q: %w: %s", name, ErrAmbiguous, strings.Join(fits, ", "))
}

// Latest returns the session of this project that was made last, or, with a module,
// the one of it that was changed last. ErrNotFound says that there is none.
func (s *Store) Latest(module string) (session.ID, error) {
	if module == "" {
		return s.latest()
	}
	infos, err := s.List()
	if err != nil {
		return session.ID{}, err
	}
	if id, ok := newest(infos, module); ok {
		return id, nil
	}
	return session.ID{}, fmt.Errorf("no session of module %s here yet: %w", module, ErrNotFound)
}

// newest is the first session of a module in a listing; one that cannot be read
// comes after all that can.
func newest(infos []Info, module string) (session.ID, bool) {
	i := slices.IndexFunc(infos, func(i Info) bool { return i.ID.Module == module })
	if i < 0 {
		return session.ID{}, false
	}
	return infos[i].ID, true
}

// latest follows the hint; one that is missing or leads nowhere is replaced by
// the newest session. One that leads to a session in corrupted/ is a [*DamagedError].
func (s *Store) latest() (session.ID, error) {
	hint, err := s.root().Readlink(sessionsDir + "/" + latestLink)
	if err != nil {
		data, _ := writer.ReadFile(s.root(), sessionsDir+"/"+latestText, 1<<10)
		hint = strings.TrimSpace(string(data))
	}
	if id, err := session.ParseID(hint); err == nil {
		if info, err := s.root().Lstat(sessionsDir + "/" + id.String()); err == nil && info.IsDir() {
			return id, nil
		}
		if bad, ok := s.inCorrupted(id.String()); ok {
			return session.ID{}, fmt.Errorf("session %s: %w", id, bad)
		}
	}
	infos, err := s.List()
	if err != nil {
		return session.ID{}, err
	}
	for _, info := range infos {
		if info.Err == nil {
			return info.ID, nil
		}
	}
	return session.ID{}, fmt.Errorf("no session here yet: %w", ErrNotFound)
}
