package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// elsewhere is a place with three checkpoints, and the lines of its chain.
func elsewhere(t *testing.T) (place, []byte) {
	p := newPlace(t)
	p.write("a/x", "one", ".gitignore", "*.log\n", "link", "-> a/x")
	first := p.create(about("s", Manual, nil))
	p.write("a/y", "two")
	second := p.create(about("s", Manual, first))
	p.remove("a/x")
	p.create(about("s", Manual, second))
	lines, err := os.ReadFile(filepath.Join(p.dir, "checkpoints", "main.jsonl"))
	require.NoError(t, err)
	return p, lines
}

func TestBring(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	from, lines := elsewhere(t)
	want, _, err := from.List()
	require.NoError(t, err)

	p := newPlace(t)
	b, err := p.Bring(ctx, lines, false)
	require.NoError(t, err)
	got, faults, err := p.List()
	require.NoError(t, err)
	require.Empty(t, faults)
	require.Equal(t, want, got, "a chain that never had an entry becomes the one that came")
	require.NoError(t, b.Undo(ctx))
	require.NoFileExists(t, filepath.Join(p.dir, "checkpoints", "main.jsonl"))

	p.write("own", "one")
	own := p.create(about("t", Manual, nil))
	mine, err := os.ReadFile(filepath.Join(p.dir, "checkpoints", "main.jsonl"))
	require.NoError(t, err)
	var brought *Brought
	for range 2 { // the second time nothing is left to do
		b, err := p.Bring(ctx, lines, false)
		require.NoError(t, err)
		if brought == nil {
			brought = b
		} else {
			require.Empty(t, b.name)
		}
		apart, err := p.Others()
		require.NoError(t, err)
		require.Len(t, apart, 1)
		require.Regexp(t, "^import-[0-9a-f]{16}$", apart[0].Name())
		got, _, err = apart[0].List()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, mine, mustRead(t, p, "main.jsonl"))
	}
	_, err = p.Find(want[0].ID)
	require.ErrorIs(t, err, ErrNotFound, "it is none of the work tree's")
	require.ErrorContains(t, p.Drop(ctx), "they are those of the project's files")
	require.NoError(t, brought.Undo(ctx))
	apart, err := p.Others()
	require.NoError(t, err)
	require.Empty(t, apart)
	found, err := p.Find(own.ID)
	require.NoError(t, err)
	require.Equal(t, own, found)

	// What was apart stays apart, also in an empty chain.
	p = newPlace(t)
	_, err = p.Bring(ctx, lines, true)
	require.NoError(t, err)
	apart, err = p.Others()
	require.NoError(t, err)
	require.Len(t, apart, 1)
	require.NoError(t, apart[0].Drop(ctx))
	require.NoError(t, apart[0].Drop(ctx))
	require.NoFileExists(t, filepath.Join(p.dir, "checkpoints", apart[0].chainFile()))
}

// Undo takes nothing back that somebody has added to since.
func TestUndoneBringLeavesWhatCameLater(t *testing.T) {
	t.Parallel()
	_, lines := elsewhere(t)
	p := newPlace(t)
	b, err := p.Bring(context.Background(), lines, false)
	require.NoError(t, err)
	p.write("own", "one")
	later, err := p.Create(context.Background(), about("t", Manual, nil))
	require.NoError(t, err)
	require.EqualValues(t, 4, later.Number)
	require.NoError(t, b.Undo(context.Background()))
	_, err = p.Find(later.ID)
	require.NoError(t, err)
}

func mustRead(t *testing.T, p place, name string) []byte {
	data, err := os.ReadFile(filepath.Join(p.dir, "checkpoints", name))
	require.NoError(t, err)
	return data
}

// sizes returns the size function of a place's blobs, without those that are left out.
func sizes(p place, without ...blob.Hash) func(blob.Hash) (int64, bool) {
	return func(h blob.Hash) (int64, bool) {
		for _, w := range without {
			if h == w {
				return 0, false
			}
		}
		n, err := p.blobs.Size(h)
		return n, err == nil
	}
}

func TestCheckBrought(t *testing.T) {
	t.Parallel()
	p, lines := elsewhere(t)
	all, err := p.CheckBrought(sizes(p))
	require.NoError(t, err)
	require.Len(t, all, 3)

	content := blob.Hash(sha256.Sum256([]byte("two")))
	_, err = p.CheckBrought(sizes(p, content))
	require.ErrorContains(t, err, `checkpoint 2`)
	require.ErrorContains(t, err, `the content of y is missing`)
	rules := blob.Hash(sha256.Sum256([]byte("*.log\n")))
	_, err = p.CheckBrought(func(h blob.Hash) (int64, bool) {
		n, ok := sizes(p)(h)
		if h == rules {
			n = maxIgnored + 1
		}
		return n, ok
	})
	require.ErrorContains(t, err, "bytes and its content", "a file has another size than its tree says")

	rewritten := func(change func(e *Entry)) error {
		var out []byte
		for _, e := range all {
			copied := *e
			change(&copied)
			line, err := lineFormat.Encode(copied)
			require.NoError(t, err)
			out = append(out, line...)
		}
		return checked(t, p, out)
	}
	require.NoError(t, rewritten(func(*Entry) {}))
	require.ErrorContains(t, rewritten(func(e *Entry) { e.Files++ }), "its tree has")
	require.ErrorContains(t, rewritten(func(e *Entry) { e.Bytes++ }), "its tree has")
	require.ErrorContains(t, rewritten(func(e *Entry) { e.Root = content }), "it is no folder")
	require.ErrorContains(t, rewritten(func(e *Entry) { e.Rules = content }), "they are no rules")
	require.ErrorContains(t, rewritten(func(e *Entry) { e.Root = blob.Hash{7} }), "checkpoint 1")
	require.ErrorContains(t, rewritten(func(e *Entry) { e.Number += maxNumber }), "more than")
	require.ErrorContains(t, checked(t, p, append(bytes.Clone(lines), "{\n"...)), "cannot be read")
	require.ErrorContains(t, checked(t, p, lines[:len(lines)-1]), "cannot be read")
	require.ErrorIs(t, checked(t, p, append([]byte(strings.Repeat("x", 40)+"\n"), lines...)), envelope.ErrCorrupt)
}

// checked returns the error of CheckBrought of a chain with the objects of a place.
func checked(t *testing.T, p place, lines []byte) error {
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, writer.ReplaceFile(dir, "main.jsonl", lines, filePerm))
	_, err = New(dir, MainTree, p.blobs, nil, Options{}).CheckBrought(sizes(p))
	return err
}

// A few objects that stand for more paths than can be listed, or for a depth that nothing can
// walk, are refused by adding up: each is read once.
func TestTreesThatExplode(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	hold, err := p.blobs.Hold(context.Background())
	require.NoError(t, err)
	defer hold.Release()
	batch := hold.Batch()
	put := func(data []byte) blob.Hash {
		h, _, err := batch.Put(bytes.NewReader(data), blob.Hash{})
		require.NoError(t, err)
		return h
	}
	folder := func(items ...item) blob.Hash {
		data, err := encodeFolder(items)
		require.NoError(t, err)
		return put(data)
	}
	rules := put(encodeRules([2][]ruleFile{}))
	wide := folder()
	for range 200 {
		wide = folder(item{name: "a", kind: kindFolder, mode: 0o755, hash: wide}, item{name: "b", kind: kindFolder, mode: 0o755, hash: wide})
	}
	deep := folder()
	for range maxDepth {
		deep = folder(item{name: "a", kind: kindFolder, mode: 0o755, hash: deep})
	}
	fits := folder()
	for range maxDepth - 1 {
		fits = folder(item{name: "a", kind: kindFolder, mode: 0o755, hash: fits})
	}
	large := put(encodeRules([2][]ruleFile{{{".gitignore", put(make([]byte, maxIgnored+1))}}}))
	require.NoError(t, batch.Commit())
	for _, c := range []struct {
		root, rules blob.Hash
		want        string
	}{
		{wide, rules, "more files or bytes than can be kept"},
		{deep, rules, "folders are more than"},
		{fits, large, "the rules in .gitignore have"},
		{fits, rules, ""},
	} {
		line, err := lineFormat.Encode(Entry{Number: 1, Meta: about("s", Manual, nil), Root: c.root, Rules: c.rules})
		require.NoError(t, err)
		if err = checked(t, p, line); c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
}
