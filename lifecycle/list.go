package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
)

// An Info is one session in a listing. Its Status is that of [session.Status.Seen]. If Err
// is set, the session cannot be read, and only the ID is reliable.
type Info struct {
	wire.Summary
	// Shown is when state.json was written that the Summary is of; zero if it is of the log.
	Shown time.Time
	Err   error

	moved time.Time // when it was moved to corrupted/; zero if it was not, or if that is not known
}

// List returns all sessions, the most recently updated first. A session that cannot be
// read is listed with its error. List reads the beginning of each state.json, with one
// worker per processor. It reads the log of a session that is active, unless its state.json
// is larger than 1 MiB, and of a session whose state.json cannot be read.
func (s *Store) List() ([]Info, error) {
	dir, err := writer.OpenToList(s.root(), sessionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	folders := foldersOf(sessionsDir, entries)
	all := make([]Info, len(folders))
	var next atomic.Int64
	var g errgroup.Group
	for range min(runtime.GOMAXPROCS(0), 1+len(folders)/64) {
		g.Go(func() error {
			buf := make([]byte, folder.SummaryBytes)
			for i := next.Add(1) - 1; i < int64(len(folders)); i = next.Add(1) - 1 {
				all[i] = summary(dir, folders[i], buf)
			}
			return nil
		})
	}
	_ = g.Wait()
	return sorted(all), nil
}

// sorted returns the Infos of the sessions that still exist, in the order of List. It sorts
// pointers, because an Info has half a kilobyte.
func sorted(all []Info) []Info {
	order := make([]*Info, 0, len(all))
	for i := range all {
		if all[i].Err != errDeleted { //nolint:errorlint // it is never wrapped
			order = append(order, &all[i])
		}
	}
	slices.SortFunc(order, func(a, b *Info) int {
		if c := b.UpdatedAt.Compare(a.UpdatedAt); c != 0 {
			return c
		}
		return b.ID.Compare(a.ID)
	})
	infos := make([]Info, len(order))
	for i, info := range order {
		infos[i] = *info
	}
	return infos
}

// Incarnation returns the incarnation of a session, see [Session.Incarnation], or "" if it
// cannot be read.
func (s *Store) Incarnation(id session.ID) string {
	ld, _ := s.read(id)
	if ld == nil {
		return ""
	}
	_ = ld.Dir.Close()
	return ld.At.Incarnation
}

// errDeleted means that a session was removed between the listing and the reading.
var errDeleted = errors.New("deleted")

// summary returns a session for a listing. List says when it reads the log.
func summary(dir writer.FS, f sessionFolder, buf []byte) Info {
	sum, err := readSummary(dir, f, buf)
	if err == nil && sum.Status != session.StatusActive {
		return sum
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := dir.Lstat(f.name); gone != nil {
			return Info{Summary: wire.Summary{ID: f.id}, Err: errDeleted}
		}
	}
	held, ever := holds(dir, f)
	if err == nil && !ever {
		sum.Status = seen(&sum.Summary, false)
		return sum
	}
	info, serr := dir.Lstat(f.name + "/" + folder.StateFile)
	switch {
	case err == nil && (serr != nil || info.Size() > commit.SmallFile):
		if again, rerr := readSummary(dir, f, buf); rerr == nil { // the holder may just have paused it
			sum = again
		}
	default:
		if logged, lerr := logged(dir, f.id); lerr == nil {
			sum, err = Info{Summary: logged}, nil
		} else if err != nil && !errors.Is(err, ErrFutureVersion) {
			err = lerr
		}
	}
	sum.ID, sum.Status, sum.Err = f.id, seen(&sum.Summary, held), damagedIn(f.id, f.path, err)
	return sum
}

// seen returns the status of a session as people are shown it. held says whether a process has it
// open.
func seen(sum *wire.Summary, held bool) session.Status {
	return sum.Status.Seen(held || heldFor(sum.Status, sum.Holder) != nil)
}

// logged returns the summary of a session from its log.
func logged(sessions writer.FS, id session.ID) (wire.Summary, error) {
	dir, err := writer.OpenDir(sessions, id.String())
	if err != nil {
		return wire.Summary{}, err
	}
	defer dir.Close()
	ld, err := folder.Load(dir, id)
	if err != nil {
		return wire.Summary{}, err
	}
	return ld.Summary()
}

// holds reports whether a session is held, and whether it ever was. When that is not known
// it counts as held.
func holds(dir writer.FS, f sessionFolder) (held, ever bool) {
	held, ever, err := writer.Locked(dir, f.name+"/"+leaseFile)
	return held || err != nil, ever
}

// readSummary reads the summary in state.json.
func readSummary(dir writer.FS, f sessionFolder, buf []byte) (Info, error) {
	name := f.name + "/" + folder.StateFile
	var sum wire.Summary
	n, shown, err := writer.ReadHead(dir, name, buf)
	if err == nil {
		sum, err = wire.DecodeSummary(buf[:n])
	}
	if err == nil && sum.ID != f.id {
		err = fmt.Errorf("state.json is that of session %s", sum.ID)
	}
	if err != nil {
		return Info{}, folder.Unreadable("read", filepath.Join(dir.Name(), name), err)
	}
	return Info{Summary: sum, Shown: shown}, nil
}

// Read returns the newest State of a session in its files and the sequence number. It takes
// no lock, even if another process holds the session, and changes nothing. While a writer
// is live the State may not be durable yet. With ErrEdited Read also returns the State as it
// was edited, and with ErrFutureVersion the part of it that this version understands.
func (s *Store) Read(id session.ID) (*session.State, uint64, error) {
	ld, err := s.read(id)
	if ld == nil {
		return nil, 0, err
	}
	return ld.State, ld.At.Seq, errors.Join(err, ld.Dir.Close())
}

// ReadAt returns a session's State at a record, without a lock. It begins with the nearest
// snapshot and applies the records after it. The error wraps ErrNotFound if the session has
// no such record, and ErrCorrupt if a record that is needed is damaged or gone.
func (s *Store) ReadAt(id session.ID, seq uint64) (*session.State, error) {
	if !s.saves() {
		return nil, fmt.Errorf("read session %s at %d: %w", id, seq, ErrNotFound)
	}
	return within(s, "read", id, func(dir writer.FS) (*session.State, error) {
		st, _, err := folder.StateAt(dir, id, seq)
		if err != nil {
			return nil, fmt.Errorf("read session %s at %d: %w", id, seq, err)
		}
		return st, nil
	})
}

// read loads a session and leaves its folder open. It returns the contents together with
// an error if the session was edited outside or is of a newer version.
func (s *Store) read(id session.ID) (ld *folder.Contents, err error) {
	for tries, alone := 0, 0; tries < folder.Tries && alone < 2; tries++ {
		var dir writer.FS
		if dir, err = s.sessionDir(id); err != nil {
			break
		}
		if ld, err = folder.Look(dir, id); ld != nil {
			break
		}
		_ = dir.Close()
		if held, herr := s.Holder(id); herr != nil || held == nil {
			alone++ // the writer may have ended during the look; a second error without one is real
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

// readWhole is read for a caller that needs a correct State: after an error the folder is
// closed.
func (s *Store) readWhole(id session.ID) (*folder.Contents, error) {
	ld, err := s.read(id)
	if err != nil && ld != nil {
		_ = ld.Dir.Close()
	}
	return ld, err
}

// Holder returns the holder of a session, or nil when it is not held: the process that has it
// open, or the one for which it is held between two that have.
func (s *Store) Holder(id session.ID) (*Owner, error) {
	owner, held, err := writer.Holder(s.root(), sessionsDir+"/"+id.String()+"/"+leaseFile)
	if err != nil {
		return nil, err
	}
	if held {
		return &owner, nil
	}
	return s.turnOf(id), nil
}

// turnOf returns the process for which a session is held that nobody has open, or nil.
func (s *Store) turnOf(id session.ID) *Owner {
	dir, err := writer.OpenDir(s.root(), sessionsDir)
	if err != nil {
		return nil // there is no session, or none that can be read
	}
	defer dir.Close()
	sum, err := readSummary(dir, sessionFolder{name: id.String(), id: id}, make([]byte, folder.SummaryBytes))
	if err != nil {
		return nil // nothing is held for anybody in what cannot be read
	}
	return heldFor(sum.Status, sum.Holder)
}

// Resolve turns what a person typed into an ID: an ID, the prefix of exactly one ID,
// "latest" or "" for the latest session, or a module's name for its newest session. An
// exact ID and a module's name win over a prefix. The error is a [*DamagedError] if the
// session is in corrupted/.
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

// Latest returns the latest session: the one that was made last, or a session of hooks that was
// changed since. With a module it returns the session of that module that was updated last. The
// error wraps ErrNotFound if there is none.
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

// newest returns the first session of a module in a listing. Those that cannot be read are
// listed last.
func newest(infos []Info, module string) (session.ID, bool) {
	i := slices.IndexFunc(infos, func(i Info) bool { return i.ID.Module == module })
	if i < 0 {
		return session.ID{}, false
	}
	return infos[i].ID, true
}

// latest returns the session that the hint names. If the hint is missing or leads nowhere,
// it returns the newest session. If the session is in corrupted/, the error is a
// [*DamagedError].
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
		if info.Err == nil && info.Origin != session.OriginImport {
			return info.ID, nil
		}
	}
	if len(infos) > 0 {
		return session.ID{}, fmt.Errorf("no session here yet but imported ones, which have to be named: lopen session list names them: %w", ErrNotFound)
	}
	return session.ID{}, fmt.Errorf("no session here yet: %w", ErrNotFound)
}

// OfAgent returns the session that stands for one of an agent's own: the newest of the module of which
// [session.Header.StandsFor] says so. It reads no other module's sessions. The error wraps ErrNotFound if there
// is none.
func (s *Store) OfAgent(module, agentSession string) (session.ID, error) {
	all, err := s.folders(sessionsDir)
	if err != nil {
		return session.ID{}, err
	}
	all = slices.DeleteFunc(all, func(f sessionFolder) bool { return f.id.Module != module })
	slices.SortFunc(all, func(a, b sessionFolder) int { return b.id.Compare(a.id) })
	var errs []error
	for _, f := range all {
		st, _, err := s.Read(f.id)
		if st != nil {
			if h := st.Header(); h.StandsFor(agentSession) {
				return f.id, nil // what is wrong with it is said when it is opened
			}
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return session.ID{}, errors.Join(append(errs, fmt.Errorf("no session stands for %q: %w", agentSession, ErrNotFound))...)
}

const (
	metaFile = "meta.json"
	// maxName bounds a session's display name, in bytes.
	maxName = 256
)

// Meta is a session's name and pin, the content of meta.json. It is written under the store
// lock and not under the lease, so that a session can be named while it runs.
type Meta struct {
	Name   string `json:"name,omitempty"`   // display name; "" means none
	Pinned bool   `json:"pinned,omitempty"` // Prune leaves the session alone
}

// Meta returns the name and the pin of a session. It is zero if there are none.
func (s *Store) Meta(id session.ID) (Meta, error) {
	return readMeta(s.root(), sessionsDir+"/"+id.String()+"/"+metaFile)
}

func readMeta(dir writer.FS, name string) (Meta, error) {
	var m Meta
	err := folder.ReadSmall(dir, name, &m)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return m, err
}

// SetMeta changes the name and the pin of a session, durably. The session may be held. The
// name is redacted.
func (s *Store) SetMeta(ctx context.Context, id session.ID, change func(*Meta) error) error {
	if change == nil {
		return absent("name session", id.String(), "function")
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	dir, err := s.sessionDir(id)
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	defer dir.Close()
	m, err := s.Meta(id)
	if err != nil && !errors.Is(err, ErrCorrupt) { // a damaged meta.json is replaced
		return err
	}
	was := m
	if err := change(&m); err != nil {
		return err
	}
	if m.Name, err = s.displayName(m.Name); err != nil {
		return err
	}
	if err := writer.RemoveTemps(dir, ".", func(of string) bool { return of == metaFile }); err != nil {
		return err
	}
	if err := folder.WriteSmall(dir, metaFile, m); err != nil {
		return err
	}
	if m.Name != was.Name {
		s.Logger(id).Info().Str("name", m.Name).Msg("session renamed")
	}
	if m.Pinned != was.Pinned {
		s.Logger(id).Info().Msg("session " + pinnedText[m.Pinned])
	}
	return nil
}

// pinnedText returns the end of a log line about a pin.
var pinnedText = map[bool]string{true: "pinned", false: "unpinned"}

// displayName returns a name as it is stored: redacted.
func (s *Store) displayName(name string) (string, error) {
	name, _ = s.opts.Policy.redactor().String(name)
	return name, validName(name)
}

func validName(name string) error {
	if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return &Error{Op: "name session", Path: fmt.Sprintf("%q", name), Class: writer.ClassInvalid,
			Err: fmt.Errorf("give at most %d bytes of printable text on one line", maxName)}
	}
	return nil
}
