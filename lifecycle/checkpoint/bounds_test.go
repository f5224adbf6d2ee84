package checkpoint

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A stored content that became a terabyte is damaged by its size: nobody reads it, neither for a
// rewind nor to show it, and the next checkpoint stores the content again.
func TestABlobThatGrewIsNotRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	large := strings.Repeat("a line\n", 20_000)
	p.write("large", large)
	first := p.create(about("s", Manual, nil))
	f, _, err := p.Tree(first.Root).Find("large")
	require.NoError(t, err)
	var at string
	require.NoError(t, filepath.WalkDir(filepath.Join(p.dir, "blobs"), func(name string, d fs.DirEntry, err error) error {
		if info, ierr := d.Info(); ierr == nil && info.Size() == int64(len(large)) && info.Mode().IsRegular() {
			at = name
		}
		return err
	}))
	require.NoError(t, os.Truncate(at, 1<<40))

	_, err = p.Content(f)
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
	require.ErrorContains(t, err, "1099511627776 bytes, and not 140000")
	p.write("large", "changed")
	other := *f
	other.Hash, other.Size = blob.Hash{1}, 7
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	now, _, err := p.Look(ctx, about("s", Manual, first))
	require.NoError(t, err)
	stands, _, err := p.Look(ctx, about("s", Manual, first))
	require.NoError(t, err)
	require.Equal(t, now.Root, stands.Root)
	_, err = p.Apply(ctx, &Plan{id: "a1", Changes: []Change{{Kind: KindOverwrite, Path: "large", Old: &other, New: f}}})
	require.ErrorIs(t, err, ErrUnchanged)
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
	data, err := os.ReadFile(p.path("large"))
	require.NoError(t, err)
	require.Equal(t, "changed", string(data))

	p.write("large", large)
	again, err := openPlace(t, p.dir, Options{}).Create(ctx, about("s", Manual, first))
	require.NoError(t, err)
	require.Equal(t, first.Root, again.Root)
	content, err := p.Content(f)
	require.NoError(t, err)
	require.NoError(t, content.Close())
}

// The end of a command ends the hashing of a large file, before a rewind as well.
func TestHashingOfALargeFileEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("large", "")
	require.NoError(t, os.Truncate(p.path("large"), 3<<30))
	for what, do := range map[string]func(context.Context) error{
		"checkpoint": func(ctx context.Context) error {
			_, err := p.Create(ctx, about("s", Manual, nil))
			return err
		},
		"look": func(ctx context.Context) error {
			_, _, err := p.Look(ctx, about("s", Manual, nil))
			return err
		},
		"rewind": func(ctx context.Context) error {
			is := &files.Fingerprint{Path: "large", Mode: 0o644, Size: 3 << 30, Hash: blob.Hash{1}}
			_, err := p.Apply(ctx, &Plan{id: "a2", Changes: []Change{{Kind: KindDelete, Path: "large", Old: is}, {Kind: KindOverwrite, Path: "large", Old: is, New: is}}})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		require.ErrorIs(t, do(ctx), context.DeadlineExceeded, what)
		cancel()
	}
}
