package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// Dir is the name of the store's folder in a project.
const Dir = ".lopen"

const (
	sessionsDir = "sessions"
	modulesDir  = "modules"
	storeLock   = ".lock"
	leaseFile   = ".lock"
	childFile   = ".child"
	pauseFile   = "pause-request"
	wakeFile    = "wake-request"
	idsFile     = "ids.json"
	stateFile   = "state.json"
	metricsFile = "metrics.json"
	latestLink  = "latest"
	latestText  = "latest.txt"

	filePerm = 0o600
)

// Options of a store. The zero value works.
type Options struct {
	Logger  zerolog.Logger   // lifecycle steps at info, commits and publications at debug; the zero value logs nothing
	Command string           // what the holder record says is running; "" means the name of the executable
	Now     func() time.Time // the clock; nil means time.Now
	Policy  Policy           // how sessions are kept; immutable once the store is open
	// Outside are the ignore files from outside of the project's tree, see
	// [checkpoint.Options], and Git is what its repository is now. nil is none.
	Outside func() []files.IgnoreFile
	Git     func() checkpoint.Git
}

// A Store is the .lopen folder of one project.
type Store struct {
	project writer.FS // the project's folder; Immutable after Open.
	opts    Options   // Immutable after Open.
	sup     actors.Supervisor

	low       atomic.Bool   // the disk was nearly full when it was looked at last
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
	project, err := filepath.Abs(project)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	pfs, err := writer.OpenFS(project)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	return openOn(pfs, opts)
}

// openOn opens the store of a project's folder, which is the store's from now on.
func openOn(pfs writer.FS, opts Options) (*Store, error) {
	root, err := openDir(pfs, Dir)
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
	s.keepBallast()
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
	dir, err := openDir(s.project, Dir)
	if err != nil {
		return err
	}
	s.at.Store(&dir) // the old one stays open: other sessions may be inside a call
	return nil
}

// openDir opens a folder below dir that must be one itself: a symlink or a
// file in its place is refused.
func openDir(dir writer.FS, name string) (writer.FS, error) {
	path := filepath.Join(dir.Name(), name)
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, opening(path, err)
	}
	if !info.IsDir() {
		what := "a file"
		if info.Mode()&fs.ModeSymlink != 0 {
			what = "a symlink"
		}
		return nil, &Error{Op: "open", Path: path, Class: writer.ClassInvalid,
			Err: fmt.Errorf("it is %s and not a folder; move it away", what)}
	}
	sub, err := dir.Sub(name)
	if err != nil {
		return nil, opening(path, err)
	}
	return sub, nil
}

// opening names a folder in full: the system says of it only where it lies below another.
func opening(path string, err error) error {
	return writer.NewError("open", path, writer.NotCommitted, err)
}

// sessionDir opens the folder of a session; ErrNotFound says that there is none.
func (s *Store) sessionDir(id session.ID) (writer.FS, error) {
	dir, err := openDir(s.root(), sessionsDir+"/"+id.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	return dir, err
}

// within calls fn with the folder of a session, for what is said in an error.
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
// [writer.Patience]; the error wraps a [*BusyError] that names the holder.
func (s *Store) lock(ctx context.Context) (*writer.Lock, error) {
	l, err := writer.LockWait(ctx, s.root(), storeLock, writer.Self(s.opts.Command))
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return l, nil
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
