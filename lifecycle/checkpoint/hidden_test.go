package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// The begins of what SQLite writes.
const inDB, inWAL, inJournal = "SQLite format 3\x00", "\x37\x7f\x06\x82", "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"

// scaffold is what an agent makes: a rule, and what that ignores.
var scaffold = []string{".gitignore", "node_modules/\n", "node_modules/a/x", "one", "node_modules/a/y", "two", "node_modules/b", "three"}

// hiding begins a world in which a task may store so many files that only rules of tasks ignore.
func hiding(t require.TestingT, n int) *worker {
	w := newWorld(t)
	w.budget = &files.Budget{Files: n, Bytes: 1 << 20}
	return w.worker("s", 0)
}

// moved are the names in .lopen/moved.
func (w *world) moved() (all []movedName) {
	all, dir, err := movedNames(w.lopen)
	require.NoError(w.t, err)
	if dir != nil {
		require.NoError(w.t, dir.Close())
	}
	return all
}

// differs is what a patch says from one entry to another, a line a path.
func (k *worker) differs(from, to *Entry) (all []string) {
	changes, err := Diff(k.cps.Tree(from.Root), k.cps.Tree(to.Root))
	require.NoError(k.t, err)
	for _, c := range changes {
		patch, err := k.cps.Patch(c.Old, c.New)
		require.NoError(k.t, err)
		first, _, _ := strings.Cut(patch, "\n")
		all = append(all, first)
	}
	return all
}

// What only a rule of a task hides is named, goes with a rewind, comes back by undo, and goes again.
func TestHiddenIsMovedAway(t *testing.T) {
	t.Parallel()
	k := hiding(t, 2)
	k.edit("a", "1")
	before, after := k.works(scaffold...)
	require.Equal(t, 1, after.Hidden)
	require.Zero(t, after.Taken)
	require.Equal(t, []string{".gitignore", "a", "node_modules hidden"}, captured(t, k.cps.Tree(after.Root)))
	created := "created node_modules/ (3 files, 11 bytes, not stored)"
	require.Equal(t, []string{"new file mode 0644 b/.gitignore", created}, k.differs(before, after))
	all := k.look()

	target := before
	for range 2 {
		plan, left := k.rewind(target, RewindOptions{})
		require.Equal(t, []string{".gitignore: delete", "node_modules: move-away"}, summary(plan))
		require.NotContains(t, k.look(), "node_modules")
		require.Len(t, k.moved(), 1)
		e := k.create(Manual, 0)
		require.Zero(t, e.Hidden+e.Changed)
		require.Equal(t, []string{"a"}, captured(t, k.cps.Tree(e.Root)))

		k.start() // another process undoes it
		plan, target = k.rewind(left, RewindOptions{})
		require.Equal(t, []string{".gitignore: create", "node_modules: move-back"}, summary(plan))
		require.Equal(t, all, k.look())
		require.Empty(t, k.moved())
	}
	_, _ = k.rewind(before, RewindOptions{})
	require.NotContains(t, k.look(), "node_modules")
}

// Another task adds to what is hidden: that is named, and a rewind to in between leaves it.
func TestHiddenChanges(t *testing.T) {
	t.Parallel()
	k := hiding(t, 0)
	first, _ := k.works(scaffold...)
	second, after := k.works("node_modules/c", "four")
	require.Equal(t, []string{"modified node_modules/ (4 files, 15 bytes, not stored)"}, k.differs(second, after))
	plan, _ := k.rewind(second, RewindOptions{})
	require.Equal(t, []string{"node_modules: unstored"}, summary(plan))
	plan, _ = k.rewind(first, RewindOptions{})
	require.Equal(t, []string{".gitignore: delete", "node_modules: move-away"}, summary(plan))
}

// What is hidden and not the session's own stays, and so does a repository in it.
func TestHiddenThatStays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tell func(k *worker) *Entry
		want []string
	}{
		"a person made it": {func(k *worker) *Entry {
			before, _ := k.works(".gitignore", "*.o\n")
			k.edit("x.o", "mine")
			k.works("a", "1")
			return before
		}, []string{".gitignore: delete", "a: delete", "x.o: foreign, nobody's task"}},
		"a person added to it": {func(k *worker) *Entry {
			before, _ := k.works(scaffold...)
			k.edit("node_modules/mine", "1")
			k.create(Manual, 0)
			return before
		}, []string{".gitignore: delete", "node_modules: foreign, nobody's task"}},
		"a repository": {func(k *worker) *Entry {
			before, _ := k.works(append(scaffold, "node_modules/a/.git/HEAD", "ref")...)
			return before
		}, []string{".gitignore: delete", "node_modules: fixed"}},
		"a repository itself": {func(k *worker) *Entry {
			before, _ := k.works(append(scaffold, "node_modules/.git/HEAD", "ref")...)
			return before
		}, []string{".gitignore: delete", "node_modules: nested"}},
		"a person's rule by now": {func(k *worker) *Entry {
			before, _ := k.works(scaffold...)
			k.edit(".gitignore", "/node_modules\n")
			e := k.create(Manual, 0)
			require.Equal(k.t, []string{".gitignore", "node_modules ignored"}, captured(k.t.(*testing.T), k.cps.Tree(e.Root)))
			return before
		}, []string{".gitignore: foreign, nobody's task, in 3", "node_modules: ignored"}},
		"in a new folder": {func(k *worker) *Entry {
			before, _ := k.works("app/.gitignore", "*.o\n", "app/x.o", "1", "app/b", "1")
			return before
		}, []string{"app/.gitignore: delete", "app/b: delete", "app/x.o: move-away", "app: delete"}},
		"the rule goes first": {func(k *worker) *Entry {
			before, _ := k.works(scaffold...)
			k.works(".gitignore", "-")
			return before
		}, []string{"node_modules: move-away"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := hiding(t, 0)
			before := tt.tell(k)
			was := k.look()
			plan, left := k.rewind(before, RewindOptions{})
			require.Equal(t, tt.want, summary(plan))
			e := k.create(Manual, 0)
			require.Zero(t, e.Taken)
			for _, c := range plan.Changes {
				require.NotContains(t, k.look(), c.Path)
			}
			k.rewind(left, RewindOptions{})
			require.Equal(t, was, k.look())
		})
	}
}

// Of each task so many are stored, in the order of the paths and a folder as a whole or not at all.
func TestHiddenBudget(t *testing.T) {
	t.Parallel()
	k := hiding(t, 3)
	k.begin()
	k.edit(".gitignore", "*.o\nout/\n", "a.o", "1", "out/b", "1", "out/c", "1", "out/d", "1", "x.o", "1")
	e := k.create(Manual, 0)
	require.Equal(t, files.Budget{Files: 2, Bytes: 2}, e.Taken)
	require.Equal(t, []string{".gitignore", "a.o", "x.o", "out hidden"}, captured(t, k.cps.Tree(e.Root)))
	k.edit("y.o", "1", "z.o", "1")
	e = k.end()
	require.Equal(t, files.Budget{Files: 1, Bytes: 1}, e.Taken)
	require.Equal(t, 2, e.Hidden)
	require.Equal(t, []string{".gitignore", "a.o", "x.o", "y.o", "out hidden", "z.o hidden"}, captured(t, k.cps.Tree(e.Root)))
	_, e = k.works("z.o", "2", "zz.o", "12")
	require.Equal(t, files.Budget{Files: 1, Bytes: 2}, e.Taken, "a task of its own")
	require.Equal(t, 2, e.Hidden, "and what is hidden stays so")

	// In a folder that was recorded before, each new name is one of its own.
	k = hiding(t, 1)
	k.edit("src/a", "1")
	_, e = k.works(".gitignore", "src/\n", "src/a", "2", "src/b/x", "1", "src/b/y", "1", "src/c", "1", "src/d", "1")
	require.Equal(t, []string{".gitignore", "src/a", "src/c", "src/b hidden", "src/d hidden"}, captured(t, k.cps.Tree(e.Root)))

	k = hiding(t, 9)
	k.budget.Bytes = 3
	k.start()
	_, e = k.works(".gitignore", "*.o\n", "a.o", "1234", "b.o", "12", "c.o", "12")
	require.Equal(t, []string{".gitignore", "b.o", "a.o hidden", "c.o hidden"}, captured(t, k.cps.Tree(e.Root)))
}

// Where the system does not move it, it is named and left, and the rest goes on.
func TestHiddenThatCannotBeMoved(t *testing.T) {
	t.Parallel()
	for _, errno := range []error{syscall.EXDEV, syscall.EBUSY, syscall.EPERM} {
		k := hiding(t, 0)
		before, _ := k.works(append(scaffold, "b", "1")...)
		at := k.create(BeforeRewind, before.Number)
		plan, err := k.cps.Plan(t.Context(), before, at, k.cps.Tree(at.Root), before.Number, RewindOptions{})
		require.NoError(t, err)
		k.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.Call == "rename" && strings.Contains(op.Name, movedDir+"/") {
				return crashfs.Fault{Err: errno}
			}
			return crashfs.Fault{}
		})
		done, err := k.cps.Apply(t.Context(), plan)
		k.disk.SetHook(nil)
		require.NoError(t, err)
		require.Equal(t, []Retained{{Path: "node_modules", Why: Fixed, Cause: errno.Error()}}, done.Retained)
		require.Equal(t, len(plan.Changes)-1, done.Changes)
		require.NotContains(t, k.look(), "b")
		require.Contains(t, k.look(), "node_modules/b")
		e := k.create(AfterRewind, before.Number)
		require.Equal(t, []string{"node_modules hidden"}, captured(t, k.cps.Tree(e.Root)), "although no rule is left")
		require.Zero(t, k.create(Manual, 0).Changed)
	}
}

// What was moved away goes with the last entry that names it, and counts until then.
func TestMovedIsSwept(t *testing.T) {
	t.Parallel()
	k := hiding(t, 0)
	before, after := k.works(scaffold...)
	_, left := k.rewind(before, RewindOptions{})
	sweep := func() int {
		needed := map[blob.Hash]struct{}{}
		require.NoError(t, Roots(k.checkpoints, k.cps.blobs, needed))
		_, err := SweepMoved(k.lopen, needed)
		require.NoError(t, err)
		return len(k.moved())
	}
	require.Equal(t, 1, sweep())
	n, err := MovedBytes(k.lopen)
	require.NoError(t, err)
	require.EqualValues(t, 11, n)
	thin := func(lopen writer.FS, limit int64) Thinned {
		k.start()
		k.cps.opts.Lopen = lopen
		thinned, err := k.cps.Thin(t.Context(), Limits{Bytes: limit, Keep: func([]*Entry) func(*Entry) bool { return anyEntry }})
		require.NoError(t, err)
		return thinned
	}
	require.EqualValues(t, 11, thin(k.lopen, 1).Over-thin(nil, 1).Over, "they count")
	require.EqualValues(t, 11, thin(k.lopen, 1<<40).Bytes-thin(nil, 1<<40).Bytes, "also where there is room")
	k.forget(after.Number)
	require.Equal(t, 1, sweep())
	k.forget(left.Number)
	require.Equal(t, 0, sweep())

	// Undo has nothing to bring back then, and says so.
	k = hiding(t, 0)
	before, _ = k.works(scaffold...)
	_, left = k.rewind(before, RewindOptions{})
	require.NoError(t, k.lopen.RemoveAll(movedDir))
	plan, _ := k.rewind(left, RewindOptions{})
	require.Equal(t, []string{".gitignore: create", "node_modules: lost"}, summary(plan))

	// A task that removed it itself is no rewind.
	k = hiding(t, 0)
	k.works(scaffold...)
	before, _ = k.works("node_modules", "-")
	plan, _ = k.rewind(before, RewindOptions{})
	require.Equal(t, []string{"node_modules: unstored"}, summary(plan))
}

// A rewind and its undo are killed, and the power is cut, before each call: the next Apply
// finishes them, and nothing is lost.
func TestHiddenIsMovedOnce(t *testing.T) {
	t.Parallel()
	k := hiding(t, 0)
	before, _ := k.works(append(scaffold, "app/.gitignore", "*.o\n", "app/x.o", "5")...)
	full := k.look()
	for step, want := range []func() *Entry{func() *Entry { return before }, nil} {
		target := before
		if want == nil {
			target = k.cps.mustLast(t, BeforeRewind)
		}
		at := k.create(BeforeRewind, target.Number)
		plan, err := k.cps.Plan(t.Context(), target, at, k.cps.Tree(at.Root), k.last-1, RewindOptions{Force: true})
		require.NoError(t, err)
		points := map[string]*crashfs.Disk{}
		disk, syncs := k.disk, 0
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 {
				if op.Call == "syncdir" && strings.HasSuffix(op.Name, "/moved") {
					syncs++
				}
				points[fmt.Sprintf("step %d, %d, %s %s", step, op.N, op.Call, op.Name)] = disk.Snapshot()
			}
			return crashfs.Fault{}
		})
		_, err = k.cps.Apply(t.Context(), plan)
		disk.SetHook(nil)
		require.NoError(t, err)
		require.Equal(t, 1, syncs, "once for both paths")
		goal, rng := k.look(), rand.New(rand.NewPCG(1, 1))
		if want == nil {
			require.Equal(t, full, goal)
		} else {
			require.Len(t, goal, 0)
		}
		points["the end"] = disk.Snapshot()
		for name, point := range points {
			found := map[string]*crashfs.Disk{"killed": point}
			for _, v := range point.Variants(rng, 2) {
				found[v.Name] = point.Crash(v)
			}
			for how, d := range found {
				w := &world{t: t, budget: k.budget, alive: map[string]bool{}, checkpoints: &volume{}, blobs: &volume{}, tree: &volume{}, lopen: &volume{}}
				w.open(d)
				again := w.worker("s", k.last)
				plan, err := again.cps.Plan(t.Context(), target, at, again.cps.Tree(at.Root), k.last-1, RewindOptions{Force: true})
				require.NoError(t, err, "%s, %s", name, how)
				require.Len(t, plan.Changes, len(plan.Changes))
				done, err := again.cps.Apply(t.Context(), plan)
				require.NoError(t, err, "%s, %s", name, how)
				require.Empty(t, done.Retained, "%s, %s", name, how)
				require.Equal(t, goal, again.look(), "%s, %s", name, how)
				if want != nil {
					require.Len(t, w.moved(), 2, "%s, %s", name, how)
				}
			}
		}
		k.create(AfterRewind, target.Number)
	}
}

// mustLast returns the newest entry with a reason.
func (s *Store) mustLast(t require.TestingT, why Reason) (last *Entry) {
	all, _, err := s.List()
	require.NoError(t, err)
	for _, e := range all {
		if e.Reason == why {
			last = e
		}
	}
	return last
}

// A hidden folder goes nowhere if somebody renames the folder above it while it is looked at.
func TestHiddenInARenamedFolder(t *testing.T) {
	t.Parallel()
	k := hiding(t, 0)
	k.edit("d/a", "1")
	before, _ := k.works("d/.gitignore", "node_modules/\n", "d/node_modules/b", "three")
	at := k.create(BeforeRewind, before.Number)
	plan, err := k.cps.Plan(t.Context(), before, at, k.cps.Tree(at.Root), before.Number, RewindOptions{})
	require.NoError(t, err)
	renamed := false
	k.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "readdir" && strings.HasSuffix(op.Name, "d/node_modules") && !renamed {
			renamed = true
			require.NoError(t, k.tree.Rename("d", "e"))
		}
		return crashfs.Fault{}
	})
	done, err := k.cps.Apply(t.Context(), plan)
	k.disk.SetHook(nil)
	require.NoError(t, err)
	require.True(t, renamed)
	require.Contains(t, done.Retained, Retained{Path: "d/node_modules", Why: Meanwhile})
	require.Empty(t, k.moved())
	require.Contains(t, k.look(), "e/node_modules/b")
}

// What is moved has its new name durably, and the folders above it, before it loses the old one durably. So has
// what an Apply moved that was interrupted. A disk may write the two halves of a rename one by one.
func TestHiddenIsDurableWhereItIs(t *testing.T) {
	t.Parallel()
	k := hiding(t, 0)
	target, _ := k.works(".gitignore", "*.o\n", "app/lib/x.o", "5", "y.o", "6")
	for _, want := range []struct{ once, again string }{
		{"syncdir lopen, rename moved, rename moved, syncdir lopen/moved, syncdir tree", "syncdir lopen/moved, syncdir tree"},
		{
			"syncdir tree/app, syncdir tree, rename tree/app/lib/x.o, rename tree/y.o, syncdir tree, syncdir tree/app/lib, syncdir lopen/moved, " +
				"rename tree/.gitignore, syncdir tree",
			"syncdir tree, syncdir tree/app/lib, syncdir lopen/moved, syncdir tree",
		},
	} {
		at := k.create(BeforeRewind, target.Number)
		plan, err := k.cps.Plan(t.Context(), target, at, k.cps.Tree(at.Root), k.last-1, RewindOptions{Force: true})
		require.NoError(t, err)
		for _, steps := range []string{want.once, want.again} {
			var all []string
			k.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
				if op.Call == "rename" || op.Call == "syncdir" {
					all = append(all, op.Call+" "+op.Name)
					if rest, is := strings.CutPrefix(op.Name, "lopen/moved/"); is {
						require.Contains(t, rest, "-")
						all[len(all)-1] = op.Call + " moved"
					}
				}
				return crashfs.Fault{}
			})
			done, err := k.cps.Apply(t.Context(), plan)
			k.disk.SetHook(nil)
			require.NoError(t, err)
			require.Empty(t, done.Retained)
			require.Equal(t, steps, strings.Join(all, ", "))
		}
		k.create(AfterRewind, target.Number)
		target = at
	}
}

// A log that rules hide is in no checkpoint. If it was beside a database at the target and is gone, what it
// had is in the database: that stays. A log of which the database did not change is nothing to name.
func TestHiddenLogIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit(".gitignore", "*-wal\n*-journal\ncache.*\n", "app.db", inDB+"one", "app.db-wal", inWAL, "cache.db", inDB, "cache.db-wal", inWAL,
		"other.db", inDB, "other.db-journal", inJournal, "lone-wal", inWAL, "text", "one", "text-wal", "one", "z", "one")
	k := w.worker("s", 0)
	before, after := k.works("app.db", inDB+"two", "app.db-wal", "-", "other.db-journal", "-", "cache.db-wal", "-", "text", "two", "text-wal", "-", "z", "two")
	ignored := []string{"app.db-wal ignored", "other.db-journal ignored", "text-wal ignored"}
	require.Equal(t, append([]string{".gitignore", "app.db", "other.db", "text", "z"}, ignored...), captured(t, k.cps.Tree(before.Root)))
	require.Equal(t, 3, after.Changed)

	plan := k.preview(before, RewindOptions{})
	require.Equal(t, []string{"app.db-wal: ignored", "app.db: overwrite", "text-wal: ignored", "text: overwrite", "z: overwrite"}, summary(plan))
	done, err := k.cps.Apply(t.Context(), plan)
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "app.db", Why: Together, By: "app.db-wal"}}, done.Retained)
	left := k.look()
	require.Equal(t, "-rw-r--r-- "+inDB+"two", left["app.db"])
	require.Equal(t, "-rw-r--r-- one", left["z"])
	require.Equal(t, "-rw-r--r-- one", left["text"], "names alone make no database")
}
