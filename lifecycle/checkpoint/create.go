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

// maxScans is how often Create looks at the tree because another Store made an entry
// meanwhile. The last time it has the chain's lock.
const maxScans = 3

// errOvertaken says that another Store made an entry during a look.
var errOvertaken = errors.New("another checkpoint was made meanwhile")

// Create makes a checkpoint of the work tree and returns it when it is durable. A file
// that is unchanged since the last look costs one stat. Of meta the Store checks the
// Reason; a Target makes it take what that entry covers as well, ignored or not.
//
// After an error there is no new checkpoint, but where the outcome is NotDurable: there
// it may be found.
func (s *Store) Create(ctx context.Context, meta Meta) (*Entry, error) {
	if !meta.Reason.valid() {
		return nil, &writer.Error{Op: "create checkpoint", Path: s.dir.Name(), Class: writer.ClassInvalid, Err: fmt.Errorf("there is no reason %q", meta.Reason)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hold, err := s.blobs.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = hold.Release() }() // what was stored is stored whatever it returns
	c, err := s.load()                    // under the hold: what it names is there
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
		base, known = now.snapshot, now.tree // durable, and nobody sweeps
	}
}

// newestID is the ID of the entry at the end.
func newestID(c *chain) ID {
	if e := c.newest(); e != nil {
		return e.ID
	}
	return ID{}
}

// enter adds the entry of a look to the chain.
func (s *Store) enter(c *chain, now *sighting) (*Entry, error) {
	if err := now.entry.check(c.next); err != nil { // nobody could read it
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

// Look is what Create would make of the work tree now. Nothing is stored: the Entry has
// the Number that it would get, By, Active, Cut, and no ID.
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

// known is what the tracker knows, and the tree that it was stored as, which is empty
// where nobody vouches for it: an entry that was removed may have lost its objects. Each
// content is looked for then, where they are needed.
func (s *Store) known(c *chain, needed bool) (*files.Snapshot, *Tree, error) {
	if !s.loaded {
		s.loaded = true
		s.base, _ = files.Load(s.dir, s.trackerFile()) // without it everything is read
	}
	base := s.base
	if base == nil {
		return &files.Snapshot{}, s.Tree(blob.Hash{}), nil
	}
	if c.live(func(e *Entry) bool { return e.Root == base.Stored }) != nil {
		has, err := s.blobs.Has(base.Stored) // somebody may have thrown all objects away
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

// tasks are those that were at work since an entry, those that are after the next one,
// which is the one of a number, and whether one of the first was cut off.
func (s *Store) tasks(prev *Entry, meta Meta, number uint64) (by, active []Active, cut bool) {
	for _, a := range prev.Active {
		switch {
		case a.Session != meta.Session && s.opts.Alive != nil && !s.opts.Alive(a.Session),
			a.Session == meta.Session && a.Begun != s.begun[a.Session]:
			cut = true
		case a.Session == meta.Session && meta.Reason == BeforeTask: // it ended, and nobody knows when
			cut = true
		case a.Session == meta.Session && meta.Reason == AfterTask: // it ends here
		default:
			active = append(active, a)
		}
	}
	if meta.Reason == BeforeTask {
		active = append(active, Active{Session: meta.Session, Task: meta.Task, Begun: number})
	}
	return prev.Active, active, cut
}

// lost says that an error is of an object that is gone or damaged.
func lost(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, envelope.ErrCorrupt)
}
