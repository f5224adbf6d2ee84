package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/crashfs"
)

// all is a rewind of everything.
var (
	all       = RewindOptions{}
	contested = RewindOptions{Contested: true}
	force     = RewindOptions{Force: true}
)

func TestStories(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(stories, rewoundStories) {
		for i, opts := range []RewindOptions{all, contested, force} {
			want := c.want
			if i > 0 && c.shared != nil {
				want = c.shared
			}
			if i > 1 && c.forced != nil {
				want = c.forced
			}
			t.Run(fmt.Sprintf("%s/%d", c.name, i), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				s := w.worker("s", 0)
				target := c.tell(s)
				was := w.look()
				plan, before := s.rewind(target, opts)
				slices.Sort(want)
				require.Equal(t, want, summary(plan))
				if i == 0 {
					now := w.look()
					for n := 0; n < len(c.stands); n += 2 {
						require.Equal(t, c.stands[n+1], now[c.stands[n]], c.stands[n])
					}
				}
				plan, _ = s.rewind(before, all)
				t.Log(summary(plan))
				require.Equal(t, was, w.look(), "undo is exact")
			})
		}
	}
}

// A rewind of a part of the tree brings back this part and what it needs, and nothing else.
func TestPlanOfPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	w.edit("a/b/c", "1", "a/b/d", "1", "e", "1", "f", "1", "f2", "1")
	before, _ := s.works("a", "-", "e", "2", "f", "-", "f/x", "2", "f2", "2")
	s.edit("f/mine", "3")
	for path, want := range map[string][]string{
		"a/b/c": {"a/b/c: create", "a/b: create", "a: create"},
		"a/b":   {"a/b/c: create", "a/b/d: create", "a/b: create", "a: create"},
		"e":     {"e: overwrite"},
		"f":     {"f/mine: foreign, nobody's task, in 3", "f/x: delete", "f: blocked"},
		"none":  nil,
	} {
		require.Equal(t, want, summary(s.preview(before, RewindOptions{Paths: []string{path}})), path)
	}
	s.rewind(before, RewindOptions{Paths: []string{"a/b/c", "e"}})
	require.Equal(t, []string{"a/b/d: create", "f/mine: foreign, nobody's task, in 3", "f/x: delete", "f2: overwrite", "f: blocked"}, summary(s.preview(before, all)))
}

// A plan that is made again after a crash is the same one: what Apply removed and left in a folder
// that is in the way changes nothing, and neither does what is ignored.
func TestPlanIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	w.edit(".gitignore", "*.log", "a", "1", "b", "1")
	target, _ := s.works("a", "-", "a/in", "2", "b", "-", "b/in", "2", "b/x.log", "2", "c/d/in", "2", "c/d/x.log", "2")
	last := s.last
	before := s.create(BeforeRewind, target.Number)
	want := []string{"a/in: delete", "a: overwrite", "b/in: delete", "b/x.log: ignored", "b: blocked", "c/d/in: delete", "c/d/x.log: ignored"}
	for _, edit := range [][]string{nil, {"a/" + tempPrefix + "0123", "staged"}, {"a/in", "-", "b/in", "-", "c/d/in", "-"}, {"a", "-", "a", "1"}} {
		w.edit(edit...)
		plan, err := s.cps.Plan(context.Background(), target, before, s.cps.Tree(before.Root), last, all)
		require.NoError(t, err)
		require.Equal(t, want, summary(plan), edit)
	}
	// What somebody makes meanwhile is in the way as well.
	w.edit("a", "-", "a/mine", "3")
	plan, err := s.cps.Plan(context.Background(), target, before, s.cps.Tree(before.Root), last, force)
	require.NoError(t, err)
	require.Equal(t, []string{"a/in: delete", "a/mine: foreign", "a: blocked"}, summary(plan)[:3])
}

// A folder that cannot be listed is no reason for a rewind not to be planned; another error is.
func TestPlanWithoutAList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	w.edit("a", "1")
	target, _ := s.works("a", "-", "a/in", "2")
	last := s.last
	before := s.create(BeforeRewind, target.Number)
	for cause, fails := range map[syscall.Errno]bool{syscall.EACCES: false, syscall.EIO: true} {
		w.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.Call == "readdir" && op.Name == "tree/a" {
				return crashfs.Fault{Err: cause}
			}
			return crashfs.Fault{}
		})
		plan, err := s.cps.Plan(context.Background(), target, before, s.cps.Tree(before.Root), last, all)
		if fails {
			require.ErrorIs(t, err, cause)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{"a/in: delete", "a: overwrite"}, summary(plan))
	}
}

// An entry whose objects cannot be read costs what was known by it alone: what changed
// around it is contested.
func TestDamagedBetween(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	w.edit("a", "1", "b", "1")
	before, _ := s.works("a", "2")
	s.edit("b", "mine")
	s.works("c", "1")
	s.works("d", "1")
	s.start()
	entries, _, err := s.cps.List()
	require.NoError(t, err)
	lost := *entries[1]
	lost.Root[0]++
	entries[1] = &lost
	now, tree, err := s.cps.Look(context.Background(), s.meta(BeforeRewind, 1))
	require.NoError(t, err)
	then, had, is, err := s.cps.histories(context.Background(), append(entries, now), before, 0, tree)
	require.NoError(t, err)
	for path, doubt := range map[string]bool{"a": true, "b": true, "c": false, "d": false} {
		nodes, _ := is.since(then, had, path, func(*Entry) bool { return false })
		require.Len(t, nodes, 1, path)
		require.Equal(t, doubt, nodes[0].nobody, path)
	}
}

// A damaged line in the middle costs that entry only: what is older is the session's all
// the same.
func TestDamagedLineOfTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worker("other", 0).create(Manual, 0)
	s := w.worker("s", 0)
	before, _ := s.works("a", "1")
	s.works("b", "1")
	s.works("c", "1")
	w.damage(3) // the begin of the second task
	s.start()
	require.Equal(t, []string{"a: delete", "b: foreign, s t2, in 5", "c: delete"}, summary(s.preview(before, all)))
}

// If a line of the chain is damaged, nobody knows who was at work in its interval.
func TestDamagedLineBetween(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	before := s.begin()
	w.edit("a", "1")
	other := w.worker("other", 0)
	other.create(Manual, 0)
	w.edit("b", "1")
	other.create(Manual, 0)
	w.edit("c", "1")
	s.end()
	require.Equal(t, []string{"a: delete", "b: delete", "c: delete"}, summary(s.preview(before, all)))
	w.damage(1)
	s.start()
	require.Equal(t, []string{"a: contested, s t1, in 3", "b: contested, s t1, in 3", "c: delete"}, summary(s.preview(before, all)))
}

// Anybody may have changed a file meanwhile that could not be read at a checkpoint.
func TestUnreadableBetween(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.worker("s", 0)
	shut := func(fn func() *Entry) {
		w.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.Call == "open" && op.Name == "tree/a" {
				return crashfs.Fault{Err: syscall.EACCES}
			}
			return crashfs.Fault{}
		})
		defer w.disk.SetHook(nil)
		_, known, err := s.cps.Tree(fn().Root).Find("a")
		require.NoError(t, err)
		require.False(t, known)
	}
	w.edit("a", "1")
	before := s.begin()
	w.edit("a", "2", "b", "2")
	shut(s.end)
	w.edit("a", "mine")
	shut(s.begin)
	s.end()
	require.Equal(t, []string{"a: contested, s t2, in 4", "b: delete"}, summary(s.preview(before, all)))
}

// The plan says that commits came after the target.
func TestPlanIsLater(t *testing.T) {
	t.Parallel()
	s := newWorld(t).worker("s", 0)
	before, after := s.works("a", "1")
	require.False(t, s.preview(before, all).Later)
	after.Git = Git{Head: "0123", Branch: "main"}
	require.True(t, s.preview(after, all).Later)
}

// Branches are compared by their whole names, whatever of them is hidden, here or there.
func TestBranchesAreComparedByTheirNames(t *testing.T) {
	t.Parallel()
	git := func(branch, shown string) Git {
		g := Git{Head: "0123", Branch: branch}
		g.Hide(shown)
		return g
	}
	one, two := git("fix/one", "fix/[x]"), git("fix/two", "fix/[x]")
	require.Equal(t, "fix/[x]", one.Branch)
	require.NotContains(t, one.BranchSum, "one")
	require.True(t, one.Same(git("fix/one", "fix/[x]")))
	require.True(t, one.Same(git("fix/one", "fix/one")), "with other patterns")
	require.False(t, one.Same(two))
	require.False(t, one.Same(git("fix/[x]", "fix/[x]")))
	require.Equal(t, Git{Head: "0123", Branch: "main"}, git("main", "main"))
	require.False(t, git("main", "main").Same(Git{Head: "4567", Branch: "main"}))
}
