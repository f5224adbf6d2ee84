//go:build linux || darwin

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/blob"
)

// keeping is a Keep of paths and the folders that they are in.
func keeping(names ...string) func(string) bool {
	all := map[string]bool{}
	for _, name := range names {
		for p := name; p != "."; p = path.Dir(p) {
			all[p] = true
		}
	}
	return func(p string) bool { return all[p] }
}

// What rules in force and rules that were found leave out, and what was taken before.
func TestInForce(t *testing.T) {
	t.Parallel()
	rules := func(text string) *Rules { return NewRules([]IgnoreFile{{".gitignore", []byte(text)}}) }
	for name, tt := range map[string]struct {
		force *Rules
		found string
		keep  func(string) bool
		want  []string
		skips []Skip
	}{
		"src was added":             {rules(""), "src/\n", keeping("src/a", "src/in/b"), []string{"src/a", "src/in/b", "top"}, nil},
		"a rule of force in it":     {rules("*.o\n"), "src/\n", keeping("src/a", "src/new.o"), []string{"src/a", "top"}, []Skip{{Path: "src/new.o", Reason: Ignored}}},
		"one file of it":            {rules(""), "b\ntop\n", keeping("src/a", "top"), []string{"src/a", "src/new.o", "top"}, nil},
		"src was never taken":       {rules(""), "src/\n", keeping("top"), []string{"top"}, nil},
		"a rule was removed":        {rules("src/\n"), "", keeping("top"), []string{"top"}, nil},
		"a rule was turned":         {rules("src/\n"), "!src/\n", nil, []string{"top"}, nil},
		"in force by now":           {rules("src/\ntop\n"), "", keeping("src/a", "top"), nil, []Skip{{Path: "src", Reason: Ignored}, {Path: "top", Reason: Ignored}}},
		"both":                      {rules("*.o\n"), "*.o\n", keeping("src/new.o"), []string{"src/a", "src/in/b", "top"}, []Skip{{Path: "src/new.o", Reason: Ignored}}},
		"none in force":             {nil, "src/\n", keeping("src/a"), []string{"src/a", "top"}, nil},
		"a folder above says no":    {NewRules([]IgnoreFile{{"src/in/.gitignore", []byte("b\n")}}), "", nil, []string{"src/a", "src/new.o", "top"}, nil},
		"from outside, and weaker":  {NewRules([]IgnoreFile{{"//x", []byte("a\nb\n")}, {".gitignore", []byte("!b\n")}}), "", nil, []string{"src/in/b", "src/new.o", "top"}, nil},
		"the second outside is not": {NewRules([]IgnoreFile{{"//x", []byte("a\nb\n")}, {"//y", []byte("!b\n")}}), "", nil, []string{"src/in/b", "src/new.o", "top"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			for _, p := range []string{"src/a", "src/in/b", "src/new.o", "top"} {
				x.write(p, p)
			}
			x.write(".gitignore", tt.found)
			s, err := Take(t.Context(), x.root, nil, Options{InForce: tt.force, Keep: tt.keep})
			require.NoError(t, err)
			require.Equal(t, append([]string{".gitignore"}, tt.want...), paths(s))
			require.Equal(t, tt.skips, s.Skipped)
			require.Equal(t, []IgnoreFile{{".gitignore", []byte(tt.found)}}, s.Rules.Files(), "what is found is found whatever is in force")
			if tt.keep == nil {
				return
			}
			// It is the same with a base that knows everything.
			all, err := Take(t.Context(), x.root, nil, Options{InForce: NewRules(nil), Keep: func(string) bool { return true }})
			require.NoError(t, err)
			again, err := Take(t.Context(), x.root, all, Options{InForce: tt.force, Keep: tt.keep})
			require.NoError(t, err)
			require.True(t, s.Equal(again))
		})
	}
}

// An agent adds rules, removes one and fills what it ignored: what was taken stays, what
// was left out does too. Rules in a folder that is kept are found, and rule nothing there.
func TestRulesOfAnAgent(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	for _, p := range []string{"src/a.go", "src/gen/b.go", ".env", "main.go"} {
		x.write(p, p)
	}
	x.write(".gitignore", ".env\n")
	before := x.take(nil, Options{})
	require.Equal(t, []string{".gitignore", "main.go", "src/a.go", "src/gen/b.go"}, paths(before))

	x.write(".gitignore", "src/\nnode_modules/\n")
	x.write("src/.gitignore", "gen/\n*.log\n")
	for _, p := range []string{"node_modules/x/index.js", "src/new.go", "src/run.log"} {
		x.write(p, p)
	}
	opts := Options{InForce: before.Rules, Keep: func(p string) bool { return before.Find(p) != nil }, Hide: true}
	after := x.take(before, opts)
	require.Equal(t, []string{".gitignore", "main.go", "src/a.go", "src/gen/b.go"}, paths(after))
	require.Len(t, after.Rules.Files(), 2)
	require.True(t, after.Rules.Ignored("src/a.go", false))
	require.False(t, after.Rules.Ignored(".env", false))

	// What it made is taken, in the order of the paths, until the budget is used up.
	after, used, err := Reveal(t.Context(), x.root, after, opts, Budget{3, 1 << 20})
	require.NoError(t, err)
	require.Equal(t, Budget{3, int64(len("node_modules/x/index.jsgen/\n*.log\nsrc/new.go"))}, used)
	require.Equal(t, []string{".gitignore", "main.go", "node_modules/x/index.js", "src/.gitignore", "src/a.go", "src/gen/b.go", "src/new.go"}, paths(after))
	require.Equal(t, []string{"src/run.log hidden: 1 file, 11 bytes"}, hiddenIn(after))
	opts = Options{InForce: before.Rules, Keep: func(p string) bool { return after.Find(p) != nil }, Hide: true, Hidden: map[string]bool{"src/run.log": true}}
	again, used, err := Reveal(t.Context(), x.root, x.take(after, opts), opts, Budget{1000, 1 << 20})
	require.NoError(t, err)
	require.Zero(t, used)
	require.True(t, after.Equal(again), "and again")
}

// hiddenIn are the hidden paths of a snapshot.
func hiddenIn(s *Snapshot) (all []string) {
	for _, k := range s.Skipped {
		if k.Reason == Hidden {
			all = append(all, fmt.Sprintf("%s %s: %s", k.Path, k.Reason, k.Listing))
		}
	}
	return all
}

// A repository within the tree is left out, unless it was taken before or is asked for,
// and of one that is taken only the .git is not.
func TestNestedRepositories(t *testing.T) {
	t.Parallel()
	for kind, place := range map[string]func(x tree, name string){
		"folder":  func(x tree, name string) { x.write(name+"/HEAD", "ref") },
		"file":    func(x tree, name string) { x.write(name, "gitdir: elsewhere") },
		"symlink": func(x tree, name string) { require.NoError(x.t, os.Symlink("nowhere", x.path(name))) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			for _, p := range []string{"a", "lib/b", "lib/in/c", "other/d", "lib/ignored"} {
				x.write(p, p)
			}
			place(x, ".git")
			before := x.take(nil, Options{})
			place(x, "lib/.git")
			x.write("lib/.gitignore", "ignored\nfresh\n")
			x.write("lib/fresh", "")
			place(x, "lib/in/.git")
			x.write("new/e", "")
			place(x, "new/.git")

			s, err := Take(t.Context(), x.root, before, Options{})
			require.NoError(t, err)
			require.Equal(t, []string{"a", "other/d"}, paths(s))
			require.Equal(t, []string{"other"}, folders(s))
			require.Equal(t, []Skip{{Path: "lib", Reason: Nested}, {Path: "new", Reason: Nested}}, s.Skipped)
			require.Empty(t, Compare(before, s), "it is not known, which is no deletion")

			s, err = Take(t.Context(), x.root, before, Options{InForce: before.Rules, Keep: func(p string) bool { return before.Find(p) != nil }})
			require.NoError(t, err)
			require.Equal(t, []string{"a", "lib/.gitignore", "lib/b", "lib/ignored", "lib/in/c", "other/d"}, paths(s))
			require.Equal(t, []Skip{{Path: "new", Reason: Nested}}, s.Skipped)

			require.Equal(t, []string{"a", "lib/.gitignore", "lib/b", "lib/in/c", "new/e", "other/d"}, paths(x.take(nil, Options{Nested: true})))
			s, err = Take(t.Context(), x.root, nil, Options{Paths: []string{"lib"}})
			require.NoError(t, err)
			require.Equal(t, []string{"lib/.gitignore", "lib/b"}, paths(s), "it is asked for")
			require.Equal(t, []Skip{{Path: "lib/in", Reason: Nested}}, s.Skipped)
		})
	}
}

// .GIT makes a repository only where .git is the same name, as for git. What is in it is never recorded.
func TestRepositoryInAnotherCase(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("lib/.GIT/HEAD", "ref: refs/heads/main\n")
	x.write("lib/b", "")
	s := x.take(nil, Options{})
	top, _, err := openTop(x.root)
	require.NoError(t, err)
	defer top.close()
	listing, nested, err := measure(t.Context(), top, "lib", "lib", nil)
	require.NoError(t, err)
	require.True(t, listing.Fixed, "what has the name of a repository stays where it is")
	_, err = x.root.Lstat("lib/.git")
	require.Equal(t, err == nil, nested)
	if err == nil { // the file system does not tell the cases apart
		require.Equal(t, []Skip{{Path: "lib", Reason: Nested}}, s.Skipped)
		return
	}
	require.Equal(t, []string{"lib/b"}, paths(s))
	require.Empty(t, s.Skipped)
}

// A folder is recorded when it is empty, or something in it is recorded or skipped.
func TestFolders(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	for _, p := range []string{"a/b/c", "obj/x.o", "part/x.o", "part/y"} {
		x.write(p, p)
	}
	require.NoError(t, os.MkdirAll(x.path("e/empty"), 0o700))
	require.NoError(t, os.MkdirAll(x.path("s/special"), 0o755))
	require.NoError(t, os.MkdirAll(x.path("hidden/.lopen"), 0o755))
	fifo(x, "s/special/pipe")
	x.write(".gitignore", "*.o\n")
	s, err := Take(t.Context(), x.root, nil, Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a/b", "e", "e/empty", "part", "s", "s/special"}, folders(s))
	require.Equal(t, fs.ModeDir|0o700, s.Find("e/empty").Mode)
	require.Equal(t, Fingerprint{Path: "a", Mode: fs.ModeDir | 0o755}, *s.Find("a"))
	again, err := Take(t.Context(), x.root, s, Options{})
	require.NoError(t, err)
	require.True(t, s.Equal(again))

	require.NoError(t, os.Remove(x.path("a/b/c")))
	require.NoError(t, os.Remove(x.path("part/y")))
	require.NoError(t, os.Chmod(x.path("s"), 0o700))
	x.write("n/m/new", "new")
	require.NoError(t, os.Mkdir(x.path("e2"), 0o755))
	now, err := Take(t.Context(), x.root, s, Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a/b", "e", "e/empty", "e2", "n", "n/m", "s", "s/special"}, folders(now))
	require.Equal(t, []string{`deleted "" "a/b/c"`, `created "" "e2"`, `created "" "n/m/new"`, `deleted "" "part/y"`, `mode "" "s"`}, kinds(Compare(s, now)))
}

// A folder that went with what was in it is told again by the files alone.
func TestRefreshOfFolders(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	for _, p := range []string{"gone/in/a", "moved/from/b", "stays/c"} {
		x.write(p, p)
	}
	base := x.take(nil, Options{})
	require.NoError(t, os.RemoveAll(x.path("gone")))
	require.NoError(t, os.Rename(x.path("moved"), x.path("to")))
	now := x.take(base, Options{})
	moved := `moved "moved/from/b" "to/from/b"`
	for range 3 {
		require.Equal(t, []string{`deleted "" "gone/in/a"`, moved}, kinds(Compare(base, now)))
		base = base.Refresh(now)
	}
}

// Rules that are in force as they are found are read once and kept once.
func TestRulesAreShared(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	outside := []IgnoreFile{{"//x", []byte("o\n")}}
	x.write(".gitignore", "a\n")
	x.write("d/.gitignore", "b\n")
	s := x.take(nil, Options{Outside: outside})
	same := judge{}.enter("", outside, s.Rules.of("")).enter(".", []IgnoreFile{{".gitignore", []byte("a\n")}}, s.Rules.of("."))
	require.NotNil(t, same.found.level)
	require.Same(t, same.found.level, same.force.level)
	other := same.enter("d", []IgnoreFile{{"d/.gitignore", []byte("c\n")}}, s.Rules.of("d"))
	require.NotSame(t, other.found.level, other.force.level)
	again := x.take(s, Options{Outside: outside, InForce: s.Rules})
	require.Equal(t, s.Rules.Files(), again.Rules.Files())
	for i, f := range again.Rules.Files() {
		require.Same(t, &s.Rules.Files()[i].Data[0], &f.Data[0])
	}
}

// The ignore files of a tree together are bounded, for a Snapshot keeps them. Of a path,
// what exceeds the bound holds nothing.
func TestRulesAreBounded(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	text := "a\n" + strings.Repeat("#", maxIgnore-2)
	x.write("0/.gitignore", text)
	for i := 1; i <= maxRules/maxIgnore; i++ {
		dir := fmt.Sprint(i)
		require.NoError(t, os.Mkdir(x.path(dir), 0o755))
		require.NoError(t, os.Link(x.path("0/.gitignore"), x.path(dir+"/.gitignore")))
	}
	var hashed atomic.Int32
	opts := Options{Hash: func(context.Context, string, io.Reader) (blob.Hash, int64, error) {
		hashed.Add(1)
		return blob.Hash{}, maxIgnore, nil
	}}
	_, err := Take(t.Context(), x.root, nil, opts)
	require.True(t, errors.Is(err, ErrTooMany), err)
	require.NoError(t, os.Remove(x.path("0/.gitignore")))
	s, err := Take(t.Context(), x.root, nil, opts)
	require.NoError(t, err)
	require.True(t, s.Rules.Ignored("1/a", false))

	r := NewRules([]IgnoreFile{{"//x", []byte(text)}, {".gitignore", []byte("b\n")}})
	require.True(t, r.Ignored("a", false))
	require.False(t, r.Ignored("b", false))
	require.Len(t, r.Files(), 2)
	require.False(t, (*Rules)(nil).Ignored("a", false))
	require.Empty(t, (*Rules)(nil).Files())
}

// TestInForceOfRandomRules compares what is taken of random trees with what the two sets of
// rules say of each path alone.
func TestInForceOfRandomRules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*gitTrees) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			x, r := newTree(t), rand.New(rand.NewPCG(seed, 2))
			outside := randomRules(x, r)
			var force []IgnoreFile
			for _, f := range x.take(nil, Options{Outside: outside}).Rules.Files() { // some as they are, some not
				if f = (IgnoreFile{f.Path, bytes.Clone(f.Data)}); r.IntN(3) == 0 {
					f.Data = outside[r.IntN(2)].Data
				}
				if r.IntN(3) > 0 {
					force = append(force, f)
				}
			}
			taken := map[string]bool{}
			for _, f := range x.take(nil, Options{InForce: NewRules(nil), Keep: func(string) bool { return true }}).Files {
				taken[f.Path] = r.IntN(2) == 0 && (parent(f.Path) == "." || taken[parent(f.Path)])
			}
			keep := func(p string) bool { return taken[p] }
			s, err := Take(t.Context(), x.root, nil, Options{Outside: outside, InForce: NewRules(force), Keep: keep})
			require.NoError(t, err)

			again := NewRules(force)
			var want []string
			require.NoError(t, fs.WalkDir(os.DirFS(x.dir), ".", func(p string, d fs.DirEntry, err error) error {
				switch {
				case p == ".":
					return err
				case p == ".git" || again.Ignored(p, d.IsDir()):
				case !s.Rules.Ignored(p, d.IsDir()), keep(p):
					if !d.IsDir() {
						want = append(want, p)
					}
					return err
				}
				if d.IsDir() {
					return fs.SkipDir
				}
				return err
			}))
			slices.Sort(want)
			require.Equal(t, want, paths(s))
			for _, k := range s.Skipped {
				require.Equal(t, Ignored, k.Reason)
				require.True(t, keep(k.Path))
			}
		})
	}
}
