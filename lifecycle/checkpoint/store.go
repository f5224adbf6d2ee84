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

// ErrNotFound says that there is no such checkpoint, or no more.
var ErrNotFound = errors.New("no such checkpoint")

// Options of a Store. The zero value works.
type Options struct {
	// Alive says whether somebody holds a session: the tasks of one that nobody holds
	// were cut off. nil means that all are.
	Alive func(session string) bool
	// Outside are ignore files from outside of the tree (git's info/exclude and
	// core.excludesFile), the weakest first. nil is none.
	Outside func() []files.IgnoreFile
}

// A Store is the checkpoints of one work tree.
type Store struct {
	dir   writer.FS
	name  string
	blobs *blob.Store
	tree  writer.FS
	opts  Options

	folders folderCache
	grown   atomic.Int64 // bytes that were stored since they were counted

	chainMu sync.Mutex
	read    *chain               // Guarded by chainMu: what was last read of the file.
	rules   map[blob.Hash]*Rules // Guarded by chainMu.

	mu      sync.Mutex
	base    *files.Snapshot   // Guarded by mu: what the newest Create here stored; nil before.
	loaded  bool              // Guarded by mu: base was looked for.
	begun   map[string]uint64 // Guarded by mu: by session, the entry before the task that it is at.
	mine    fs.FileInfo       // Guarded by mu: the chain's file, which this Store wrote last; nil if another may have.
	objects int64             // Guarded by mu: bytes of what is needed, -1 before they were counted.

	seenMu sync.Mutex
	seen   *files.Snapshot // Guarded by seenMu.
}

// New is the Store of the chain name in the checkpoints folder dir, the blobs, and the
// work tree's folder. All three stay the caller's to close. It touches nothing.
func New(dir writer.FS, name string, blobs *blob.Store, tree writer.FS, opts Options) *Store {
	return &Store{dir: dir, name: name, blobs: blobs, tree: tree, opts: opts, begun: map[string]uint64{}, objects: -1}
}

// Continue takes over from a Store of the same caller, which is used no more, which tasks
// the caller is at: they are not cut off because the folders were opened anew.
func (s *Store) Continue(old *Store) {
	old.mu.Lock()
	begun := maps.Clone(old.begun)
	old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = begun
}

// List returns all entries, those that were removed included, the oldest first. Lines
// that cannot be read are reported as faults; they cost the entries in them only. A
// last line without an end is none, but left out: a crash leaves one. The error is that
// of reading the file, or has class future-version.
func (s *Store) List() (entries []*Entry, faults []error, err error) {
	c, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(c.entries), slices.Clone(c.faults), nil
}

// Find returns the entry of an ID. The error is [ErrNotFound] where there is none or it
// was removed.
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

// Lookup returns the entry of the whole ID that a session's log names, also one that was
// removed: the session's line continues through it. The error is [ErrNotFound].
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

// At returns the entry of a number, also one that was removed. The error is [ErrNotFound].
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

// Line are the numbers of the entries on a session's line: the entry that it last knew
// the files by, that one's parent, and so on. Where one of them is damaged it goes on with
// the session's own before it.
func (s *Store) Line(last uint64) (map[uint64]bool, error) {
	c, err := s.load()
	if err != nil {
		return nil, err
	}
	line := map[uint64]bool{}
	for session := ""; last > 0; {
		i, ok := c.find(last)
		if !ok { // it is damaged: the session's own entry before it was on the line too
			for i--; i >= 0 && c.entries[i].Session != session; i-- {
			}
			if i < 0 {
				break
			}
		}
		e := c.entries[i]
		line[e.Number] = true
		last, session = e.Parent, e.Session // a smaller number
	}
	return line, nil
}

// Seen is what Create or Look last saw, nil before.
func (s *Store) Seen() *files.Snapshot {
	s.seenMu.Lock()
	defer s.seenMu.Unlock()
	return s.seen
}

// Remember writes what the tracker knows, so that another process need not read every
// file again. It is derived: nothing depends on its success.
func (s *Store) Remember() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.base == nil {
		return nil
	}
	return s.locked(context.Background(), func(*chain) error { return files.Save(s.dir, s.trackerFile(), s.base) })
}

func (s *Store) trackerFile() string { return s.name + ".files" }

// Pin sets durably whether Thin must retain a checkpoint.
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

// Forget removes durably the entries that fn names, pinned or not, with the reason.
func (s *Store) Forget(ctx context.Context, why string, fn func(*Entry) bool) (n int, err error) {
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

// damaged is the error of a part of a checkpoint that cannot be used.
func damaged(path string, err error) error {
	class := writer.ClassCorrupt
	if errors.Is(err, envelope.ErrFutureVersion) {
		class = writer.ClassFutureVersion
	}
	return &writer.Error{Op: "read checkpoint", Path: path, Class: class, Err: err}
}
