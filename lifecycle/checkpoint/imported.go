package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	// importPrefix begins the name of a chain that was brought from another project while this
	// one had a chain of its own. The first digits of the SHA-256 of its bytes follow.
	importPrefix = "import-"
	importDigits = 16
	// maxBrought bounds a chain that is brought, in bytes. The rest of maxChain is for what
	// follows.
	maxBrought = maxChain / 2
	// maxNumber bounds the numbers of its entries, so that more can follow.
	maxNumber = 1 << 48
)

// Name returns the name of the chain.
func (s *Store) Name() string { return s.name }

// Imported reports whether the chain was brought from another project and stayed apart. Its work
// tree is not here, so it does not grow.
func (s *Store) Imported() bool { return strings.HasPrefix(s.name, importPrefix) }

// Others returns the Stores of all other chains, in the order of their names: those of other work
// trees, and the imported ones. Nothing can be created, looked at or applied through them.
func (s *Store) Others() (all []*Store, err error) {
	names, err := Chains(s.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name != s.name {
			all = append(all, New(s.dir, name, s.blobs, nil, Options{}))
		}
	}
	slices.SortFunc(all, func(a, b *Store) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// FindOther returns the entry of this full ID in one of the other chains, without its number,
// which means nothing in this chain; nil if there is none.
func (s *Store) FindOther(name string) (*Entry, error) {
	all, err := s.Others()
	for _, c := range all {
		if e, ferr := c.Lookup(name); ferr == nil {
			apart := *e
			apart.Number = 0
			return &apart, nil
		} else if !errors.Is(ferr, ErrNotFound) {
			err = errors.Join(err, ferr)
		}
	}
	return nil, err
}

// Brought is a chain that Bring has put in place.
type Brought struct {
	s     *Store
	name  string // of the chain; "" if nothing was written
	lines []byte
}

// Bring puts the lines of a chain from another project in place, durably. They become this
// chain if it never had an entry, so that everything works as it did there. Otherwise they
// become a chain of their own, unless each of their entries is in some chain here. The objects
// that they need are durable before. apart says that the lines were a chain of their own before.
func (s *Store) Bring(ctx context.Context, lines []byte, apart bool) (*Brought, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Brought{s: s, lines: lines}
	err := s.locked(ctx, func(c *chain) error {
		sum := sha256.Sum256(lines)
		name := importPrefix + hex.EncodeToString(sum[:])[:importDigits]
		if !apart && len(c.entries) == 0 && c.whole == 0 && c.tail == 0 {
			name = s.name
			if err := b.mark(); err != nil {
				return err
			}
		} else if here, err := s.has(c, lines); here || err != nil {
			return err
		}
		b.name = name
		if err := writer.RemoveTemps(s.dir, ".", nil); err != nil { // all are written under this lock
			return err
		}
		return writer.ReplaceFile(s.dir, name+chainSuffix, b.lines, filePerm)
	})
	if err != nil {
		return nil, errors.Join(err, b.Undo(ctx))
	}
	return b, nil
}

// mark adds a line that says that the entries were brought.
func (b *Brought) mark() error {
	c, err := parse(b.lines, b.s.name, nil)
	if err != nil {
		return err
	}
	line, err := lineFormat.Encode(bringing{Brought: c.next - 1})
	b.lines = append(slices.Clip(b.lines), line...)
	return err
}

// has reports whether each entry of some lines is in a chain here, and was not removed from it.
// The caller has the lock; c is this chain.
func (s *Store) has(c *chain, lines []byte) (bool, error) {
	brought, err := parse(lines, s.name, nil)
	if err != nil {
		return false, err
	}
	known := map[ID]bool{}
	add := func(c *chain) {
		for _, e := range c.entries {
			known[e.ID] = known[e.ID] || e.Removed == ""
		}
	}
	add(c)
	others, err := s.Others()
	if err != nil {
		return false, err
	}
	for _, o := range others {
		c, err := o.load()
		if err != nil {
			return false, err
		}
		add(c)
	}
	return !slices.ContainsFunc(brought.entries, func(e *Entry) bool { return !known[e.ID] }), nil
}

// Apart reports whether the lines became a chain of their own.
func (b *Brought) Apart() bool { return b.name != "" && b.name != b.s.name }

// Undo takes back what Bring has done, durably, unless the chain has changed since.
func (b *Brought) Undo(ctx context.Context) error {
	if b.name == "" {
		return nil
	}
	return b.s.locked(ctx, func(*chain) error {
		data, err := writer.ReadText(b.s.dir, b.name+chainSuffix, maxChain)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(data, b.lines) {
			return nil
		}
		return errors.Join(err, b.s.drop(b.name))
	})
}

// Drop removes a chain that was brought, durably, or that of a linked work tree unless an entry is
// left. Its objects go with the next sweep.
func (s *Store) Drop(ctx context.Context) error {
	return s.locked(ctx, func(c *chain) error {
		switch {
		case s.Imported():
		case s.name != MainTree && c.live(anyEntry) != nil: // another process made one meanwhile
			return nil
		case s.name == MainTree:
			return &writer.Error{Op: "remove checkpoints", Path: filepath.Join(s.dir.Name(), s.chainFile()), Class: writer.ClassInvalid, Err: errors.New("they are those of the project's files")}
		}
		if err := s.dir.Remove(s.trackerFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return writer.NewError("remove checkpoints", filepath.Join(s.dir.Name(), s.trackerFile()), writer.NotCommitted, err)
		}
		return s.drop(s.name)
	})
}

// drop removes a chain's file, durably: if the file came back without its objects, no sweep
// could tell what is needed. The caller has the lock.
func (s *Store) drop(name string) error {
	err := s.dir.Remove(name + chainSuffix)
	if err == nil {
		err = s.dir.SyncDir(".")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return writer.NewError("remove checkpoints", filepath.Join(s.dir.Name(), name+chainSuffix), writer.NotDurable, err)
	}
	return nil
}

// CheckBrought returns the entries of a chain that was brought, if Bring may put it in place:
// each line can be read, and what it names holds together. The trees and the rules are read
// from the Store's blobs. size returns the length of a content that came with the chain.
func (s *Store) CheckBrought(size func(blob.Hash) (int64, bool)) ([]*Entry, error) {
	path := filepath.Join(s.dir.Name(), s.chainFile())
	bad := func(format string, args ...any) error {
		return &writer.Error{Op: "check checkpoints", Path: path, Class: writer.ClassCorrupt, Err: fmt.Errorf(format, args...)}
	}
	c, err := s.load()
	switch {
	case err != nil:
		return nil, err
	case len(c.faults) > 0:
		return nil, c.faults[0]
	case c.tail > 0 || c.info != nil && c.whole != c.info.Size():
		return nil, bad("line %d cannot be read", c.count+1)
	case c.whole > maxBrought || c.next > maxNumber:
		return nil, bad("it has %d bytes up to number %d, more than the %d bytes and the number %d that are taken", c.whole, c.next-1, maxBrought, uint64(maxNumber))
	}
	w := weigher{tree: s.Tree(blob.Hash{}), size: size, known: map[blob.Hash]weight{}}
	rules := map[blob.Hash]bool{}
	for _, e := range c.entries {
		if e.Removed != "" {
			continue
		}
		err := w.entry(e)
		if err == nil && !rules[e.Rules] {
			rules[e.Rules] = true
			err = w.rules(e.Rules)
		}
		if err != nil {
			return nil, fmt.Errorf("checkpoint %d: %w", e.Number, err)
		}
	}
	return c.entries, nil
}

// A weight is what a folder has beneath it.
type weight struct {
	names, files int
	bytes        int64
	height       int
}

// A weigher adds up trees, and reads each folder once: a few folders that name each other many
// times may stand for more paths than a machine can list.
type weigher struct {
	tree  *Tree
	size  func(blob.Hash) (int64, bool)
	known map[blob.Hash]weight
}

// entry returns an error unless an entry's tree is whole and what the entry says of it.
func (w *weigher) entry(e *Entry) error {
	got, err := w.folder(e.Root, 1)
	if err == nil && (got.files != e.Files || got.bytes != e.Bytes) {
		err = damaged(e.Root.String(), fmt.Errorf("its tree has %d files of %d bytes, and it says %d of %d", got.files, got.bytes, e.Files, e.Bytes))
	}
	return err
}

func (w *weigher) folder(h blob.Hash, depth int) (sum weight, err error) {
	sum, known := w.known[h]
	if !known {
		items, err := w.tree.folder(h)
		if err != nil {
			return sum, err
		}
		for i := range items {
			if err := w.add(&sum, &items[i], depth); err != nil {
				return sum, err
			}
		}
		w.known[h] = sum
	}
	if depth+sum.height > maxDepth {
		return sum, tooDeep(h.String())
	}
	return sum, nil
}

// add adds an item of a folder at this depth.
func (w *weigher) add(sum *weight, it *item, depth int) error {
	sum.names++
	switch it.kind {
	case kindFile:
		if err := w.content(it.name, it.hash, it.size); err != nil {
			return err
		}
		sum.files++
		sum.bytes += it.size
	case kindLink:
		sum.files++
	case kindFolder:
		if depth >= maxDepth {
			return tooDeep(it.name)
		}
		sub, err := w.folder(it.hash, depth+1)
		if err != nil {
			return err
		}
		sum.names, sum.files, sum.bytes, sum.height = sum.names+sub.names, sum.files+sub.files, sum.bytes+sub.bytes, max(sum.height, sub.height+1)
	}
	if sum.names > maxItems || sum.bytes < 0 {
		return damaged(it.name, errors.New("a tree has more files or bytes than can be kept"))
	}
	return nil
}

// content returns an error unless the content of a name came, with this size if it is not -1.
func (w *weigher) content(name string, h blob.Hash, size int64) error {
	got, ok := w.size(h)
	switch {
	case !ok:
		return damaged(h.String(), fmt.Errorf("the content of %s is missing", quote(name)))
	case size >= 0 && got != size:
		return damaged(h.String(), fmt.Errorf("%s has %d bytes and its content %d", quote(name), size, got))
	}
	return nil
}

// rules checks the rules of an entry. A content that is too large would fail every later look at
// the work tree.
func (w *weigher) rules(h blob.Hash) error {
	lists, err := readRules(w.tree.blobs, h)
	if err != nil {
		return err
	}
	for _, f := range slices.Concat(lists[0], lists[1]) {
		if err := w.content(f.path, f.hash, -1); err != nil {
			return err
		}
		if n, _ := w.size(f.hash); n > f.limit() {
			return damaged(f.hash.String(), fmt.Errorf("the rules in %s have %d bytes, more than %d", quote(f.path), n, f.limit()))
		}
	}
	return nil
}
