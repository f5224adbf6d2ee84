package files

import (
	"errors"
	"flag"
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

func TestPattern(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line    string
		yes, no string // separated by a blank; a slash at the end makes a folder
	}{
		{"a", "a b/a a/ b/a/", "ab"},
		{"/a", "a a/", "b/a"},
		{"a/", "a/ b/a/", "a"},
		{"a/b", "a/b", "c/a/b b"},
		{"*.o", "x.o .o d/x.o", "x.oo"},
		{"/*.o", "x.o", "d/x.o"},
		{"a/**", "a/x a/x/y", "a a/"},
		{"**/a", "a x/a x/y/a", "xa"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a/xb ab"},
		{"a/**/b/c", "a/b/x/b/c", "a/b/x/c"},
		{"a/***/b", "a/x/y/b", "ab"},
		{"a**b/c", "axb/c", "a/x/b/c"},
		{"a**/*", "a ab a/x ax/y", "b x/a"},
		{"a**/b", "ab a/b ax/b a/x/b ax/y/b", "axb xa/b b"},
		{"a*/**", "ab/x a/x", "a ab"},
		{"/a**", "a ab a/x ab/x/y", "x/a b"},
		{"[a]**/b", "ax/b a/b", "ab a/x/b"},
		{"a/*", "a/x", "a/x/y"},
		{"[!a]x", "bx", "ax x"},
		{"[]a]", "] a", "b"},
		{"[a-]", "a -", "b"},
		{"[[:digit:]x]", "7 x", "a :"},
		{`[\]]`, "]", `\`},
		{"[a", "", "[a a"},
		{"[[:no:]]", "", "n a"},
		{"{a,b}", "{a,b}", "a b"},
		{`\!a`, "!a", "a"},
		{`\#a`, "#a", "a"},
		{"#a", "", "#a a"},
		{`a\`, "", `a a\`},
		{"??", "é", "ééé"},
		{"[é]?", "", "x"},
		{"", "", "a"},
		{"/", "", "a a/"},
	} {
		p, ok := parsePattern(tt.line)
		check := func(names string, want bool) {
			for _, name := range strings.Fields(names) {
				name, isDir := strings.CutSuffix(name, "/")
				require.Equal(t, want, ok && p.match(name, path.Base(name), isDir), "%q on %q", tt.line, name)
			}
		}
		check(tt.yes, true)
		check(tt.no, false)
	}
}

func TestParseIgnore(t *testing.T) {
	t.Parallel()
	var all []string
	for _, p := range parseIgnore("\ufeffa \r\n# no\n\n!b\\ \nc/") {
		all = append(all, p.text)
	}
	require.Equal(t, []string{"a", "b ", "c"}, all)
}

// Nested rules, negation and the second file.
func TestIgnored(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	for _, name := range []string{"a.o", "keep.o", "d/a.o", "d/keep.o", "d/x.tmp", "build/keep.o", ".git/config", ".lopen/x", "d/.LOPEN/x"} {
		x.write(name, name)
	}
	x.write(".gitignore", "*.o\n!keep.o\nbuild/\n")
	x.write("d/.gitignore", "!a.o\n*.tmp\n")
	x.write("d/.lopenignore", "!x.tmp\nkeep.o\n")
	require.Equal(t, []string{".gitignore", "d/.gitignore", "d/.lopenignore", "d/a.o", "d/x.tmp", "keep.o"}, paths(x.take(nil, Options{})))
	require.Equal(t, []string{"a.o", "build/keep.o"}, paths(x.take(nil, Options{Paths: []string{"build", "a.o"}})), "what is named is taken, what is in it judged by the rules above")
}

// What was recorded and is ignored now was not deleted.
func TestIgnoredLater(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("d/a", "a")
	x.write("b", "b")
	before := x.take(nil, Options{})
	x.write(".lopenignore", "d\n")
	for range 2 { // it stays known, through snapshots that do not have it
		after, err := Take(t.Context(), x.root, before, Options{})
		require.NoError(t, err)
		require.Equal(t, []Skip{{Path: "d", Reason: Ignored}}, after.Skipped)
		for _, c := range Compare(before, after) {
			require.Equal(t, Created, c.Kind)
			require.Equal(t, ".lopenignore", c.Path)
		}
		before = after
	}
}

// An ignore file that is no regular file, or too large, has no rules.
func TestIgnoreFileOfAnotherKind(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("a", "*\n")
	require.NoError(t, os.Symlink("a", x.path(".gitignore")))
	require.NoError(t, os.Mkdir(x.path(".lopenignore"), 0o755))
	require.Equal(t, []string{".gitignore", ".lopenignore", "a"}, every(x.take(nil, Options{})))

	require.NoError(t, os.Remove(x.path(".gitignore")))
	x.write(".gitignore", "a\n"+strings.Repeat("#", maxIgnore))
	s, err := Take(t.Context(), x.root, nil, Options{})
	require.NoError(t, err)
	require.Equal(t, ".gitignore", s.Skipped[0].Path)
	require.Equal(t, Unreadable, s.Skipped[0].Reason)
	require.NotNil(t, s.Find("a"))
}

// The ignore files along a path are bounded together, those of one branch apart from
// another's. One that exceeds the bound holds nothing, one below that fits does.
func TestIgnoreFilesAreBounded(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	part := "x\n" + strings.Repeat("#", maxIgnore/4-2)
	x.write(".gitignore", part)
	for _, branch := range []string{"a", "b"} {
		x.write(branch+"/.gitignore", part)
		x.write(branch+"/.lopenignore", part)
		x.write(branch+"/c/.gitignore", "y\n"+part)
		x.write(branch+"/c/.lopenignore", "z\n")
		x.write(branch+"/c/d/.gitignore", part)
		for _, name := range []string{"x", "y", "z"} {
			x.write(branch+"/c/d/"+name, name)
		}
	}
	s, err := Take(t.Context(), x.root, nil, Options{})
	require.NoError(t, err)
	var skipped []string
	for _, f := range s.Skipped {
		require.Equal(t, Unreadable, f.Reason)
		skipped = append(skipped, f.Path)
	}
	require.ElementsMatch(t, []string{"a/c/.gitignore", "a/c/d/.gitignore", "b/c/.gitignore", "b/c/d/.gitignore"}, skipped)
	for _, branch := range []string{"a", "b"} {
		require.Nil(t, s.Find(branch+"/c/d/x"), "of the files above")
		require.NotNil(t, s.Find(branch+"/c/d/y"), "of one that is too large")
		require.Nil(t, s.Find(branch+"/c/d/z"), "of one that fits beside it")
	}
}

// TestIgnoredAsGit compares with what git takes of random trees with random rules, in the
// tree and outside of it, and Rules with what git says of each path alone.
func TestIgnoredAsGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git to compare with")
	}
	for seed := range uint64(*gitTrees) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			outside := randomRules(x, rand.New(rand.NewPCG(seed, 1)))
			ask := func(in []string, args ...string) []string {
				cmd := exec.Command(git, args...)
				cmd.Dir, cmd.Stdin = x.dir, strings.NewReader(strings.Join(in, "\x00"))
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+path.Dir(x.dir),
					"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.excludesFile", "GIT_CONFIG_VALUE_0="+x.path(".git/user"))
				out, err := cmd.Output()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 1 { // nothing is ignored
					require.NoError(t, err)
				}
				got := strings.Split(string(out), "\x00")
				slices.Sort(got)
				return append([]string(nil), got[1:]...) // "", of behind the last, comes first
			}
			s := x.take(nil, Options{Outside: outside})
			require.Equal(t, ask(nil, "ls-files", "-z", "--others", "--exclude-standard"), paths(s))

			var all, ignored []string
			require.NoError(t, fs.WalkDir(os.DirFS(x.dir), ".", func(p string, d fs.DirEntry, err error) error {
				if p == ".git" {
					return fs.SkipDir
				}
				if p != "." {
					all = append(all, p)
					if s.Rules.Ignored(p, d.IsDir()) {
						ignored = append(ignored, p)
					}
				}
				return err
			}))
			slices.Sort(ignored)
			require.Equal(t, ask(all, "check-ignore", "-z", "--stdin"), ignored)
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			again := NewRules(s.Rules.Files())
			for _, p := range all { // the order is of no account
				info, err := os.Lstat(x.path(p))
				require.NoError(t, err)
				require.Equal(t, slices.Contains(ignored, p), again.Ignored(p, info.IsDir()), p)
			}
		})
	}
}

// Where git takes both cases of a letter for one, patterns do so as well, in all ignore files.
func TestIgnoredWithoutCase(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to compare with")
	}
	x := newTree(t)
	x.git(nil, "init", "-q")
	x.git(nil, "config", "core.ignorecase", "true")
	x.write(".gitignore", "*.env\nBUILD/\n/Sub/a*c\n[m-p]1\n\u00e9\n!Keep.env\n")
	x.write("sub/.gitignore", "Deep\n")
	for _, name := range []string{"Secret.ENV", "keep.ENV", "Build/b", "build2", "SUB/ABC", "sub/aXC", "N1", "n1", "q1", "\u00c9", "\u00e9", "sub/DEEP/x", "sub/other"} {
		x.write(name, "")
	}
	want := x.git(nil, "ls-files", "-z", "--others", "--exclude-standard")
	fold := []IgnoreFile{{FoldPath, []byte("true\n")}}
	s := x.take(nil, Options{Outside: fold})
	require.Equal(t, want, paths(s))
	require.NotContains(t, want, "Secret.ENV")
	require.Contains(t, want, "\u00c9")
	for name, ignored := range map[string]bool{"Secret.ENV": true, "keep.ENV": false, "Build/b": true, "sub/DEEP/x": true, "q1": false} {
		require.Equal(t, ignored, NewRules(s.Rules.Files()).Ignored(name, false), name)
	}
	require.Contains(t, paths(x.take(nil, Options{})), "Secret.ENV")
	x.write(".gitignore", "")
	x.write("sub/.gitignore", "DEEP\n")
	require.NotContains(t, paths(x.take(nil, Options{Outside: fold})), "sub/DEEP/x", "no file beside it has patterns")
}

var gitTrees = flag.Int("trees", 60, "how many random trees TestIgnoredAsGit compares")

// randomRules makes a repository of names and patterns that are likely to meet. It
// returns what git reads from outside of the tree.
func randomRules(x tree, r *rand.Rand) (outside []IgnoreFile) {
	parts := []string{"a", "b", "ab", "a.o", "b.o", "foo", "foo.txt", "é", "a b", "[x]", "x]", "{a,b}", `a\b`, "!n", "#h", "b ", "-", "]"}
	segments := []string{"a", "b", "*", "**", "***", "*.o", "a*", "?", "??", "[ab]", "[!a]", "[^a]", "[[:alpha:]]", "[![:alpha:]a]", "foo", "f*.t?t", `\[x\]`,
		"{a,b}", `a\\b`, "[a-c]", "[]x]", "[a-]", "[-a]", "[a", "[[:al]", "[[:foo:]]", "a**", "**o", `\!n`, `\#h`, `b\ `, "#h", "é", "[é]", `a\`, "!n", "*o*", `[\]]`, `[a-\c]`}
	of := func(all ...string) string { return all[r.IntN(len(all))] }
	some := func(all []string, n int) (picked []string) {
		for range n {
			picked = append(picked, of(all...))
		}
		return picked
	}
	lines := func() string {
		var all []string
		for range 1 + r.IntN(4) {
			all = append(all, of("", "", "!")+of("", "", "/")+path.Join(some(segments, 1+r.IntN(3))...)+of("", "", "/")+of("", "", "", " ", "\r"))
		}
		return strings.Join(all, "\n")
	}
	for _, dir := range []string{".git/objects", ".git/refs"} { // the least that git takes for a repository
		require.NoError(x.t, os.MkdirAll(x.path(dir), 0o755))
	}
	x.write(".git/HEAD", "ref: refs/heads/x\n")
	for range 60 {
		dir := path.Join(some(parts, r.IntN(4))...)
		if _, err := x.root.Lstat(path.Join(".", dir, "x")); !errors.Is(err, fs.ErrNotExist) || os.MkdirAll(x.path(dir), 0o755) != nil {
			continue // a file has the name
		}
		name := path.Join(dir, of(parts...))
		if _, err := os.Lstat(x.path(name)); err == nil {
			continue
		}
		if r.IntN(5) == 0 {
			require.NoError(x.t, os.Symlink("nowhere", x.path(name)))
		} else {
			x.write(name, "")
		}
		if r.IntN(5) > 0 {
			continue
		}
		x.write(path.Join(dir, ".gitignore"), lines())
	}
	for _, name := range []string{".git/user", ".git/info/exclude"} {
		text := lines()
		x.write(name, text)
		outside = append(outside, IgnoreFile{"//" + name, []byte(text)})
	}
	return outside
}
