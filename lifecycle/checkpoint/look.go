package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A sighting is the result of a look.
type sighting struct {
	entry    *Entry // without an ID
	snapshot *files.Snapshot
	tree     *Tree
}

// A looker makes one look at the work tree. Without a batch nothing is stored.
type looker struct {
	s     *Store
	batch *blob.Batch
	tree  *Tree // the new tree; its root is set at the end
	older []string
}

// look looks at the work tree, stores what is new, and makes the next entry of a chain. With a
// nil hold it stores nothing. base is the snapshot before, and known the tree that it was
// stored as.
func (s *Store) look(ctx context.Context, c *chain, meta Meta, hold *blob.Hold, base *files.Snapshot, known *Tree) (*sighting, error) {
	l := &looker{s: s, tree: s.Tree(blob.Hash{})}
	if hold != nil {
		l.batch = hold.Batch().Until(ctx)
		defer l.batch.Discard()
	} else {
		l.tree.unstored = map[blob.Hash][]item{}
	}
	e := s.next(c, meta)
	if prev := c.live(anyEntry); meta.Only != nil && prev != nil {
		e.Active = c.newest().Active // the next entry asks who changed the other paths since
		return l.lookAt(ctx, e, prev, base, known)
	}

	snapshot, rules, err := l.take(ctx, c, e, base, known)
	if err != nil {
		return nil, err
	}
	e.Older = l.olderIn(snapshot)
	if e.rules = rules; l.batch != nil {
		if e.Rules, err = l.keepRules(c, rules); err != nil {
			return nil, err
		}
	}
	e.Root = known.Root
	if dirty := dirtyFolders(base, snapshot); len(dirty) > 0 || e.Root == (blob.Hash{}) {
		b := builder{known: known, dirty: dirty, unstable: setOf(snapshot.Unstable), put: l.keepFolder}
		if e.Root, err = b.folder("", snapshot.Files, snapshot.Skipped, known.Root); err != nil {
			return nil, err
		}
	}
	if l.batch != nil {
		if err := l.batch.Commit(); err != nil {
			return nil, err
		}
		snapshot.Stored = e.Root
		s.base = snapshot
	}
	l.tree.Root = e.Root
	s.seenMu.Lock()
	s.seen = snapshot
	s.seenMu.Unlock()
	e.count(snapshot)
	if e.Changed, err = l.changed(c); err != nil {
		e.Changed = e.Files
	}
	return &sighting{entry: e, snapshot: snapshot, tree: l.tree}, nil
}

// next returns the next entry of a chain, without what a look finds.
func (s *Store) next(c *chain, meta Meta) *Entry {
	meta.At = meta.At.UTC().Round(0)
	e := &Entry{Number: c.next + uint64(c.tail), Meta: meta}
	if prev := c.newest(); prev != nil {
		e.Previous = prev.ID
		e.By, e.Active, e.Cut = s.tasks(prev, meta, e.Number)
	} else if meta.Reason == BeforeTask {
		e.Active = []Active{{Session: meta.Session, Task: meta.Task, Begun: e.Number}}
	}
	e.Cut = e.Cut || c.tail > 0 // the damaged lines may have been entries
	return e
}

// count sets the numbers of files and bytes of a snapshot.
func (e *Entry) count(snapshot *files.Snapshot) {
	e.Unstable = len(snapshot.Unstable)
	for i := range snapshot.Files {
		if f := &snapshot.Files[i]; !f.Mode.IsDir() {
			e.Files++
			if f.Mode.IsRegular() {
				e.Bytes += f.Size
			}
		}
	}
}

// changed returns the number of changes since the newest entry that was not removed.
func (l *looker) changed(c *chain) (int, error) {
	before := l.s.Tree(blob.Hash{})
	if e := c.live(anyEntry); e != nil {
		before.Root = e.Root
	}
	diff, err := Diff(before, l.tree)
	return len(diff), err
}

func anyEntry(*Entry) bool { return true }

// take takes a snapshot, and returns it with its rules. The rules in force depend on the rules
// that are found, so it looks again if they change.
func (l *looker) take(ctx context.Context, c *chain, e *Entry, base *files.Snapshot, known *Tree) (*files.Snapshot, *Rules, error) {
	s := l.s
	var goal *Rules
	var before []*Tree
	prev := c.live(anyEntry)
	if prev != nil {
		before = append(before, s.Tree(prev.Root))
	}
	was, task, err := s.newestRules(c)
	if err != nil {
		return nil, nil, err
	}
	task = task || len(e.By) > 0 || e.Cut
	target := c.live(func(t *Entry) bool { return t.Number == e.Target })
	if target != nil {
		before = append(before, s.Tree(target.Root))
		if e.Reason == AfterRewind {
			if goal, err = s.Rules(target); err != nil && !lost(err) {
				return nil, nil, err
			}
		}
	}
	opts := files.Options{Keep: inAny(before), Repository: s.opts.Repository, Hide: prev != nil, Hidden: map[string]bool{}}
	for _, e := range []*Entry{prev, target} {
		if err := s.hiddenAt(e, base, opts.Hidden); err != nil {
			return nil, nil, err
		}
	}
	if s.opts.Outside != nil {
		opts.Outside = knownTracked(s.opts.Outside(ctx), was)
	}
	if l.batch != nil {
		opts.Hash = l.storing(base, known)
	}
	if was != nil {
		opts.InForce = withTracked(was.InForce, trackedInForce(was, trackedIn(opts.Outside), task))
	}
	mounts := newMounting(prev, s, task)
	opts.Mounts, opts.Mount = mounts.was, mounts.takes
	snapshot, rules, err := l.scan(ctx, base, &opts, func(found *files.Rules) *files.Rules { return inForce(was, found, task, goal) },
		func(s *files.Snapshot) (*files.Snapshot, error) { return l.reveal(ctx, c, e, s, opts) })
	if err == nil {
		mounts.mark(e, snapshot.Mounts)
	}
	return snapshot, rules, err
}

// scan takes a snapshot and reveals what it hides. It does so again, at most maxScans times in all,
// while the rules that follow from a snapshot are not those that it was taken with, which opts has in the
// end, and while folders changed before all was revealed. The first entry is of one snapshot.
func (l *looker) scan(ctx context.Context, from *files.Snapshot, opts *files.Options, force func(found *files.Rules) *files.Rules, reveal func(*files.Snapshot) (*files.Snapshot, error)) (*files.Snapshot, *Rules, error) {
	for n := 1; ; n++ {
		snapshot, err := files.Take(ctx, l.s.tree, from, *opts)
		if err != nil {
			return nil, nil, err
		}
		if i := slices.IndexFunc(snapshot.Skipped, func(k files.Skip) bool { return k.Path == "." }); i >= 0 {
			return nil, nil, &writer.Error{Op: "look at files", Path: l.s.tree.Name(), Err: errors.New(cmp.Or(snapshot.Skipped[i].Err, string(snapshot.Skipped[i].Reason)))}
		}
		if n == 1 { // later ones compare with this look
			l.older = snapshot.Older
		}
		rules := &Rules{InForce: force(snapshot.Rules), Found: snapshot.Rules}
		last := n == maxScans || !opts.Hide
		if last || sameRules(rules.InForce, opts.InForce) {
			all, err := reveal(snapshot)
			if err != nil || last || len(all.Unstable) == len(snapshot.Unstable) {
				return all, rules, err
			}
		}
		from, opts.InForce = snapshot, rules.InForce
	}
}

// inAny returns a function that reports whether one of some trees has a path, or had it and
// found it ignored.
func inAny(trees []*Tree) func(path string) bool {
	return func(path string) bool {
		for _, t := range trees {
			it, err := t.find(path)
			if err != nil || it != nil && it.kind != kindHidden && (it.kind != kindUnknown || it.text == string(files.Ignored)) {
				return true
			}
		}
		return false
	}
}

// storing returns a hash function for [files.Options] that stores each content. The contents of
// base are stored already if known is not empty.
func (l *looker) storing(base *files.Snapshot, known *Tree) func(context.Context, string, io.Reader) (blob.Hash, int64, error) {
	return func(_ context.Context, path string, r io.Reader) (blob.Hash, int64, error) {
		var stored blob.Hash
		if f := base.Find(path); f != nil && f.Mode.IsRegular() && known.Root != (blob.Hash{}) {
			stored = f.Hash
		}
		return l.put(r, stored)
	}
}

// put stores a content unless it is stored.
func (l *looker) put(r io.Reader, stored blob.Hash) (blob.Hash, int64, error) {
	h, n, err := l.batch.Put(r, stored)
	if h != stored {
		l.s.grown.Add(n)
	}
	return h, n, err
}

// keepFolder stores a folder. Without a batch it holds the folder in memory.
func (l *looker) keepFolder(items []item, stored blob.Hash) (blob.Hash, error) {
	data, err := encodeFolder(items)
	if err != nil {
		return blob.Hash{}, err
	}
	if l.batch == nil {
		sum := l.s.blobs.NewHash()
		_, _ = sum.Write(data) // never fails
		h := blob.Hash(sum.Sum(nil))
		l.tree.unstored[h] = items
		return h, nil
	}
	h, _, err := l.put(bytes.NewReader(data), stored)
	if err == nil {
		l.s.folders.add(h, items)
	}
	return h, err
}

// keepRules stores the rules of an entry, unless they equal those of the entry before.
func (l *looker) keepRules(c *chain, rules *Rules) (blob.Hash, error) {
	if prev := c.live(anyEntry); prev != nil {
		was, err := l.s.Rules(prev)
		if err == nil && sameRules(was.InForce, rules.InForce) && sameRules(was.Found, rules.Found) {
			return prev.Rules, nil
		}
	}
	var lists [2][]ruleFile
	for n, r := range []*files.Rules{rules.InForce, rules.Found} {
		for _, f := range r.Files() {
			h, _, err := l.put(bytes.NewReader(f.Data), blob.Hash{})
			if err != nil {
				return blob.Hash{}, err
			}
			lists[n] = append(lists[n], ruleFile{f.Path, h})
		}
	}
	h, _, err := l.put(bytes.NewReader(encodeRules(lists)), blob.Hash{})
	if err == nil {
		l.s.hold(h, rules)
	}
	return h, err
}
