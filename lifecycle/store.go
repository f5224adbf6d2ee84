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
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/decisions"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan/criteria"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/private"
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
	Command string           // the command in the record of a lock's owner; "" means the name of the executable
	Now     func() time.Time // the clock; nil means time.Now
	Policy  Policy           // how sessions are saved and retained; immutable once the store is open
	// Outside returns the ignore files from outside of a work tree, see [checkpoint.Options], and
	// Git the present state of its repository. Repository returns the state of a repository
	// within it, see [files.Options]. folder is the work tree's. All may be nil.
	Outside    func(ctx context.Context, folder string) []files.IgnoreFile
	Git        func(ctx context.Context, folder string) checkpoint.Git
	Repository func(ctx context.Context, folder, path string) string
	// Memory has the hashes of the snapshots that spare the reading of files. It lies where an agent in the
	// project does not write. Keys are paths below .lopen. With nil, what an earlier process remembered is not
	// believed, and every file is read.
	Memory files.Memory
	// For is the process for which sessions are held beyond the life of this one; nil means none.
	// A session whose Holder it is is opened as it is, and Close leaves it active.
	For *session.Holder
	// Worktree returns an error unless a folder is a linked work tree of the project. What a
	// session says of its work tree is foreign text, which could name any folder of the user;
	// nil allows none but the project's.
	Worktree func(folder string) error
}

// A Policy says when a session is saved by itself, what is redacted before it is stored,
// and which States and checkpoints are retained. It is part of a store's [Options] and the
// same for all sessions of the store. A State in which the phase changed or a component was
// completed is always stored as a snapshot.
type Policy struct {
	Autosave   time.Duration // longest time from an Update to its commit; 0 leaves it to the next Save
	Interval   int           // number of commits between two snapshots; 0 means none
	Iterations bool          // also a snapshot at each commit that adds iterations
	// Redact hides credentials before a message, an event or the end of an output is
	// stored; nil means the built-in rules.
	Redact *redact.Redactor
	// Unredacted turns redaction off; Redact is then ignored.
	Unredacted bool
	// CheckpointBytes bounds what the project's checkpoints take on the disk. The bound is
	// never more than a tenth of the free space. 0 means no bound.
	CheckpointBytes int64
	// JournalBytes bounds what the log of a session takes on the disk. Above the bound the
	// oldest records of the State are dropped, so that at most half of it is left. Messages,
	// events and attempts stay and do not count. 0 means no bound.
	JournalBytes int64
	// Compression says how closed segments of the log, snapshots, outputs and objects of
	// checkpoints are compressed. What is there is read however it is compressed.
	Compression codec.Options
	Retention   int // number of retained snapshots of each kind; 0 means all. Those of iterations all stay
	// RewindPermitted lets Open finish an interrupted rewind even if the system does not
	// allow every change. It logs those that are not allowed, and leaves the files as they are.
	RewindPermitted bool
}

// redactor returns the Redactor to use. A nil Redactor hides nothing.
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
	pace      time.Duration // Quiet and Every of the actors; 0 means the default. Immutable once a session is open.

	unsaved atomic.Uint64 // number of sessions that were created, in an unsaved store

	outputs sync.Map // channels that are closed when an output is compressed
	held    sync.Map // the locks of modules that this store holds: *ModuleLock by module
	fences  sync.Map // why sessions may not be written any more: error by session.ID

	unclosed sync.Map // the sessions that are open, by *Session

	// at is .lopen. It changes only after .lopen was removed and made again.
	at atomic.Pointer[writer.FS]
}

func (s *Store) root() writer.FS { return *s.at.Load() }

// Open opens the store of the project in this folder. It creates nothing and returns
// ErrNoStore if there is no .lopen. A .lopen that is a file or a symlink is refused with
// ErrInvalid.
func Open(project string, opts Options) (*Store, error) {
	pfs, err := writer.OpenFS(project)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	return openOn(pfs, opts)
}

// openOn opens the store of a project's folder. The store owns pfs from then on, and openOn
// closes it after an error.
func openOn(pfs writer.FS, opts Options) (*Store, error) {
	root, err := writer.OpenToList(pfs, Dir)
	if err != nil {
		_ = pfs.Close()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open %s: %w", filepath.Join(pfs.Name(), Dir), ErrNoStore)
		}
		return nil, err
	}
	return newStore(pfs, root, opts), nil
}

// newStore returns a store on open folders: the project's folder and .lopen.
func newStore(pfs, root writer.FS, opts Options) *Store {
	if opts.Command == "" {
		opts.Command = filepath.Base(os.Args[0])
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Memory == nil {
		opts.Memory = files.Own()
	}
	s := &Store{project: pfs, opts: opts, maxRecord: maxRecord, segment: journal.SegmentSize}
	s.at.Store(&root)
	s.reserve = &commit.Reserve{Root: s.root, Logger: opts.Logger}
	return s
}

// Init opens the store of a project, and makes it first, durably, if there is none. The
// boolean reports whether it was made.
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

// layout makes the folders and the .gitignore, and .lopen itself if it was removed. Two
// processes may do so at once, since each step accepts what the other process made.
func (s *Store) layout() error {
	if !s.saves() {
		return fmt.Errorf("create store: %w", errUnsaved)
	}
	if err := s.reroot(); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	if err := s.fill(); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	return nil
}

// fill makes what belongs into .lopen.
func (s *Store) fill() error {
	if err := errors.Join(private.Close(s.root(), "."), writer.MkdirDurable(s.root(), modulesDir), private.Close(s.root(), modulesDir)); err != nil {
		return err
	}
	if err := private.Make(s.root(), sessionsDir); err != nil {
		return err
	}
	for _, dir := range privateDirs {
		if err := private.Keep(s.root(), dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // else it is kept when it is made
			return err
		}
	}
	if private.Ignored(s.project, Dir) {
		return nil
	}
	return private.Offer(s.root(), ".")
}

// privateDirs are the folders that are never for a repository, whatever the .gitignore in .lopen says, which may have
// come with a clone: each has one of its own. A plan may be versioned.
var privateDirs = []string{checkpointsDir, blobsDir, trashDir, corruptedDir, movedDir, "cache", "sidecar.git", "transactions"}

// reroot opens .lopen again, and makes it if needed, if the open folder no longer has that
// name.
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
	dir, err := writer.OpenToList(s.project, Dir)
	if err != nil {
		return err
	}
	s.at.Store(&dir) // the old one stays open, because calls of other sessions may use it
	return nil
}

// sessionDir opens the folder of a session. The error is ErrNotFound if there is none.
func (s *Store) sessionDir(id session.ID) (writer.FS, error) {
	name := sessionsDir + "/" + id.String()
	if writer.Moved(s.root(), name) {
		return nil, ErrNotFound
	}
	dir, err := writer.OpenDir(s.root(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	return dir, err
}

// within calls fn with the folder of a session. what names the operation in an error of
// opening the folder. In an unsaved store it returns none: its sessions have no log.
func within[T any](s *Store, what string, id session.ID, fn func(dir writer.FS) (T, error)) (none T, err error) {
	if !s.saves() {
		return none, nil
	}
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

// Path returns the absolute path of the .lopen folder, for messages.
func (s *Store) Path() string { return s.root().Name() }

// Project returns the project's folder. All reading of the project's own files goes through
// it and cannot leave the folder.
func (s *Store) Project() writer.FS { return s.project }

// Close closes and flushes every session that this store opened. It waits until they are
// durable or ctx ends; the error names those that are not durable. While a session is stuck
// the store's folders stay open for its writer.
func (s *Store) Close(ctx context.Context) error {
	if ctx == nil {
		return absent("close store", s.Path(), "context")
	}
	err := errors.Join(s.sup.Close(ctx), s.leaveSessions(ctx))
	s.awaitOutputs(ctx)
	if !s.sup.Ended() {
		return err
	}
	return errors.Join(err, s.root().Close(), s.project.Close())
}

// lock takes the store lock, which is held for a moment only. It waits until ctx ends, at
// most ten seconds; then the error wraps a [*BusyError] that names the holder.
func (s *Store) lock(ctx context.Context) (*writer.Lock, error) {
	l, err := writer.LockWait(ctx, s.root(), storeLock, writer.OwnerOf(os.Getpid(), s.opts.Command))
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return l, nil
}

// lockCleared is lock, and then ends interrupted moves, and removes the folders of interrupted Makes and imports: an unfinished fork
// shares files with another session, so that deleting the other one would free no space. What
// cannot be removed keeps nobody from what the lock is taken for; doctor names it.
func (s *Store) lockCleared(ctx context.Context) (*writer.Lock, error) {
	lock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	// First the moves: an import that was cut off brings back what it does not see in sessions/.
	moves := errors.Join(writer.FinishMoves(s.root(), sessionsDir), writer.FinishMoves(s.root(), trashDir))
	cleared, err := carry.ClearStagings(s.root())
	if err = errors.Join(moves, err, commit.ClearUnfinished(s.root())); err != nil {
		s.opts.Logger.Warn().Err(err).Msg("an unfinished session could not be removed")
	}
	if cleared {
		s.free()
	}
	return lock, nil
}

// Config returns the content of config.json, or nil if there is none.
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

// IgnoreInProject adds .lopen/ to the project's own .gitignore, once and with the line
// endings of that file, and then removes the .gitignore inside .lopen.
func (s *Store) IgnoreInProject() error { return private.Ignore(s.project, Dir) }

// Specification returns what is remembered of a module's specification: what it was when the
// plan was made of it, or was last updated. The error wraps fs.ErrNotExist if nothing is.
func (s *Store) Specification(module string) (*criteria.Record, error) {
	var r *criteria.Record
	err := s.inModule(module, func(dir writer.FS) (err error) {
		r, err = criteria.Load(dir)
		return err
	})
	return r, err
}

// RememberSpecification replaces what is remembered of a module's specification, durably. The
// caller has written the plan that it is about.
func (s *Store) RememberSpecification(module string, r *criteria.Record) error {
	if r == nil {
		return absent("remember specification", module, "record")
	}
	return s.inModule(module, func(dir writer.FS) error {
		if _, err := s.keepModule(module); err != nil {
			return fmt.Errorf("remember specification: %w", err)
		}
		return decisions.Alone(dir, writer.OwnerOf(os.Getpid(), s.opts.Command), func() error { return r.Save(dir) })
	})
}

// beforeUnsaved is the counter before the first ID of an unsaved store. No store on a disk
// reaches it.
const beforeUnsaved = 1_000_000_000

// OpenUnsaved opens a project for sessions of which nothing is saved. It needs no .lopen,
// reads none and makes none. It opens no file for writing, so that it works on a full or
// read-only disk.
//
// The State and the pauses of a session work as with files. But no session is found again:
// Open, Read, Latest, Fork and Delete return ErrNotFound, even for an open session. Append,
// AppendEvent and Record check what they accept and drop it. Output and Checkpoint drop what
// they are given: messages, log, outputs and checkpoints are empty, and the entry that
// Checkpoint returns has no ID. Checkpoint and Look compare the project's files with what the
// same session saw before. Calls that write a plan or take the lock of a module fail with
// errors.ErrUnsupported. IDs begin with the counter 1,000,000,001.
func OpenUnsaved(project string, opts Options) (*Store, error) {
	pfs, err := writer.OpenFS(project)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	return newStore(pfs, nothing(filepath.Join(pfs.Name(), Dir)), opts), nil
}

// saves reports whether the store has files: it is not one of OpenUnsaved.
func (s *Store) saves() bool {
	_, unsaved := s.root().(nothing)
	return !unsaved
}

// createUnsaved is Create in an unsaved store.
func (s *Store) createUnsaved(module string, state func(session.ID, time.Time) (*session.State, error)) (*Session, error) {
	now := s.opts.Now()
	id, err := session.NewID(module, now, beforeUnsaved+s.unsaved.Add(1))
	if err != nil {
		return nil, &Error{Op: "create session", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	st, err := state(id, now)
	if err != nil {
		return nil, err
	}
	mark := &atomic.Pointer[commit.Durable]{}
	mark.Store(&commit.Durable{State: st})
	return s.run(st, &discard{}, mark)
}

// discard is the Committer of a session in an unsaved store. It acknowledges every batch and
// drops it.
type discard struct{ seq uint64 } // Owned by the session's actor.

func (d *discard) Commit(actors.Batch) (actors.Committed, error) {
	d.seq++
	return actors.Committed{Seq: d.seq}, nil
}

func (d *discard) Publication(bool) func() error { return nil }
func (d *discard) Published(error)               {}
func (d *discard) Check() error                  { return nil }
func (d *discard) Recover() error                { return nil }
func (d *discard) Close() error                  { return nil }
