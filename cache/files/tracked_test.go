package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrackedNames(t *testing.T) {
	t.Parallel()
	names := tracked(TrackedNames([]string{"b/c", "a", "b.x", "b/c/d", "a", "é"}))
	require.Equal(t, "a\x00b.x\x00b/c\x00b/c/d\x00é\x00", string(names))
	for path, want := range map[string][2]bool{ // of a file, of a folder
		"a": {true, true}, "b": {false, true}, "b.x": {true, true}, "b/c": {true, true}, "b/c/d": {true, true}, "é": {true, true},
		"": {}, "0": {}, "aa": {}, "b/": {}, "b/c/": {}, "b/cc": {}, "b/c/d/e": {}, "c": {}, "ê": {}, "z": {},
	} {
		require.Equal(t, want, [2]bool{names.has(path, false), names.has(path, true)}, path)
	}
	require.False(t, tracked(nil).has("a", true))
	require.True(t, tracked("a\x00b").has("b", false), "damaged, and no reason to panic")
}

// A folder that is ignored is entered for what is tracked in it, and the rest of it stays ignored.
func TestTrackedIsTaken(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	for _, name := range []string{"dist/app.js", "dist/log", "dist/in/a", "dist/in/b", "node/x", "x.o", "y.o", "secret", ".env"} {
		x.write(name, name)
	}
	x.write(".gitignore", "dist/\nnode/\n*.o\n.env\n")
	x.write(".lopenignore", "secret\n")
	outside := func(names ...string) []IgnoreFile { return []IgnoreFile{{TrackedPath, TrackedNames(names)}} }
	opts := Options{Outside: outside("dist/app.js", "dist/gone", "dist/in/a", "x.o", "secret")}
	want := []string{".gitignore", ".lopenignore", "dist", "dist/app.js", "dist/in", "dist/in/a", "x.o"}
	s := x.take(nil, opts)
	require.Equal(t, want, every(s))
	require.Equal(t, opts.Outside[0], s.Rules.Files()[0])

	// Added since with git add -f, and taken off with git rm --cached: both are taken, of dist/in/a by its name alone.
	force := Options{Outside: outside("dist/app.js", ".env"), InForce: s.Rules, Keep: func(string) bool { return false }}
	require.Equal(t, slices.Insert(slices.Clone(want), 0, ".env"), every(x.take(s, force)))

	// A folder that is ignored since is taken whole if it was recorded, tracked names in it or not.
	x.write(".gitignore", "")
	before := x.take(nil, opts)
	x.write(".gitignore", "dist/\n")
	force = Options{Outside: opts.Outside, InForce: before.Rules, Keep: func(p string) bool { return before.Find(p) != nil }}
	require.NotNil(t, x.take(before, force).Find("dist/log"))

	// A folder of a .lopenignore file is not entered.
	x.write(".lopenignore", "dist\n!dist/app.js\n")
	require.Equal(t, []string{".env", ".gitignore", ".lopenignore", "node", "node/x", "secret", "x.o", "y.o"}, every(x.take(nil, opts)))
}

// TestTrackedAsGit compares with git what is taken of random trees with an index, random rules, and
// .lopenignore files in half of them, and Rules with what git says of each path alone.
func TestTrackedAsGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to compare with")
	}
	for seed := range uint64(*gitTrees) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			x, r := newTree(t), rand.New(rand.NewPCG(seed, 3))
			outside := randomRules(x, r)
			var all, index []string
			require.NoError(t, fs.WalkDir(os.DirFS(x.dir), ".", func(p string, d fs.DirEntry, err error) error {
				switch {
				case p == ".git":
					return fs.SkipDir
				case d.IsDir():
				case r.IntN(4) == 0:
					index = append(index, p)
				case r.IntN(9) == 0:
					index = append(index, p+"gone")
				}
				if p != "." {
					all = append(all, p)
				}
				return err
			}))
			if seed%2 == 0 {
				all = append(all, lopenIgnores(x, r, all)...)
			}
			both := joined(x, all)
			x.git(fmt.Appendf(nil, "100644 %040d 0\t%s\x00", 1, strings.Join(index, "\x00100644 "+fmt.Sprintf("%040d", 1)+" 0\t")), "update-index", "-z", "--index-info")

			rules := append([]string{"--exclude-per-directory=" + both}, "--exclude-from="+x.path(".git/user"), "--exclude-from="+x.path(".git/info/exclude"))
			want := x.git(nil, append([]string{"ls-files", "-z", "--others"}, rules...)...)
			own := x.git(nil, "ls-files", "-z", "-ci", "--exclude-per-directory="+lopenIgnore)
			out := x.git(nil, append([]string{"ls-files", "-z", "-ci"}, rules...)...)
			for _, p := range x.git(nil, "ls-files", "-z") {
				if _, err := os.Lstat(x.path(p)); err == nil && !(slices.Contains(own, p) && slices.Contains(out, p)) {
					want = append(want, p)
				}
			}
			isBoth := func(p string) bool { return path.Base(p) == both }
			slices.Sort(want)
			want = slices.DeleteFunc(want, isBoth)
			s := x.take(nil, Options{Outside: append(outside, IgnoreFile{TrackedPath, TrackedNames(x.git(nil, "ls-files", "-z"))})})
			require.Equal(t, want, slices.DeleteFunc(paths(s), isBoth))
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for _, p := range all {
				if info, err := os.Lstat(x.path(p)); err == nil && !info.IsDir() {
					require.Equal(t, !slices.Contains(want, p), s.Rules.Ignored(p, false), p)
				}
			}
		})
	}
}

// A repository within the tree is a change if its state is known and differs.
func TestRepositoryInAnotherState(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("sub/.git/HEAD", "ref")
	x.write("in/sub/.git/HEAD", "ref")
	take := func(state string) *Snapshot {
		s, err := Take(t.Context(), x.root, nil, Options{Repository: func(_ context.Context, path string) string { return strings.TrimPrefix(path+state, "in/sub") }})
		require.NoError(t, err)
		again, err := Decode(s.Encode())
		require.NoError(t, err)
		require.Equal(t, s.Skipped, again.Skipped)
		return again
	}
	one, two := take(" one"), take(" two")
	modified := func(before, after *Snapshot) (paths []string) {
		for _, c := range Compare(before, after) {
			require.Equal(t, Modified, c.Kind)
			paths = append(paths, c.Path)
		}
		return paths
	}
	require.Equal(t, []string{"in/sub", "sub"}, modified(one, two))
	require.Equal(t, []string{"sub"}, modified(one, take("")), "of in/sub nothing is known")
	require.Empty(t, Compare(one, take(" one")))
}

// git returns what git prints for the tree, sorted.
func (x tree) git(in []byte, args ...string) []string {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = x.dir, bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+path.Dir(x.dir))
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		require.NoError(x.t, err, string(exit.Stderr))
	}
	require.NoError(x.t, err)
	if len(out) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00")))
}

// lopenIgnores writes .lopenignore files into some folders, which ignore some of the paths.
func lopenIgnores(x tree, r *rand.Rand, all []string) (made []string) {
	for _, dir := range append([]string{"."}, all...) {
		name := path.Join(dir, lopenIgnore)
		if info, err := os.Lstat(x.path(dir)); err != nil || !info.IsDir() || r.IntN(3) > 0 {
			continue
		}
		var text string
		for range 1 + r.IntN(3) {
			text += []string{"", "", "!"}[r.IntN(3)] + strings.NewReplacer("[", `\[`, "]", `\]`).Replace(path.Base(all[r.IntN(len(all))])) + "\n"
		}
		x.write(name, text)
		made = append(made, name)
	}
	return made
}

// joined writes the rules of each folder's .gitignore and .lopenignore into one file, for a git that reads
// one file of each folder, and returns that file's name.
func joined(x tree, all []string) string {
	const name = ".both"
	for _, dir := range append([]string{"."}, all...) {
		var text []byte
		for _, file := range ignoreFiles {
			data, err := os.ReadFile(x.path(path.Join(dir, file)))
			if err == nil {
				text = append(append(text, data...), '\n')
			}
		}
		if text != nil {
			x.write(path.Join(dir, name), string(text))
		}
	}
	return name
}
