package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// MainTree is the name of the chain of a project's main work tree.
const MainTree = "main"

// ErrNotFound means that there is no such checkpoint, or that it was removed.
var ErrNotFound = errors.New("no such checkpoint")

// Options of a Store. The zero value works.
type Options struct {
	// Alive reports whether a session is held or its command still runs; the tasks of
	// another one have ended without an entry. nil means that all are alive.
	Alive func(session string) bool
	// Outside returns the ignore files from outside of the tree (git's info/exclude and
	// core.excludesFile), the weakest first. nil means none.
	Outside func(ctx context.Context) []files.IgnoreFile
	// Repository returns the state of a repository within the tree, see [files.Options]. nil knows of none.
	Repository func(ctx context.Context, path string) string
	// Memory has the hash of what Remember wrote. nil means that nothing that an earlier process remembered is believed.
	Memory files.Memory
	// Lopen is the .lopen folder, into which Apply moves what is hidden. nil means that it stays.
	Lopen writer.FS
}

// A Store is the chain of checkpoints of one work tree.
type Store struct {
	dir    writer.FS
	name   string
	blobs  *blob.Store
	tree   writer.FS
	opts   Options
	budget files.Budget // of each task, see defaultBudget

	folders folderCache
	grown   atomic.Int64 // bytes that were stored since objects was counted

	chainMu sync.Mutex
	read    *chain               // Guarded by chainMu: what was last read of the file.
	rules   map[blob.Hash]*Rules // Guarded by chainMu.

	mu      sync.Mutex
	base    *files.Snapshot   // Guarded by mu: the snapshot that the newest Create here stored, or nil.
	loaded  bool              // Guarded by mu: an attempt was made to load base.
	kept    *files.Snapshot   // Guarded by mu: what was remembered last, as far as this Store knows, or nil.
	begun   map[string]uint64 // Guarded by mu: for each session, the entry before its active task.
	mine    fs.FileInfo       // Guarded by mu: of the chain's file if this Store wrote it last; else nil.
	objects int64             // Guarded by mu: bytes of the needed objects; -1 before they were counted.

	seenMu sync.Mutex
	seen   *files.Snapshot // Guarded by seenMu.
}

// New returns the Store of the chain name in the checkpoints folder dir, with its blobs and its
// work tree. The caller closes all three. New does not touch the disk.
func New(dir writer.FS, name string, blobs *blob.Store, tree writer.FS, opts Options) *Store {
	return &Store{dir: dir, name: name, blobs: blobs, tree: tree, opts: opts, budget: defaultBudget, begun: map[string]uint64{}, objects: -1}
}

// Continue takes over the active tasks of another Store of the same caller, which is no longer
// used. Otherwise these tasks would count as ended without an entry.
func (s *Store) Continue(old *Store) {
	old.mu.Lock()
	begun := maps.Clone(old.begun)
	old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = begun
}

// ContinueTasks takes over the active tasks of a session as of its newest checkpoint, which an
// earlier process made that worked for the same holder. See [Store.Continue].
func (s *Store) ContinueTasks(newest *Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range newest.Active {
		if a.Session == newest.Session {
			s.begun[a.Session] = a.Begun
		}
	}
}

// List returns all entries including removed ones, the oldest first. Damaged lines are
// returned as faults; only their own entries are lost. A last line without a line feed is
// ignored, because a crash may leave one. List fails if the file cannot be read, or with
// class future-version.
func (s *Store) List() (entries []*Entry, faults []error, err error) {
	c, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(c.entries), slices.Clone(c.faults), nil
}

// Find returns the entry of an ID. The error wraps [ErrNotFound] if there is none or it was
// removed.
func (s *Store) Find(id ID) (*Entry, error) {
	c, err := s.load()
	if err != nil {
		return nil, err
	}
	if e := c.live(func(e *Entry) bool { return e.ID == id }); e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("checkpoint %s: %w", id.Short(), ErrNotFound)
}

// Lookup returns the entry of a full ID, as a session's log has it, even if it was removed,
// because the session's line continues through it. The error wraps [ErrNotFound] if there is
// none.
func (s *Store) Lookup(name string) (*Entry, error) {
	id, err := ParseID(name)
	if err != nil {
		return nil, err
	}
	c, err := s.load()
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(c.entries, func(e *Entry) bool { return e.ID == id }); i >= 0 {
		return c.entries[i], nil
	}
	return nil, fmt.Errorf("checkpoint %s: %w", id.Short(), ErrNotFound)
}

// Changes returns the changes of an entry since the one before it that was not removed; none of the
// first one.
func (s *Store) Changes(e *Entry) ([]files.Change, error) {
	c, err := s.load()
	if err != nil {
		return nil, err
	}
	before := c.live(func(b *Entry) bool { return b.Number < e.Number })
	if before == nil {
		return nil, nil
	}
	return Diff(s.Tree(before.Root), s.Tree(e.Root))
}

// At returns the entry of a number, even if it was removed. The error wraps [ErrNotFound] if
// there is none.
func (s *Store) At(number uint64) (*Entry, error) {
	c, err := s.load()
	if err != nil {
		return nil, err
	}
	if i, ok := c.find(number); ok {
		return c.entries[i], nil
	}
	return nil, fmt.Errorf("checkpoint %d: %w", number, ErrNotFound)
}

// Line returns the numbers of the entries on a session's line: its newest entry last, the
// parent of that, and so on. If one of them is damaged, the line continues with the session's
// own entry before it.
func (s *Store) Line(last uint64) (map[uint64]bool, error) {
	c, err := s.load()
	if err != nil {
		return nil, err
	}
	line := map[uint64]bool{}
	for session := ""; last > 0; {
		i, ok := c.find(last)
		if !ok { // damaged: continue with the session's own entry before it
			for i--; i >= 0 && c.entries[i].Session != session; i-- {
			}
			if i < 0 {
				break
			}
		}
		e := c.entries[i]
		line[e.Number] = true
		last, session = e.Parent, e.Session // Parent is smaller, so the loop ends
	}
	return line, nil
}

// Seen returns the last snapshot of Create or Look, or nil.
func (s *Store) Seen() *files.Snapshot {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	return s.seen
}

// Remember writes the snapshot of the newest Create, so that another process need not read every
// file again, unless it says what was remembered before. The snapshot is derived, so an error may be
// ignored.
func (s *Store) Remember() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == nil || s.base == s.kept ||
		s.kept != nil && s.kept.Settled() && s.kept.Stored == s.base.Stored && s.kept.Equal(s.base) {
		return nil
	}
	err := s.locked(context.Background(), func(*chain) error {
		return files.Remember(s.dir, s.trackerFile(), s.base, s.opts.Memory, trackerKey(s.name))
	})
	if err == nil {
		s.kept = s.base
	}
	return err
}

// Remembered returns the snapshot that the newest Create in a chain remembered, or nil if there is
// none, or none that the Memory has: who works in the project may have written it.
func Remembered(dir writer.FS, name string, m files.Memory) *files.Snapshot {
	s, known, err := files.Recall(dir, name+trackerSuffix, m, trackerKey(name))
	if err != nil || !known {
		return nil
	}
	return s
}

const trackerSuffix = ".files"

func (s *Store) trackerFile() string { return s.name + trackerSuffix }

// trackerKey names the snapshot of a chain in a Memory: by its path below .lopen.
func trackerKey(name string) string { return "checkpoints/" + name + trackerSuffix }

// Pin sets, durably, whether Thin must retain a checkpoint.
func (s *Store) Pin(ctx context.Context, id ID, pinned bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked(ctx, func(c *chain) error {
		e := c.live(func(e *Entry) bool { return e.ID == id })
		if e == nil {
			return fmt.Errorf("checkpoint %s: %w", id.Short(), ErrNotFound)
		}
		if e.Pinned == pinned {
			return nil
		}
		line, err := lineFormat.Encode(pinning{Pin: e.Number, Pinned: pinned})
		if err != nil {
			return err
		}
		return s.append(c, line)
	})
}

// Forget removes, durably, the entries for which fn returns true, pinned or not. why is the
// recorded reason.
func (s *Store) Forget(ctx context.Context, why string, fn func(*Entry) bool) (n int, err error) {
	if fn == nil {
		return 0, absent("remove checkpoints", "function")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.locked(ctx, func(c *chain) error {
		removed, err := s.remove(c, why, fn)
		n = len(removed)
		return err
	})
	return n, err
}

// remove is Forget under the lock.
func (s *Store) remove(c *chain, why string, fn func(*Entry) bool) (removed []*Entry, err error) {
	var add []byte
	for _, e := range c.entries {
		if e.Removed != "" || !fn(e) {
			continue
		}
		line, err := lineFormat.Encode(removal{Removed: e.Number, Why: cmp.Or(why, "removed")})
		if err != nil {
			return nil, err
		}
		add, removed = append(add, line...), append(removed, e)
	}
	if len(removed) == 0 {
		return nil, nil
	}
	if err := s.append(c, add); err != nil {
		return nil, err
	}
	return removed, nil
}

// damaged returns the error for a part of a checkpoint that cannot be used.
func damaged(path string, err error) error {
	class := writer.ClassCorrupt
	if errors.Is(err, envelope.ErrFutureVersion) {
		class = writer.ClassFutureVersion
	}
	return &writer.Error{Op: "read checkpoint", Path: path, Class: class, Err: err}
}

// absent returns the error for an argument that is nil and may not be.
func absent(op, argument string) error {
	return &writer.Error{Op: op, Class: writer.ClassInvalid, Err: errors.New("the " + argument + " is nil")}
}
