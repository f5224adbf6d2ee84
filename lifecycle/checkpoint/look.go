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

// A sighting is what a look found.
type sighting struct {
	entry    *Entry // without an ID
	snapshot *files.Snapshot
	tree     *Tree
}

// A looker makes one look at the work tree. Without a batch nothing is stored.
type looker struct {
	s     *Store
	batch *blob.Batch
	tree  *Tree // that is built; its root is set at the end
}

// look looks at the work tree, stores what is new under the hold, which may be nil, and
// makes the entry that comes after those of a chain. base is what is known of the files,
// and known the tree that it is stored as.
func (s *Store) look(ctx context.Context, c *chain, meta Meta, hold *blob.Hold, base *files.Snapshot, known *Tree) (*sighting, error) {
	l := &looker{s: s, tree: s.Tree(blob.Hash{})}
	if hold != nil {
		l.batch = hold.Batch()
		defer l.batch.Discard()
	} else {
		l.tree.unstored = map[blob.Hash][]item{}
	}
	meta.At = meta.At.UTC().Round(0)
	e := &Entry{Number: c.next + uint64(c.tail), Meta: meta}
	if prev := c.newest(); prev != nil {
		e.Previous = prev.ID
		e.By, e.Active, e.Cut = s.tasks(prev, meta, e.Number)
	} else if meta.Reason == BeforeTask {
		e.Active = []Active{{Session: meta.Session, Task: meta.Task, Begun: e.Number}}
	}
	e.Cut = e.Cut || c.tail > 0 // nobody knows what was there

	snapshot, rules, err := l.take(ctx, c, e, base, known)
	if err != nil {
		return nil, err
	}
	if e.rules = rules; l.batch != nil {
		if e.Rules, err = l.keepRules(c, rules); err != nil {
			return nil, err
		}
	}
	e.Root = known.Root
	if dirty := dirtyFolders(base, snapshot); len(dirty) > 0 || e.Root == (blob.Hash{}) {
		b := builder{known: known, dirty: dirty, put: l.keepFolder}
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

// count notes how many files and bytes a snapshot has.
func (e *Entry) count(snapshot *files.Snapshot) {
	for i := range snapshot.Files {
		if f := &snapshot.Files[i]; !f.Mode.IsDir() {
			e.Files++
			if f.Mode.IsRegular() {
				e.Bytes += f.Size
			}
		}
	}
}

// changed counts what differs from the newest entry whose objects are there.
func (l *looker) changed(c *chain) (int, error) {
	before := l.s.Tree(blob.Hash{})
	if e := c.live(anyEntry); e != nil {
		before.Root = e.Root
	}
	diff, err := Diff(before, l.tree)
	return len(diff), err
}

func anyEntry(*Entry) bool { return true }

// take takes a snapshot, and returns it with the rules at it. What the rules in force are
// follows from those that are found, so it looks twice where that changed.
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
	if target := c.live(func(t *Entry) bool { return t.Number == e.Target }); target != nil {
		before = append(before, s.Tree(target.Root))
		if e.Reason == AfterRewind {
			if goal, err = s.Rules(target); err != nil && !lost(err) {
				return nil, nil, err
			}
		}
	}
	opts := files.Options{Keep: inAny(before)}
	if s.opts.Outside != nil {
		opts.Outside = s.opts.Outside()
	}
	if l.batch != nil {
		opts.Hash = l.storing(base, known)
	}
	if was != nil {
		opts.InForce = was.InForce
	}
	return l.scan(ctx, base, opts, prev == nil, func(found *files.Rules) *files.Rules { return inForce(was, found, task, goal) })
}

// scan takes a snapshot, and others while the rules that follow from what it finds are not
// those that it was taken with. once takes one only.
func (l *looker) scan(ctx context.Context, from *files.Snapshot, opts files.Options, once bool, force func(found *files.Rules) *files.Rules) (*files.Snapshot, *Rules, error) {
	for n := 1; ; n++ {
		snapshot, err := files.Take(ctx, l.s.tree, from, opts)
		if err != nil {
			return nil, nil, err
		}
		if i := slices.IndexFunc(snapshot.Skipped, func(k files.Skip) bool { return k.Path == "." }); i >= 0 {
			return nil, nil, &writer.Error{Op: "look at files", Path: l.s.tree.Name(), Err: errors.New(cmp.Or(snapshot.Skipped[i].Err, string(snapshot.Skipped[i].Reason)))}
		}
		rules := &Rules{InForce: force(snapshot.Rules), Found: snapshot.Rules}
		if once || n == maxScans || sameRules(rules.InForce, opts.InForce) {
			return snapshot, rules, nil
		}
		from, opts.InForce = snapshot, rules.InForce
	}
}

// inAny says of a path whether one of some trees has it, or had it and found it ignored.
func inAny(trees []*Tree) func(path string) bool {
	return func(path string) bool {
		for _, t := range trees {
			it, err := t.find(path)
			if err != nil || it != nil && (it.kind != kindUnknown || it.text == string(files.Ignored)) {
				return true
			}
		}
		return false
	}
}

// storing stores contents as they are hashed. Those of base are stored already, where
// there is a tree of it.
func (l *looker) storing(base *files.Snapshot, known *Tree) func(context.Context, string, io.Reader) (blob.Hash, int64, error) {
	return func(_ context.Context, path string, r io.Reader) (blob.Hash, int64, error) {
		var stored blob.Hash
		if f := base.Find(path); f != nil && f.Mode.IsRegular() && known.Root != (blob.Hash{}) {
			stored = f.Hash
		}
		return l.put(r, stored)
	}
}

// put stores a content, if it is not there.
func (l *looker) put(r io.Reader, stored blob.Hash) (blob.Hash, int64, error) {
	h, n, err := l.batch.Put(r, stored)
	if h != stored {
		l.s.grown.Add(n)
	}
	return h, n, err
}

// keepFolder stores a folder, or keeps it for the tree of a look.
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

// keepRules stores the rules of an entry, if they are not those of the one before.
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
