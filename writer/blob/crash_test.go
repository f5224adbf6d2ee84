package blob_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// packMax is low in these tests, because the variants of large files would take long.
const packMax = 2000

// on opens the blobs' folder of a simulated disk.
func on(t require.TestingT, disk *crashfs.Disk) *blob.Store {
	dir, err := disk.FS().Sub("blobs")
	require.NoError(t, err)
	return blob.NewPacking(dir, packMax)
}

func store(s *blob.Store, content string) (blob.Hash, error) {
	h, err := s.Hold(context.Background())
	if err != nil {
		return blob.Hash{}, err
	}
	b := h.Batch()
	hash, _, err := b.Put(strings.NewReader(content), blob.Hash{})
	return hash, errors.Join(err, b.Commit(), h.Release())
}

// TestPowerCutAnywhere cuts the power before every call of two Puts, in every variant.
// An acknowledged content is whole; another one is absent, whole, or healed by storing
// it again. That survives another cut.
func TestPowerCutAnywhere(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("first", 300), strings.Repeat("second", 500) // one in a pack, one with its own file
	explored := 0
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		disk := crashfs.New(mode)
		require.NoError(t, writer.MkdirDurable(disk.FS(), "blobs"))
		type point struct {
			disk   *crashfs.Disk
			op     string
			stored []blob.Hash
		}
		var points []point
		var stored []blob.Hash
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 {
				points = append(points, point{disk.Snapshot(), op.Call + " " + op.Name, stored[:len(stored):len(stored)]})
			}
			return crashfs.Fault{}
		})
		s := on(t, disk)
		for _, content := range []string{first, second, first} {
			hash, err := store(s, content)
			require.NoError(t, err)
			stored = append(stored, hash)
		}
		disk.SetHook(nil)
		points = append(points, point{disk, "the end", stored})
		for _, p := range points {
			for _, v := range p.disk.Variants(nil, 0) {
				explored++
				found := p.disk.Crash(v)
				require.NoError(t, checkCut(t, found, p.stored, first, second), "cut before %s, %s", p.op, v.Name)
			}
		}
	}
	require.Greater(t, explored, 120)
}

func checkCut(t *testing.T, disk *crashfs.Disk, stored []blob.Hash, contents ...string) error {
	s := on(t, disk)
	for _, h := range stored {
		if err := s.Verify(h); err != nil {
			return fmt.Errorf("what was stored: %w", err)
		}
	}
	for _, content := range contents {
		hash, err := store(s, content)
		if err != nil {
			return fmt.Errorf("store again: %w", err)
		}
		cut := on(t, disk.Crash(crashfs.Variant{}))
		if err := cut.Verify(hash); err != nil {
			return fmt.Errorf("after the second cut: %w", err)
		}
	}
	return nil
}

// The error for a missing, damaged or empty blob names it. Storing it again heals it, and a
// sweep leaves what is referenced.
func TestFault29MissingDamagedHusk(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir writer.FS, file string) error{
		"missing": func(dir writer.FS, file string) error { return dir.Remove(file) },
		"husk":    func(dir writer.FS, file string) error { return writer.ReplaceFile(dir, file, nil, 0o600) },
		"damaged": func(dir writer.FS, file string) error {
			return writer.ReplaceFile(dir, file, []byte("the content, not as it was"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := crashfs.New(crashfs.Ext4)
			require.NoError(t, writer.MkdirDurable(disk.FS(), "blobs"))
			dir, err := disk.FS().Sub("blobs")
			require.NoError(t, err)
			s := blob.NewPacking(dir, -1)
			hash, err := store(s, "the content as it was")
			require.NoError(t, err)
			other, err := store(s, "referenced by nobody")
			require.NoError(t, err)
			text := hash.String()
			require.NoError(t, spoil(dir, text[:2]+"/"+text[2:]))

			err = read(s, hash)
			require.Error(t, err)
			require.ErrorContains(t, err, text[2:], "it is named")
			if name == "missing" {
				require.ErrorIs(t, err, fs.ErrNotExist)
			} else {
				require.ErrorIs(t, err, envelope.ErrCorrupt)
			}
			again, err := store(s, "the content as it was")
			require.NoError(t, err)
			require.Equal(t, hash, again)
			require.NoError(t, read(s, hash))

			swept, err := s.Sweep(func() (map[blob.Hash]struct{}, error) { return map[blob.Hash]struct{}{hash: {}}, nil })
			require.NoError(t, err)
			require.Equal(t, []blob.Hash{other}, swept.Hashes)
			require.NoError(t, read(s, hash))
		})
	}
}

func read(s *blob.Store, h blob.Hash) error {
	r, err := s.Open(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}
