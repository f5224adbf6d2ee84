package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

func TestCreateAndLoad(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"dir/file": "one", "dir/sub/link": "-> ../file", "empty/": "", "odd\xff": "two", ".git/config": "no", ".lopen/x": "no"})
	m := p.create(nil)
	require.Equal(t, ID(1), m.ID)
	require.Equal(t, "cp-000001", m.ID.String())
	require.EqualValues(t, 6, m.Bytes)
	require.Equal(t, 4, m.FilesModified)
	var paths []string
	for _, f := range m.Files.Files {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"dir", "dir/file", "dir/sub", "dir/sub/link", "empty", "odd\xff"}, paths)

	loaded, err := p.Load(1)
	require.NoError(t, err)
	require.Equal(t, m.Header, loaded.Header)
	require.Equal(t, m.Files.Files, loaded.Files.Files)

	list, err := p.List()
	require.NoError(t, err)
	require.Equal(t, []Info{{Header: m.Header}}, list)
	require.NoError(t, p.Pin(1, true))
	require.NoError(t, p.Pin(1, true))
	list, err = p.List()
	require.NoError(t, err)
	require.True(t, list[0].Pinned)
	require.NoError(t, p.Pin(1, false))
	require.NoError(t, p.Pin(1, false))
	list, err = p.List()
	require.NoError(t, err)
	require.False(t, list[0].Pinned)
}

// The number of a checkpoint that was removed is not given again.
func TestIDsAreNeverReused(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	for want := range 3 {
		require.Equal(t, ID(want+1), p.create(nil).ID)
	}
	require.NoError(t, p.Remove(3))
	require.NoError(t, p.Remove(1))
	require.NoError(t, p.Remove(2))
	require.Equal(t, ID(4), p.create(nil).ID)
	require.ErrorIs(t, p.Remove(2), ErrNotFound)
	require.ErrorIs(t, p.Pin(2, true), ErrNotFound)
	_, err := p.Load(2)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, os.WriteFile(filepath.Join(p.dir.Name(), lastName), []byte("cp-9\n"), 0o600))
	_, err = p.Create(context.Background(), testMeta, nil, nil)
	require.ErrorIs(t, err, writer.ErrCorrupt)
	require.ErrorContains(t, err, lastName)
}

func TestParseID(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "cp-", "cp-1", "cp-000000", "cp-0000001", "CP-000001", "cp-00000x", "cp-+00001", "cp-000001 "} {
		_, err := ParseID(bad)
		require.ErrorIs(t, err, writer.ErrInvalid, bad)
	}
	id, err := ParseID("cp-1234567")
	require.NoError(t, err)
	require.Equal(t, ID(1234567), id)
}

// An unchanged file is not read again: its content may even be gone from memory.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"a": "one", "b": "two"})
	old := testMeta.At
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.Chtimes(p.path(name), old, old))
	}
	first := p.create(nil)
	older := first.Files.At.Add(granularity * 2) // as if it had been taken long after the files were made
	require.NoError(t, os.WriteFile(p.path("b"), []byte("three"), 0o644))
	counted := &countFS{FS: p.tree}
	p.Store = New(p.dir, p.blobs, counted)
	base := &Manifest{Header: first.Header, from: p.Store, Files: &files.Snapshot{At: older, Files: first.Files.Files}}
	second := p.create(base)
	require.Equal(t, []string{"b"}, counted.opened)
	require.Equal(t, 1, second.FilesModified)
	require.Equal(t, first.Files.Find("a").Hash, second.Files.Find("a").Hash)
	require.NotEqual(t, first.Files.Find("b").Hash, second.Files.Find("b").Hash)
}

// countFS notes the files that are opened.
type countFS struct {
	writer.FS
	opened []string
}

func (c *countFS) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	c.opened = append(c.opened, name)
	return c.FS.OpenFile(name, flag, perm)
}

// A base whose manifest is gone vouches for nothing: what a sweep took meanwhile is
// stored again.
func TestBaseThatWasSwept(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"a": "one"})
	first := p.create(nil)
	require.NoError(t, p.Remove(first.ID))
	swept, err := p.blobs.Sweep(func() (map[blob.Hash]struct{}, error) { return nil, nil }, false)
	require.NoError(t, err)
	require.Len(t, swept.Hashes, 1)
	second := p.create(first)
	require.NoError(t, p.blobs.Verify(second.Files.Find("a").Hash))
}

func TestLimitedToPaths(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"in/a": "one", "in/b": "two", "out/c": "three"})
	target := p.create(nil, "in")
	p.write(map[string]string{"in/a": "ONE", "in/new": "x", "out/c": "THREE", "out/new": "x"})
	p.remove("in/b")
	last := p.create(nil)
	p.rewind(target, last, true)
	require.Equal(t, map[string]string{
		"in": `drwxr-xr-x ""`, "in/a": `-rw-r--r-- "one"`, "in/b": `-rw-r--r-- "two"`,
		"out": `drwxr-xr-x ""`, "out/c": `-rw-r--r-- "THREE"`, "out/new": `-rw-r--r-- "x"`,
	}, look(t, p.root))
}

func TestDamage(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"a": "one", "dir/b": "two"})
	m := p.create(nil)
	file := filepath.Join(p.dir.Name(), "cp-000001", manifestName)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for at := range whole {
		bad := append([]byte{}, whole...)
		bad[at] ^= 1
		_, err := Decode(bad)
		require.Error(t, err, "byte %d", at)
		_, err = Decode(whole[:at])
		require.Error(t, err, "cut at %d", at)
	}
	for text, class := range map[string]error{
		"": writer.ErrCorrupt, string(whole[:len(whole)-9]): writer.ErrCorrupt,
		strings.Replace(string(whole), `Version":1`, `Version":2`, 1): writer.ErrFutureVersion,
		`{"schemaVersion":2,"other":[`:                                writer.ErrFutureVersion,
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err = p.Load(m.ID)
		require.ErrorIs(t, err, class)
		require.ErrorContains(t, err, file)
		require.ErrorIs(t, Roots(p.dir, ".", map[blob.Hash]struct{}{}), class)
		_, err = p.blobs.Sweep(func() (map[blob.Hash]struct{}, error) {
			into := map[blob.Hash]struct{}{}
			return into, Roots(p.dir, ".", into)
		}, false)
		require.ErrorIs(t, err, class)
		require.NoError(t, p.blobs.Verify(m.Files.Find("a").Hash))
	}
	list, err := p.List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, m.ID, list[0].ID)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	list, err = p.List()
	require.NoError(t, err)
	require.ErrorIs(t, list[0].Err, writer.ErrCorrupt)
}

// A manifest may come from anywhere: with a right checksum too it never leads into
// git's folder, or through a file.
func TestRefusedPaths(t *testing.T) {
	t.Parallel()
	file := func(path string) files.Fingerprint { return files.Fingerprint{Path: path} }
	for name, list := range map[string][]files.Fingerprint{
		"git":     {file(".git/hooks/post-checkout")},
		"lopen":   {file("a/.LOPEN/x")},
		"outside": {file("../x")},
		"through": {file("a"), file("a.txt"), file("a/b/c")},
		"size":    {{Path: "a", Size: 3}},
	} {
		m := &Manifest{Header: Header{ID: 1, Meta: testMeta}, Files: &files.Snapshot{At: testMeta.At, Files: list}}
		data, err := m.Encode()
		require.NoError(t, err)
		_, err = Decode(data)
		require.Error(t, err, name)
	}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPlace(t, dir)
	p.write(map[string]string{"a": "one", "l": "-> a"})
	first := p.create(nil)
	p.write(map[string]string{"a": "two"})
	second := p.create(first)
	top, err := writer.OpenFS(dir)
	require.NoError(t, err)
	defer top.Close()
	into := map[blob.Hash]struct{}{}
	require.NoError(t, Roots(top, "checkpoints", into))
	require.Equal(t, map[blob.Hash]struct{}{first.Files.Find("a").Hash: {}, second.Files.Find("a").Hash: {}}, into)
	require.NoError(t, Roots(top, "not there", into))

	require.NoError(t, os.Rename(filepath.Join(dir, "checkpoints/cp-000001"), filepath.Join(dir, "checkpoints/.deleting-x")))
	into = map[blob.Hash]struct{}{}
	require.NoError(t, Roots(top, ".", into))
	require.Len(t, into, 1)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "checkpoints", strings.Repeat("d/", maxNesting+1)), 0o700))
	require.ErrorContains(t, Roots(top, ".", into), "folders deep")
}

func TestRetire(t *testing.T) {
	t.Parallel()
	cp := func(id ID, contents ...byte) *Manifest {
		m := &Manifest{Header: Header{ID: id}, Files: &files.Snapshot{}}
		for i, c := range contents {
			m.Files.Files = append(m.Files.Files, files.Fingerprint{Path: fmt.Sprint(i), Size: 10, Hash: blob.Hash{c}})
		}
		return m
	}
	manifests := []*Manifest{cp(1, 1, 1, 2), cp(3, 2, 3), cp(4, 3, 4), cp(5, 4, 5), cp(9, 5, 6)}
	many, large := "more than %d checkpoints", "checkpoints have more than %d bytes"
	gone := func(why string, limit int, ids ...ID) (all []Retired) {
		for _, id := range ids {
			all = append(all, Retired{id, fmt.Sprintf(why, limit)})
		}
		return all
	}
	for _, c := range []struct {
		name   string
		limits Limits
		pinned string // IDs
		broken ID     // cannot be read
		loads  int
		want   []Retired
	}{
		{"no limit", Limits{}, "", 0, 0, nil},
		{"within", Limits{Count: 5, Bytes: 60}, "", 0, 5, nil},
		{"within, for sure", Limits{Count: 5, Bytes: 110}, "", 0, 0, nil},
		{"count", Limits{Count: 3}, "", 0, 0, gone(many, 3, 1, 3)},
		{"count, bytes for sure", Limits{Count: 3, Bytes: 110}, "", 0, 0, gone(many, 3, 1, 3)},
		{"bytes", Limits{Bytes: 45}, "", 0, 5, gone(large, 45, 1, 3)},
		{"both", Limits{Count: 4, Bytes: 45}, "", 0, 5, append(gone(many, 4, 1), gone(large, 45, 3)...)},
		{"undo", Limits{Count: 3, Undo: 1}, "", 0, 0, gone(many, 3, 3, 4)},
		{"the last that the loop knew", Limits{Count: 3, Last: 1}, "", 0, 0, gone(many, 3, 3, 4)},
		{"pinned", Limits{Count: 1}, "1359", 0, 0, gone(many, 1, 4)},
		{"the newest stays", Limits{Bytes: 1}, "", 0, 5, gone(large, 1, 1, 3, 4, 5)},
		{"one cannot be read", Limits{Bytes: 1}, "", 3, 5, gone(large, 1, 1, 4, 5)},
	} {
		var all []Info
		for _, m := range manifests {
			info := Info{Header: m.Header, Pinned: strings.Contains(c.pinned, fmt.Sprint(int(m.ID)))}
			m.Blobs(func(_ blob.Hash, size int64) { info.Bytes += size })
			all = append(all, info)
		}
		loads := 0
		got, err := Retire(all, func(id ID) (*Manifest, error) {
			if loads++; id == c.broken {
				return nil, writer.ErrCorrupt
			}
			return manifests[slices.IndexFunc(manifests, func(m *Manifest) bool { return m.ID == id })], nil
		}, c.limits)
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.name)
		require.Equal(t, c.loads, loads, c.name)
	}
	got, err := Retire(nil, nil, Limits{Count: 1})
	require.NoError(t, err)
	require.Empty(t, got)
}

// Holes take no space again.
func TestSparse(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	const size = 16 << 20
	f, err := os.Create(p.path("sparse"))
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("middle"), size/2)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	require.NoError(t, f.Close())
	before := look(t, p.root)["sparse"]
	target := p.create(nil)
	p.remove("sparse")
	last := p.create(nil)
	p.rewind(target, last, false)
	require.True(t, before == look(t, p.root)["sparse"]) // not Equal, which would print it
	require.Less(t, diskBytes(t, p.path("sparse")), int64(1<<20))
	hash := target.Files.Find("sparse").Hash.String()
	require.Less(t, diskBytes(t, filepath.Join(filepath.Dir(p.root), "blobs", hash[:2], hash[2:])), int64(1<<20))
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	meta := testMeta
	meta.Reason = "because"
	_, err := p.Create(context.Background(), meta, nil, nil)
	require.ErrorIs(t, err, writer.ErrInvalid)
	_, err = p.Create(context.Background(), testMeta, nil, []string{"../x"})
	require.ErrorIs(t, err, writer.ErrInvalid)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the end"))
	_, err = p.Create(ctx, testMeta, nil, nil)
	require.Error(t, err)
	list, err := p.List()
	require.NoError(t, err)
	require.Empty(t, list)
}
