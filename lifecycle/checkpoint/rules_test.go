package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// captured is a tree's paths, what is unknown with its reason.
func captured(t *testing.T, tree *Tree) (all []string) {
	for f, err := range tree.All() {
		require.NoError(t, err)
		if !f.Mode.IsDir() {
			all = append(all, f.Path)
		}
	}
	skipped, err := tree.Skipped()
	require.NoError(t, err)
	for _, k := range skipped {
		all = append(all, k.Path+" "+string(k.Reason))
	}
	return all
}

func (p place) works(parent *Entry, contents ...string) *Entry {
	begin := p.create(about("s", BeforeTask, parent))
	p.write(contents...)
	return p.create(about("s", AfterTask, begin))
}

func (p place) rules(e *Entry) (inForce, found string) {
	r, err := p.Rules(e)
	require.NoError(p.t, err)
	text := func(r *files.Rules) (s string) {
		for _, f := range r.Files() {
			s += f.Path + "=" + string(f.Data) + ";"
		}
		return s
	}
	return text(r.InForce), text(r.Found)
}

// Rules that a task makes take nothing out that was captured, hide nothing and uncover nothing.
func TestRulesOfATask(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(".gitignore", ".env\n", ".env", "secret", "src/a", "one")
	first := p.create(about("s", Manual, nil))
	require.Equal(t, []string{".gitignore", "src/a"}, captured(t, p.Tree(first.Root)))

	e := p.works(first, ".gitignore", "src/\nnode_modules/\n", "src/b", "two", "node_modules/x", "three")
	want := []string{".gitignore", "node_modules/x", "src/a", "src/b"}
	require.Equal(t, want, captured(t, p.Tree(e.Root)))
	e = p.create(about("s", Manual, e)) // by a person, who changed no rules
	require.Equal(t, want, captured(t, p.Tree(e.Root)))
	inForce, found := p.rules(e)
	require.Equal(t, ".gitignore=.env\n;", inForce)
	require.Equal(t, ".gitignore=src/\nnode_modules/\n;", found)
	// The same from another process, which read them.
	other := openPlace(t, p.dir, Options{})
	e = other.create(about("s", Manual, e))
	require.Equal(t, want, captured(t, p.Tree(e.Root)))
	inForce, _ = other.rules(e)
	require.Equal(t, ".gitignore=.env\n;", inForce)
	// Nor do they hold for another session, and what a person makes of such a file is kept.
	p.write("src/a", "of a person")
	fork := other.create(about("fork", Manual, e))
	e = other.create(about("new", Manual, nil))
	for _, e := range []*Entry{fork, e} {
		require.Equal(t, want, captured(t, other.Tree(e.Root)))
		require.Contains(t, list(t, other.Tree(e.Root)), "-rw-r--r-- src/a of a person")
	}
	require.Equal(t, 1, fork.Changed)
}

// Nor do these rules hold once the entries that tell who made them are gone.
func TestRulesOfATaskThatIsForgotten(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("src/a", "one")
	first := p.create(about("old", Manual, nil))
	p.works(nil, ".gitignore", "src/\n")
	p.create(about("s", Manual, nil))
	_, err := p.Forget(context.Background(), "deleted", func(e *Entry) bool { return e.Session == "s" })
	require.NoError(t, err)
	e := p.create(about("new", Manual, nil))
	require.Equal(t, []string{".gitignore", "src/a"}, captured(t, p.Tree(e.Root)))
	require.NotEqual(t, first.Rules, e.Rules)
	inForce, found := p.rules(e)
	require.Empty(t, inForce)
	require.Equal(t, ".gitignore=src/\n;", found)
}

// Nor do they hold where the rules that were in force before cannot be read.
func TestRulesThatAreDamaged(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("src/a", "one")
	p.create(about("s", Manual, nil))
	e := p.works(nil, ".gitignore", "src/\n")
	packs, err := filepath.Glob(p.dir + "/blobs/packs/*.pack")
	require.NoError(t, err)
	for _, pack := range packs {
		data, err := os.ReadFile(pack)
		require.NoError(t, err)
		if i := strings.Index(string(data), rulesMagic); i >= 0 && strings.Contains(string(data), ".gitignore") {
			data[i] ^= 1
			require.NoError(t, os.WriteFile(pack, data, 0o600))
		}
	}
	other := openPlace(t, p.dir, Options{})
	_, err = other.Rules(e)
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	e = other.create(about("s", Manual, e))
	require.Equal(t, []string{".gitignore", "src/a"}, captured(t, other.Tree(e.Root)))
	inForce, _ := other.rules(e)
	require.Empty(t, inForce)
}

// Rules that a person makes between two tasks hold.
func TestRulesOfAPerson(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(".gitignore", ".env\n", ".env", "secret", "data/a", "one", "sub/.gitignore", "x\n", "sub/x", "two")
	e := p.create(about("s", Manual, nil))
	p.write(".gitignore", "data/\n")
	e = p.create(about("s", Manual, e))
	require.Equal(t, []string{".env", ".gitignore", "sub/.gitignore", "data ignored"}, captured(t, p.Tree(e.Root)))
	// What it had does not count as deleted, not even for a process that knows nothing of it.
	e = openPlace(t, p.dir, Options{}).create(about("s", Manual, e))
	require.Equal(t, []string{".env", ".gitignore", "sub/.gitignore", "data ignored"}, captured(t, p.Tree(e.Root)))
	// A task's rules in another file do not come with the person's.
	e = p.works(e, "sub/.gitignore", "y\n", "sub/y", "three")
	p.write(".gitignore", "more\n", "more", "four")
	e = p.create(about("s", Manual, e))
	inForce, _ := p.rules(e)
	require.Equal(t, ".gitignore=more\n;sub/.gitignore=x\n;", inForce)
	require.Equal(t, []string{".env", ".gitignore", "data/a", "sub/.gitignore", "sub/y"}, captured(t, p.Tree(e.Root)))
	p.remove(".gitignore", "sub/.gitignore")
	e = p.create(about("s", Manual, e))
	inForce, found := p.rules(e)
	require.Empty(t, inForce+found)
	require.Equal(t, []string{".env", "data/a", "more", "sub/x", "sub/y"}, captured(t, p.Tree(e.Root)))
}

// A rewind brings an ignore file back as it counted at the target.
func TestRulesOfARewind(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(".gitignore", ".env\n", "src/a", "one")
	first := p.create(about("s", Manual, nil))
	target := p.works(first, ".gitignore", "src/\n")
	e := p.works(target, ".gitignore", "other/\n", "src/b", "two")
	about := func(why Reason) Meta {
		m := about("s", why, e)
		m.Target = target.Number
		return m
	}
	e = p.create(about(BeforeRewind))
	p.write(".gitignore", "src/\n")
	p.remove("src/b")
	e = p.create(about(AfterRewind))
	inForce, found := p.rules(e)
	require.Equal(t, ".gitignore=.env\n;", inForce)
	require.Equal(t, ".gitignore=src/\n;", found)
	require.Equal(t, []string{".gitignore", "src/a"}, captured(t, p.Tree(e.Root)))
}

// What the target has is in the entry before a rewind, although a rule leaves it out.
func TestTargetIsCovered(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("gen/x", "one", "a", "two")
	target := p.create(about("s", Manual, nil))
	p.remove("gen")
	e := p.create(about("s", Manual, target))
	p.budget = files.Budget{}
	e = p.works(e, ".gitignore", "gen/\n", "gen/y", "three")
	p.remove("gen")
	e = p.create(about("s", Manual, e))
	p.write("gen/x", "three")
	meta := about("s", BeforeRewind, e)
	meta.Target = target.Number
	look, tree, err := p.Look(context.Background(), meta)
	require.NoError(t, err)
	require.Equal(t, []string{".gitignore", "a", "gen/x"}, captured(t, tree))
	rules, err := p.Rules(look)
	require.NoError(t, err)
	require.True(t, rules.Found.Ignored("gen/y", false))
	require.False(t, rules.InForce.Ignored("gen/y", false))
	e = p.create(meta)
	require.Equal(t, []string{".gitignore", "a", "gen/x"}, captured(t, p.Tree(e.Root)))
}

func TestRulesFromOutside(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	outside := []files.IgnoreFile{{Path: "//z", Data: []byte("weak\n*.log\n")}, {Path: "//exclude", Data: []byte("!weak\n")}}
	p.opts.Outside = func(context.Context) []files.IgnoreFile { return outside }
	p.write("weak", "1", "x.log", "2", ".gitignore", "y\n", "y", "3")
	e := p.create(about("s", Manual, nil))
	require.Equal(t, []string{".gitignore", "weak"}, captured(t, p.Tree(e.Root)))
	inForce, found := p.rules(e)
	require.Equal(t, "//z=weak\n*.log\n;//exclude=!weak\n;.gitignore=y\n;", inForce)
	require.Equal(t, inForce, found)
	outside = []files.IgnoreFile{outside[0], {Path: "//new", Data: []byte("no\n")}, outside[1]}
	other := openPlace(t, p.dir, p.opts)
	e = other.create(about("s", Manual, e))
	inForce, found = other.rules(e)
	require.Equal(t, "//z=weak\n*.log\n;//new=no\n;//exclude=!weak\n;.gitignore=y\n;", inForce)
	require.Equal(t, inForce, found)
}
