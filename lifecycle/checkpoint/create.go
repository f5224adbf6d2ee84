package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// maxScans bounds how often Create looks at the tree because another Store made an entry
// meanwhile. The last look is made under the chain's lock.
const maxScans = 3

// errOvertaken means that another Store made an entry during a look.
var errOvertaken = errors.New("another checkpoint was made meanwhile")

// Create makes a checkpoint of the work tree and returns it when it is durable. A file that is
// unchanged since the last look costs one stat. If meta has a Target, the checkpoint includes
// the paths of that entry even if they are ignored. Of meta only the Reason is checked.
//
// After an error there is no new checkpoint, unless the outcome is NotDurable: then there may
// be one.
func (s *Store) Create(ctx context.Context, meta Meta) (*Entry, error) {
	if !meta.Reason.valid() {
		return nil, &writer.Error{Op: "create checkpoint", Path: s.dir.Name(), Class: writer.ClassInvalid, Err: fmt.Errorf("there is no reason %q", meta.Reason)}
	}
	if meta.Only != nil {
		only, err := CleanOnly(meta.Only)
		if err != nil {
			return nil, err
		}
		meta.Only = only
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hold, err := s.blobs.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = hold.Release() }() // what was stored is stored whatever it returns
	c, err := s.load()                    // under the hold, so that no sweep removes what it names
	if err != nil {
		return nil, err
	}
	base, known, err := s.known(c, true)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		var now *sighting
		look := func(c *chain) (err error) {
			now, err = s.look(ctx, c, meta, hold, base, known)
			return err
		}
		if n < maxScans {
			if err := look(c); err != nil {
				return nil, err
			}
		}
		var e *Entry
		err := s.locked(ctx, func(latest *chain) (err error) {
			if n == maxScans {
				if err := look(latest); err != nil {
					return err
				}
			} else if newestID(latest) != newestID(c) {
				c = latest
				return errOvertaken
			}
			e, err = s.enter(latest, now)
			return err
		})
		if !errors.Is(err, errOvertaken) {
			return e, err
		}
		base, known = now.snapshot, now.tree // they are stored, and the hold excludes sweeps
	}
}

// newestID returns the ID of the last entry, or zero.
func newestID(c *chain) ID {
	if e := c.newest(); e != nil {
		return e.ID
	}
	return ID{}
}

// enter appends the entry of a look to the chain.
func (s *Store) enter(c *chain, now *sighting) (*Entry, error) {
	if err := now.entry.check(c.next); err != nil { // no reader would accept it
		return nil, &writer.Error{Op: "create checkpoint", Path: s.dir.Name(), Class: writer.ClassInvalid, Err: err}
	}
	line, err := lineFormat.Encode(now.entry)
	if err != nil {
		return nil, &writer.Error{Op: "create checkpoint", Path: filepath.Join(s.dir.Name(), s.chainFile()), Class: writer.ClassInvalid, Err: err}
	}
	if err := s.append(c, line); err != nil {
		return nil, err
	}
	e := now.entry
	e.ID, e.rules = idOf(line), nil
	switch e.Reason {
	case BeforeTask:
		s.begun[e.Session] = e.Number
	case AfterTask:
		delete(s.begun, e.Session)
	}
	return e, nil
}

// Look returns what Create would make of the work tree now, and stores nothing. The Entry has
// the Number that it would get, and By, Active and Cut, but no ID.
func (s *Store) Look(ctx context.Context, meta Meta) (*Entry, *Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	base, known, err := s.known(c, false)
	if err != nil {
		return nil, nil, err
	}
	now, err := s.look(ctx, c, meta, nil, base, known)
	if err != nil {
		return nil, nil, err
	}
	return now.entry, now.tree, nil
}

// known returns the snapshot of the tracker and the tree that it was stored as. The tree is
// empty if no live entry has it, because the objects of removed entries may be gone. Then, if
// needed is set, the snapshot has only files whose contents are still stored.
func (s *Store) known(c *chain, needed bool) (*files.Snapshot, *Tree, error) {
	if !s.loaded {
		s.loaded = true
		s.base = Remembered(s.dir, s.name, s.opts.Memory) // without it every file is read
		s.kept = s.base
	}
	base := s.base
	if base == nil {
		return &files.Snapshot{}, s.Tree(blob.Hash{}), nil
	}
	if c.live(func(e *Entry) bool { return e.Root == base.Stored }) != nil {
		has, err := s.blobs.Has(base.Stored) // the folder of objects may have been removed
		if err != nil && !lost(err) {
			return nil, nil, err
		}
		if has {
			return base, s.Tree(base.Stored), nil
		}
	}
	if !needed {
		return base, s.Tree(blob.Hash{}), nil
	}
	out := &files.Snapshot{At: base.At, Skipped: base.Skipped}
	there := map[blob.Hash]bool{}
	for _, f := range base.Files {
		if f.Mode.IsRegular() {
			has, looked := there[f.Hash]
			if !looked {
				var err error
				if has, err = s.blobs.Has(f.Hash); err != nil && !lost(err) {
					return nil, nil, err
				}
				there[f.Hash] = has
			}
			if !has {
				continue
			}
		}
		out.Files = append(out.Files, f)
	}
	return out, s.Tree(blob.Hash{}), nil
}

// tasks returns the tasks that were active since prev (by), and those that are active after the
// next entry, which gets number (active). cut says that one of by ended without an entry.
func (s *Store) tasks(prev *Entry, meta Meta, number uint64) (by, active []Active, cut bool) {
	for _, a := range prev.Active {
		switch {
		case a.Session != meta.Session && s.opts.Alive != nil && !s.opts.Alive(a.Session),
			a.Session == meta.Session && a.Begun != s.begun[a.Session]:
			cut = true
		case a.Session == meta.Session && meta.Reason == BeforeTask: // it ended, and nobody knows when
			cut = true
		case a.Session == meta.Session && meta.Reason == AfterTask: // the task ends with this entry
		default:
			active = append(active, a)
		}
	}
	if meta.Reason == BeforeTask {
		active = append(active, Active{Session: meta.Session, Task: meta.Task, Begun: number})
	}
	return prev.Active, active, cut
}

// lost reports whether an error means that an object is gone or damaged.
func lost(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, envelope.ErrCorrupt)
}
