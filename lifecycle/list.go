package lifecycle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

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
}

// List returns all sessions, the most recently updated first. A session that
// cannot be read is listed with its error and hides no other. It reads the
// beginning of each state.json, with a worker for each processor, and looks at the
// lease of those that are active.
func (s *Store) List() ([]Info, error) {
	dir, err := openDir(s.root(), sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	defer dir.Close()
	quick := openHeads(dir)
	defer quick.close()
	entries, err := quick.entries(dir)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	ids := idsOf(entries)
	all := make([]Info, len(ids))
	var next atomic.Int64
	var g errgroup.Group
	for range min(runtime.GOMAXPROCS(0), 1+len(ids)/64) {
		g.Go(func() error {
			buf := make([]byte, summaryBytes)
			for i := next.Add(1) - 1; i < int64(len(ids)); i = next.Add(1) - 1 {
				all[i] = summary(dir, quick, ids[i], buf)
			}
			return nil
		})
	}
	_ = g.Wait()
	infos := slices.DeleteFunc(all, func(i Info) bool { return i.Err == errDeleted }) //nolint:errorlint // it is never wrapped
	slices.SortFunc(infos, func(a, b Info) int {
		if c := b.UpdatedAt.Compare(a.UpdatedAt); c != 0 {
			return c
		}
		return b.ID.Compare(a.ID)
	})
	return infos, nil
}

// Incarnation names the folder that a session's records are in, see
// [Session.Incarnation]; "" where it cannot be read.
func (s *Store) Incarnation(id session.ID) string {
	buf := make([]byte, summaryBytes)
	n, err := readHead(s.root(), sessionsDir+"/"+id.String()+"/"+stateFile, buf)
	if err != nil {
		return ""
	}
	sum, err := session.DecodeSummary(buf[:n])
	if err != nil {
		return ""
	}
	return sum.Incarnation
}

// errDeleted says that a session went between the listing and the reading.
var errDeleted = errors.New("deleted")

func summary(dir writer.FS, quick heads, id session.ID, buf []byte) Info {
	sum, err := readSummary(dir, quick, id, buf)
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := dir.Lstat(id.String()); gone != nil {
			err = errDeleted
		} else {
			err = unreadable("read", filepath.Join(dir.Name(), id.String()), fmt.Errorf("%w: %s is missing", session.ErrCorrupt, stateFile))
		}
	}
	sum.ID = id
	err = damagedIn(id, sessionsDir+"/"+id.String(), err)
	if err != nil || sum.Status != session.StatusActive {
		return Info{sum, err}
	}
	if held, ever := holds(dir, quick, id); !held {
		if ever { // its holder may have paused it before it let go
			if again, err := readSummary(dir, quick, id, buf); err == nil {
				sum = again
			}
		}
		sum.Status = sum.Status.Seen(false)
	}
	return Info{sum, nil}
}

// holds says whether somebody holds a session, and whether anybody ever did.
func holds(dir writer.FS, quick heads, id session.ID) (held, ever bool) {
	name := id.String() + "/" + leaseFile
	if held, ever, ok := quick.lease(name); ok {
		return held, ever
	}
	_, held, err := writer.Holder(dir, name)
	return held || err != nil, true
}

func readSummary(dir writer.FS, quick heads, id session.ID, buf []byte) (session.Summary, error) {
	name := id.String() + "/" + stateFile
	n, ok := quick.read(name, buf)
	if !ok {
		var err error
		if n, err = readHead(dir, name, buf); err != nil {
			return session.Summary{}, err
		}
	}
	sum, err := session.DecodeSummary(buf[:n])
	if err == nil && sum.ID != id {
		err = fmt.Errorf("state.json is that of session %s", sum.ID)
	}
	if err != nil {
		return session.Summary{}, unreadable("read", filepath.Join(dir.Name(), name), err)
	}
	return sum, nil
}

// readHead fills buf from the beginning of a regular file.
func readHead(dir writer.FS, name string, buf []byte) (int, error) {
	path := filepath.Join(dir.Name(), name)
	info, err := dir.Lstat(name)
	if err != nil {
		return 0, writer.NewError("read", path, writer.NotCommitted, err)
	}
	if !info.Mode().IsRegular() {
		return 0, &Error{Op: "read", Path: path, Class: writer.ClassCorrupt, Err: errors.New("it is not a regular file")}
	}
	f, err := dir.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return 0, writer.NewError("read", path, writer.NotCommitted, err)
	}
	defer f.Close()
	n, err := f.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, writer.NewError("read", path, writer.NotCommitted, err)
	}
	return n, nil
}

// readTries bounds how often a reader starts again because the writer moved on.
const readTries = 5

// Read returns the newest State of a session that its files show, without a lock,
// whoever holds it, and its sequence number. Beside a live writer it may be one
// that is not durable yet. It changes nothing. With ErrEdited the State is returned
// as it was edited, with ErrFutureVersion as far as this version knows of it.
func (s *Store) Read(id session.ID) (*session.State, uint64, error) {
	dir, ld, err := s.read(id)
	if ld == nil {
		return nil, 0, err
	}
	return ld.state, ld.at.Seq, errors.Join(err, dir.Close())
}

// read loads a session and leaves its folder open for more, also where it says that the
// session was edited outside, or is of a newer version.
func (s *Store) read(id session.ID) (writer.FS, *loaded, error) {
	var err error
	for tries, alone := 0, 0; tries < readTries && alone < 2; tries++ {
		var dir writer.FS
		dir, err = s.sessionDir(id)
		if err != nil {
			break
		}
		var ld *loaded
		if ld, err = read(dir, id); ld != nil {
			if err != nil {
				err = fmt.Errorf("read session %s: %w", id, err)
			}
			return dir, ld, err
		}
		_ = dir.Close()
		if held, herr := s.Holder(id); herr != nil || held == nil {
			alone++ // the writer may have gone since; the second time it is as it is
		}
	}
	return nil, nil, fmt.Errorf("read session %s: %w", id, damagedIn(id, sessionsDir+"/"+id.String(), err))
}

// readWhole is read for who goes on from what is read.
func (s *Store) readWhole(id session.ID) (writer.FS, *loaded, error) {
	dir, ld, err := s.read(id)
	if err != nil {
		if dir != nil {
			_ = dir.Close()
		}
		return nil, nil, err
	}
	return dir, ld, nil
}

// read is join, with what there is to show of a session that is not to be written.
func read(dir writer.FS, id session.ID) (*loaded, error) {
	ld, err := join(dir, id)
	if err == nil {
		if ld.edited != nil {
			err = unreadable("load session", dir.Name(), ld.edited)
		}
		return ld, err
	}
	err = unreadable("load session", dir.Name(), err)
	if errors.Is(err, ErrFutureVersion) {
		if st, at, shown := asWritten(dir, id); shown == nil {
			return &loaded{state: st, at: at}, err
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
