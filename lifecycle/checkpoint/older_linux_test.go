package checkpoint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// ages waits until the clock that gives files the time of their birth is far behind that of what is there.
func ages(t *testing.T, dir string) {
	born := func() (nano int64) {
		var st unix.Statx_t
		name := filepath.Join(dir, "probe")
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		require.NoError(t, unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_BTIME, &st))
		require.NoError(t, os.Remove(name))
		if st.Mask&unix.STATX_BTIME == 0 {
			t.Skip("the file system of the temporary folder says of no file when it was born")
		}
		return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	for begin := born(); born() < begin+100e6; {
	}
}

// hidingPlace is a place in which no task may store what only its own rules ignore.
func hidingPlace(t *testing.T) place {
	p := newPlace(t)
	lopen, err := writer.OpenFS(p.dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lopen.Close() })
	p.opts.Lopen, p.budget = lopen, files.Budget{}
	return p
}

// What was there before a task and where nothing is recorded stays where the task moved it, and is named.
// What the task made, and what it moved from where it is recorded, is rewound.
func TestOlderThanTheTask(t *testing.T) {
	t.Parallel()
	p := hidingPlace(t)
	p.write(".gitignore", "data/\nmore/\n.env\nlog\nlib/\n", ".env", "secret", "data/1", "one", "data/sub/2", "two", "more/3", "three", "log", "log", "lib/4", "four",
		"a", "a", "own/x", "x", "own/y", "y")
	ages(t, p.dir)
	before := p.create(about("s", BeforeTask, nil))
	require.NoError(t, os.Mkdir(p.path("d"), 0o755))
	for _, move := range [][2]string{{".env", "env.txt"}, {"data", "datasets"}, {"more", "d/most"}, {"log", "own/log2"}, {"own", "mine"}, {"lib", "built"}} {
		require.NoError(t, os.Rename(p.path(move[0]), p.path(move[1])))
	}
	require.NoError(t, os.Link(p.path("a"), p.path("linked")))
	p.write(".gitignore", "built/\n", "a", "changed", "mine/x", "changed", "d/made", "made", "built/5", "made too")
	after := p.create(about("s", AfterTask, before))
	require.Subset(t, after.Older, []string{"built", "d/most", "datasets", "env.txt"})

	now, tree, err := p.Look(t.Context(), about("s", BeforeRewind, before))
	require.NoError(t, err)
	plan, err := p.Plan(t.Context(), before, now, tree, after.Number, RewindOptions{Force: true})
	require.NoError(t, err)
	require.Equal(t, []string{".gitignore: overwrite", "a: overwrite", "built: older", "d/made: delete", "d/most: older", "datasets: older", "env.txt: older",
		"linked: delete", "mine/log2: older", "mine/x: delete", "mine/y: delete", "own/x: create", "own/y: create", "own: create"}, summary(plan))
	done, err := p.Apply(t.Context(), plan)
	require.NoError(t, err)
	require.Empty(t, done.Retained)
	require.FileExists(t, p.path("datasets/sub/2"))
	require.FileExists(t, p.path("built/4"))
}

// What an undo moved back is older than the entry before it, and goes with the next rewind all the same.
func TestMovedBackIsNotOlder(t *testing.T) {
	t.Parallel()
	p := hidingPlace(t)
	target := p.create(about("s", BeforeTask, nil))
	p.write(".gitignore", "deps/\n", "deps/1", "one")
	last := p.create(about("s", AfterTask, target))
	for _, want := range []string{"deps: move-away", "deps: move-back", "deps: move-away"} {
		ages(t, p.dir)
		begin := p.create(about("s", BeforeRewind, last))
		plan, err := p.Plan(t.Context(), target, begin, p.Tree(begin.Root), last.Number, RewindOptions{})
		require.NoError(t, err)
		require.Contains(t, summary(plan), want)
		_, err = p.Apply(t.Context(), plan)
		require.NoError(t, err)
		meta := about("s", AfterRewind, begin)
		meta.Target = target.Number
		target, last = begin, p.create(meta)
	}
}

// A name that the task gave to a file that is ignored goes: the file has another one.
func TestHardLinkOfWhatIsIgnored(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(".gitignore", ".env\n", ".env", "secret")
	ages(t, p.dir)
	before := p.create(about("s", BeforeTask, nil))
	require.NoError(t, os.Link(p.path(".env"), p.path("linked")))
	after := p.create(about("s", AfterTask, before))
	require.Empty(t, after.Older)
}

// reading is a tree in which something happens before a file is read.
type reading struct {
	writer.FS
	do func(name string)
}

func (r reading) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	r.do(name)
	return r.FS.OpenFile(name, flag, perm)
}

// A folder that was recorded before a rule of a later task hid it is no older one. Nor is what the task
// made and hid, where a look takes a second snapshot.
func TestHiddenIsNotOlder(t *testing.T) {
	t.Parallel()
	p := hidingPlace(t)
	p.budget.Files, p.budget.Bytes = 1, 1<<10
	p.write("z", "z")
	before := p.create(about("s", BeforeTask, nil))
	p.write("build/1", "one", "build/2", "two")
	first := p.create(about("s", AfterTask, before))
	ages(t, p.dir)
	second := p.create(about("s", BeforeTask, first))
	p.write(".gitignore", "build/\ndeps/\nsome/\n", "deps/1", "one", "deps/2", "two", "some/1", "one", "a/x", "x")
	ages(t, p.dir)
	calm, once := p.tree, true
	p.tree = reading{calm, func(name string) {
		if name == "some/1" && once {
			once = false
			require.NoError(t, os.Rename(p.path("a/x"), p.path("a/y")))
		}
	}}
	after := p.create(about("s", AfterTask, second))
	require.False(t, once)
	require.Equal(t, 1, after.Hidden)
	require.Empty(t, after.Older)
}

// An entry names a bounded number of older paths, and only those that the last snapshot has.
func TestOlderIsBounded(t *testing.T) {
	t.Parallel()
	var l looker
	s := &files.Snapshot{}
	for i := range 2 * maxOlder {
		name := fmt.Sprintf("f%04d", i)
		l.older = append(l.older, "e"+name, name)
		s.Files = append(s.Files, files.Fingerprint{Path: name})
	}
	older := l.olderIn(s)
	require.Len(t, older, maxOlder)
	require.Equal(t, "f0000", older[0])
	l.older = []string{"gone", strings.Repeat("g", maxOlderBytes), "f0001", "f0002"}
	s = &files.Snapshot{Files: []files.Fingerprint{{Path: "f0001"}, {Path: "f0002"}, {Path: l.older[1]}}}
	require.Equal(t, []string{l.older[1]}, l.olderIn(s)[:1])
	require.Len(t, l.olderIn(s), 1)
}
