package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// without returns the checkpoints with a store of objects that lacks some.
func (w *world) without(lost ...blob.Hash) *Store {
	to, from := blob.New(crashfs.New(crashfs.Ext4).FS()), blob.New(w.blobs)
	hold, err := to.Hold(context.Background())
	require.NoError(w.t, err)
	batch := hold.Batch()
	for h, err := range from.All() {
		require.NoError(w.t, err)
		if slices.Contains(lost, h) {
			continue
		}
		data, err := from.Read(h, 1<<20)
		require.NoError(w.t, err)
		_, _, err = batch.Put(bytes.NewReader(data), blob.Hash{})
		require.NoError(w.t, err)
	}
	require.NoError(w.t, batch.Commit())
	require.NoError(w.t, hold.Release())
	return New(w.checkpoints, MainTree, to, w.tree, Options{})
}

// A recipient is another place that objects are put into.
type recipient struct {
	t     require.TestingT
	all   map[blob.Hash][]blob.Hash // what each object names
	given []blob.Hash               // in order
	asked map[blob.Hash]int
	calls int
}

func newRecipient(t require.TestingT) *recipient {
	return &recipient{t: t, all: map[blob.Hash][]blob.Hash{}, asked: map[blob.Hash]int{}}
}

func (p *recipient) has(all []blob.Hash) (map[blob.Hash]bool, error) {
	there := map[blob.Hash]bool{}
	p.calls++
	for _, h := range all {
		p.asked[h]++
		_, there[h] = p.all[h]
	}
	return there, nil
}

// put says that each object comes once, after those that it names.
func (p *recipient) put(h blob.Hash, names []blob.Hash) error {
	require.NotContains(p.t, p.all, h, "it is there")
	for _, n := range names {
		require.Contains(p.t, p.all, n, "what an object names comes before it")
	}
	require.Len(p.t, slices.Compact(slices.Clone(names)), len(names), "each name once")
	p.all[h], p.given = names, append(p.given, h)
	return nil
}

// requireAll says that the place has what an entry needs, and that the names lead to all of it.
func (p *recipient) requireAll(s *Store, e *Entry) {
	reached := map[blob.Hash]bool{}
	var follow func(h blob.Hash)
	follow = func(h blob.Hash) {
		if reached[h] {
			return
		}
		reached[h] = true
		require.Contains(p.t, p.all, h)
		for _, n := range p.all[h] {
			follow(n)
		}
	}
	for _, n := range e.nodes() {
		follow(n.hash)
	}
	require.NoError(p.t, s.Objects(e, func(h blob.Hash, _ int64) bool {
		require.True(p.t, reached[h], "%s is needed, and no name leads to it", h)
		return true
	}))
}

// TestMissing sends the checkpoints of a project that changes at random to another place, in any order.
func TestMissing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		s := w.worker("s", 0)
		var all []*Entry
		for range 8 {
			for range 1 + rng.IntN(6) {
				path := fmt.Sprintf("f%d", rng.IntN(4))
				for range rng.IntN(4) {
					path = fmt.Sprintf("d%d/%s", rng.IntN(3), path)
				}
				w.edit(path, fmt.Sprint("content ", rng.IntN(5))) // several files have the same
			}
			all = append(all, s.create(Manual, 0))
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		there := newRecipient(t)
		for _, e := range all {
			clear(there.asked)
			require.NoError(t, s.cps.Missing(e, there.has, there.put))
			there.requireAll(s.cps, e)
			for h, n := range there.asked {
				require.LessOrEqual(t, n, 2, "%s, as a file and as a folder", h)
			}
			n := len(there.given)
			require.NoError(t, s.cps.Missing(e, there.has, there.put))
			require.Len(t, there.given, n, "there is nothing to give again")
		}
	}
}

// What the other place has is not looked into: of a change only the way to it is asked for, level by
// level, and objects below what is there may be gone here.
func TestMissingLooksOnlyIntoWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	w.edit("a/b/c/one", "1", "a/b/two", "2", "x/y/z", "3", "x/w", "4")
	first := s.create(Manual, 0)
	there := newRecipient(t)
	require.NoError(t, s.cps.Missing(first, there.has, there.put))
	w.edit("a/b/two", "changed")
	second := s.create(Manual, 0)
	y, err := s.cps.Tree(second.Root).find("x/y")
	require.NoError(t, err)
	z, err := s.cps.Tree(second.Root).find("x/y/z")
	require.NoError(t, err)
	there.asked, there.calls, there.given = map[blob.Hash]int{}, 0, nil
	require.NoError(t, w.without(y.hash, z.hash).Missing(second, there.has, there.put))
	there.requireNames(t, s.cps, second)
	require.Len(t, there.given, 4, "the content, and the three folders above it")
	require.NotContains(t, there.asked, y.hash)
	require.LessOrEqual(t, there.calls, 5, "the root and the rules, three levels, and the content")
	for h, n := range there.asked {
		require.Equal(t, 1, n, h)
	}
}

// requireNames says that what was given leads from the root to the changed file.
func (p *recipient) requireNames(t *testing.T, s *Store, e *Entry) {
	t.Helper()
	for _, path := range []string{"a/b/two", "a/b/c/one", "x/w"} {
		it, err := s.Tree(e.Root).find(path)
		require.NoError(t, err)
		require.Contains(t, p.all, it.hash)
	}
	require.Equal(t, e.Root, p.given[len(p.given)-1])
}

// A file with the content of a folder's object is one object with it. What the folder names comes
// before it, whichever is found first.
func TestMissingOfAFileWithTheContentOfAFolder(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"copy", "dir/deep/copy", "z/y/x/copy"} {
		w := newWorld(t)
		s := w.worker("s", 0)
		w.edit("dir/in", "content", "dir/deep/in", "another")
		e := s.create(Manual, 0)
		for _, dir := range []string{"dir/deep", "dir"} {
			it, err := s.cps.Tree(e.Root).find(dir)
			require.NoError(t, err)
			data, err := blob.New(w.blobs).Read(it.hash, 1<<20)
			require.NoError(t, err)
			w.edit(path+"-of-"+base(dir), string(data))
		}
		e = s.create(Manual, 0)
		there := newRecipient(t)
		require.NoError(t, s.cps.Missing(e, there.has, there.put))
		there.requireAll(s.cps, e)
	}
}

// What cannot be read, and what the other place answers, ends it.
func TestMissingFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	w.edit("a/b", "1", "c", "2")
	e := s.create(Manual, 0)
	failed := errors.New("the network is down")
	there := newRecipient(t)
	require.ErrorIs(t, s.cps.Missing(e, func([]blob.Hash) (map[blob.Hash]bool, error) { return nil, failed }, there.put), failed)
	n := 0
	require.ErrorIs(t, s.cps.Missing(e, there.has, func(h blob.Hash, names []blob.Hash) error {
		if n++; n == 3 {
			return failed
		}
		return there.put(h, names)
	}), failed)
	require.Len(t, there.given, 2)
	require.NoError(t, s.cps.Missing(e, there.has, there.put), "the next one gives the rest")
	there.requireAll(s.cps, e)

	it, err := s.cps.Tree(e.Root).find("a")
	require.NoError(t, err)
	there = newRecipient(t)
	err = w.without(it.hash).Missing(e, there.has, there.put)
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
	require.Empty(t, there.given)
}

// TestTakeDecides shows that Take alone decides about each path that differs, but for those that are
// ignored and those that a tree could not record.
func TestTakeDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	w.edit(".gitignore", "*.log", "kept", "1", "taken", "1", "gone", "1", "dir/in", "1", "same", "1")
	target, _ := s.works("task", "made")
	w.edit("kept", "2", "taken", "2", "gone", "-", "mine", "2", "made", "2", "debug.log", "2", "dir/in", "-", "dir", "-", "new/deep/in", "2")
	const mine Why = "mine"
	names[mine], names[Unsaved] = "mine", "unsaved"
	asked := map[string]string{}
	take := func(path string, now, was *files.Fingerprint) (Why, error) {
		asked[path] = fmt.Sprint(now != nil, " ", was != nil)
		switch path {
		case "kept":
			return Unsaved, nil
		case "mine":
			return mine, nil
		}
		return "", nil
	}
	plan := s.preview(target, RewindOptions{Take: take})
	require.Equal(t, []string{
		"dir/in: create", "dir: create", "gone: create", "kept: unsaved", "made: delete", "mine: mine",
		"new/deep/in: delete", "new/deep: delete", "new: delete", "taken: overwrite", "task: delete",
	}, summary(plan), "a person's changes as well, and what only a person made")
	require.Equal(t, map[string]string{"kept": "true true", "taken": "true true", "gone": "false true", "mine": "true false", "made": "true false", "task": "true false",
		"dir": "false true", "dir/in": "false true", "new": "true false", "new/deep": "true false", "new/deep/in": "true false"}, asked)

	// Of a folder that is to go, what is kept in it keeps it.
	plan = s.preview(target, RewindOptions{Take: func(path string, _, _ *files.Fingerprint) (Why, error) {
		if path == "new/deep/in" {
			return Unsaved, nil
		}
		return "", nil
	}})
	require.Contains(t, summary(plan), "new/deep/in: unsaved")
	require.NotContains(t, summary(plan), "new/deep: delete")
	require.NotContains(t, summary(plan), "new: delete")

	// Only some paths: Take is not asked about the others.
	asked = map[string]string{}
	plan = s.preview(target, RewindOptions{Take: take, Paths: []string{"dir"}})
	require.Equal(t, []string{"dir/in: create", "dir: create"}, summary(plan))
	require.Len(t, asked, 2)

	failed := errors.New("git does not answer")
	now, tree, err := s.cps.Look(context.Background(), s.meta(BeforeRewind, target.Number))
	require.NoError(t, err)
	_, err = s.cps.Plan(context.Background(), target, now, tree, s.last, RewindOptions{Take: func(string, *files.Fingerprint, *files.Fingerprint) (Why, error) { return "", failed }})
	require.ErrorIs(t, err, failed)

	// Ignored paths stay, whatever Take says: by the rules of now, too.
	w.edit(".gitignore", "*.log\ntaken\n")
	plan = s.preview(target, RewindOptions{Take: take})
	require.Contains(t, summary(plan), "taken: ignored")
	require.NotContains(t, summary(plan), "debug.log: delete")
	s.rewind(target, RewindOptions{Take: take})
	now2 := w.look()
	require.Equal(t, "-rw-r--r-- 2", now2["kept"])
	require.Equal(t, "-rw-r--r-- 2", now2["debug.log"])
	require.Equal(t, "-rw-r--r-- 1", now2["gone"])
	require.NotContains(t, now2, "made")
	_, err = w.tree.Lstat("new")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
