package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// Dir is the name of the store's folder in a project.
const Dir = folder.Store

const (
	sessionsDir = folder.Sessions
	modulesDir  = "modules"
	storeLock   = ".lock"
	leaseFile   = folder.LeaseFile
	childFile   = ".child"
	pauseFile   = "pause-request"
	wakeFile    = "wake-request"
	idsFile     = folder.IDsFile
	latestLink  = "latest"
	latestText  = "latest.txt"

	filePerm = 0o600
)

// Options of a store. The zero value works.
type Options struct {
	Logger  zerolog.Logger   // lifecycle steps at info, commits and publications at debug; the zero value logs nothing
	Command string           // what the holder record says is running; "" means the name of the executable
	Now     func() time.Time // the clock; nil means time.Now
	Policy  Policy           // how sessions are saved and retained; immutable once the store is open
	// Outside are the ignore files from outside of the project's tree, see
	// [checkpoint.Options], and Git is what its repository is now. nil is none.
	Outside func() []files.IgnoreFile
	Git     func() checkpoint.Git
}

// A Policy says when a session is saved without being asked, what is hidden before it
// is stored, and which States and checkpoints stay. It is part of a store's [Options],
// the same for all sessions of the store, and never changes. States of a
// changed phase and of a completed component are always stored whole, as snapshots.
type Policy struct {
	Autosave   time.Duration // after an Update, at the latest; 0 leaves it to the next Save
	Interval   int           // a snapshot every so many commits; 0 is none
	Iterations bool          // and one at each commit in which the iterations grew
	// Redact hides credentials before a message, an event or the end of an output is
	// stored; nil has the built-in rules.
	Redact *redact.Redactor
	// Unredacted keeps credentials as they are: Redact does not count.
	Unredacted bool
	// CheckpointBytes bounds what the project's checkpoints take on the disk, which is
	// never more than a tenth of the free space; 0 is no bound.
	CheckpointBytes int64
	// JournalBytes bounds what the log of a session takes on the disk, without messages,
	// events and attempts, which stay: above it the oldest records of the State are dropped,
	// so that at most half is left. 0 is no bound.
	JournalBytes int64
	Retention    int // how many snapshots of each kind are retained; 0 is all. Those of iterations are all retained
	// RewindPermitted lets Open finish a rewind that was begun although the system does
	// not allow all of it: what it does not is left as it is, and logged.
	RewindPermitted bool
}

// redactor is what hides credentials; nil hides nothing.
func (p *Policy) redactor() *redact.Redactor {
	switch {
	case p.Unredacted:
		return nil
	case p.Redact == nil:
		return &redact.Redactor{}
	}
	return p.Redact
}

// maxRecord is the size in bytes beyond which a change is not written into the
// journal: the State goes to history/ instead, and the record names it.
const maxRecord = 4 << 20

// A Store is the .lopen folder of one project.
type Store struct {
	project writer.FS // the project's folder; Immutable after Open.
	opts    Options   // Immutable after Open.
	sup     actors.Supervisor

	reserve   *commit.Reserve
	maxRecord int           // bytes; Immutable once a session is open.
	segment   int64         // bytes; Immutable once a session is open.
	pace      time.Duration // of publications, see [actors.Options]; 0 is the usual one. Immutable once a session is open.

	unsaved atomic.Uint64 // how many sessions were created, of a store that OpenUnsaved returned

	held sync.Map // the locks of modules that this store holds: *ModuleLock by module

	// at is .lopen; another one only after it was removed and made again.
	at atomic.Pointer[writer.FS]
}

func (s *Store) root() writer.FS { return *s.at.Load() }

// Open opens the store of the project whose folder is named. It creates
// nothing and returns ErrNoStore when there is no .lopen; a .lopen that is a
// file or a symlink is refused with ErrInvalid, whatever it leads to.
func Open(project string, opts Options) (*Store, error) {
	pfs, err := writer.OpenFS(project)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	return openOn(pfs, opts)
}

// openOn opens the store of a project's folder, which is the store's from now on.
func openOn(pfs writer.FS, opts Options) (*Store, error) {
	root, err := writer.OpenDir(pfs, Dir)
	if err != nil {
		_ = pfs.Close()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open %s: %w", filepath.Join(pfs.Name(), Dir), ErrNoStore)
		}
		return nil, err
	}
	return newStore(pfs, root, opts), nil
}

// newStore is a store on open folders: the project's, and its own.
func newStore(pfs, root writer.FS, opts Options) *Store {
	if opts.Command == "" {
		opts.Command = filepath.Base(os.Args[0])
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Store{project: pfs, opts: opts, maxRecord: maxRecord, segment: journal.SegmentSize}
	s.at.Store(&root)
	s.reserve = &commit.Reserve{Root: s.root, Logger: opts.Logger}
	return s
}

// Init opens the store of a project and makes it first where there is none,
// durably. The boolean says that it was made.
func Init(project string, opts Options) (*Store, bool, error) {
	s, err := Open(project, opts)
	if !errors.Is(err, ErrNoStore) {
		return s, false, err
	}
	pfs, err := writer.OpenFS(project)
	if err != nil {
		return nil, false, fmt.Errorf("open project: %w", err)
	}
	s, err = initOn(pfs, opts)
	return s, err == nil, err
}

func initOn(pfs writer.FS, opts Options) (*Store, error) {
	if err := writer.MkdirDurable(pfs, Dir); err != nil {
		_ = pfs.Close()
		return nil, fmt.Errorf("create store: %w", err)
	}
	s, err := openOn(pfs, opts)
	if err != nil {
		return nil, err
	}
	if err := s.layout(); err != nil {
		_ = s.Close(context.Background())
		return nil, err
	}
	s.reserve.Keep()
	s.opts.Logger.Info().Str("path", s.root().Name()).Msg("store created")
	return s, nil
}

// layout makes the folders and the .gitignore, and .lopen itself where it was
// removed. Two processes may do so at once: each step is fine with what the other
// one made.
func (s *Store) layout() error {
	if !s.saves() {
		return fmt.Errorf("create store: %w", errUnsaved)
	}
	if err := s.reroot(); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	for _, dir := range []string{sessionsDir, modulesDir} {
		if err := writer.MkdirDurable(s.root(), dir); err != nil {
			return fmt.Errorf("create store: %w", err)
		}
	}
	if data, _, err := s.projectIgnore(); err == nil && ignores(data) {
		return nil
	}
	if _, err := s.root().Lstat(gitignore); err == nil {
		return nil // a full disk, or one that is mounted read-only, is no matter then
	}
	err := writer.CreateFile(s.root(), gitignore, []byte("*\n"), filePerm)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create store: %w", err)
	}
	return nil
}

// reroot goes over to the .lopen that there is now, if the one that was opened is
// no longer it.
func (s *Store) reroot() error {
	held, err := s.root().Stat(".")
	if err == nil {
		there, err := s.project.Lstat(Dir)
		if err == nil && writer.SameFile(held, there) {
			return nil
		}
	}
	if err := writer.MkdirDurable(s.project, Dir); err != nil {
		return err
	}
	dir, err := writer.OpenDir(s.project, Dir)
	if err != nil {
		return err
	}
	s.at.Store(&dir) // the old one stays open: other sessions may be inside a call
	return nil
}

// sessionDir opens the folder of a session; ErrNotFound says that there is none.
func (s *Store) sessionDir(id session.ID) (writer.FS, error) {
	dir, err := writer.OpenDir(s.root(), sessionsDir+"/"+id.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	return dir, err
}

// within calls fn with the folder of a session, which names the operation in an error.
func within[T any](s *Store, what string, id session.ID, fn func(dir writer.FS) (T, error)) (none T, err error) {
	dir, err := s.sessionDir(id)
	if err != nil {
		return none, fmt.Errorf("%s session %s: %w", what, id, err)
	}
	defer dir.Close()
	return fn(dir)
}

// Logger returns the store's log for lines about a session: each has its ID.
func (s *Store) Logger(id session.ID) *zerolog.Logger {
	log := actors.SessionLog(s.opts.Logger, id)
	return &log
}

// Path is the absolute path of the .lopen folder, for messages.
func (s *Store) Path() string { return s.root().Name() }

// Project is the project's folder. All reading of the project's own files
// goes through it and cannot leave the folder.
func (s *Store) Project() writer.FS { return s.project }

// Close closes every session that this store opened, flushing what they hold.
// It waits until they are durable or ctx ends, and says which are not. A store
// whose session is stuck keeps its folder open for the writer that is inside.
func (s *Store) Close(ctx context.Context) error {
	err := s.sup.Close(ctx)
	if !s.sup.Ended() {
		return err
	}
	return errors.Join(err, s.root().Close(), s.project.Close())
}

// lock takes the store lock for a moment. It is waited for until ctx ends, at most for
// ten seconds; the error wraps a [*BusyError] that names the holder.
func (s *Store) lock(ctx context.Context) (*writer.Lock, error) {
	l, err := writer.LockWait(ctx, s.root(), storeLock, writer.Self(s.opts.Command))
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return l, nil
}

// lockCleared is lock, and removes what creations that were cut off left: of a fork it shares
// the room that the session which it came from takes.
func (s *Store) lockCleared(ctx context.Context) (*writer.Lock, error) {
	lock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	if err := commit.ClearUnfinished(s.root()); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return lock, nil
}

// Config returns the content of config.json, nil when there is none.
func (s *Store) Config() ([]byte, error) {
	data, err := writer.ReadFile(s.root(), "config.json", 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// SetConfig replaces config.json, durably.
func (s *Store) SetConfig(data []byte) error {
	return writer.ReplaceFile(s.root(), "config.json", data, filePerm)
}

const gitignore = ".gitignore"

// IgnoreInProject adds .lopen/ to the project's own .gitignore, once and with the
// line ends that the file has, and takes the one inside .lopen away.
func (s *Store) IgnoreInProject() error {
	data, mode, err := s.projectIgnore()
	if err != nil {
		return fmt.Errorf("add %s to %s: %w", Dir, gitignore, err)
	}
	if !ignores(data) {
		end := "\n"
		if bytes.Contains(data, []byte("\r\n")) {
			end = "\r\n"
		}
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, end...)
		}
		data = append(data, Dir+"/"+end...)
		if err := writer.ReplaceFile(s.project, gitignore, data, mode); err != nil {
			return fmt.Errorf("add %s to %s: %w", Dir, gitignore, err)
		}
	}
	if err := s.root().Remove(gitignore); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s/%s: %w", Dir, gitignore, err)
	}
	return nil
}

func (s *Store) projectIgnore() ([]byte, fs.FileMode, error) {
	data, err := writer.ReadFile(s.project, gitignore, 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o644, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := s.project.Lstat(gitignore)
	if err != nil {
		return nil, 0, err
	}
	return data, info.Mode().Perm(), nil
}

// ignores says whether a .gitignore names the store's folder.
func ignores(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		switch strings.TrimSpace(line) {
		case Dir, Dir + "/", "/" + Dir, "/" + Dir + "/":
			return true
		}
	}
	return false
}
