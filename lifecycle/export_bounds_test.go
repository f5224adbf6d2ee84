package lifecycle_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A small sink takes nothing that is large.
type smallSink struct{ names []string }

func (s *smallSink) Add(name string, size int64, content io.Reader) error {
	if s.names = append(s.names, name); size > 8<<20 {
		return fmt.Errorf("%s has %d bytes", name, size)
	}
	_, err := io.Copy(io.Discard, content)
	return err
}

func (s *smallSink) Object(h blob.Hash, size int64, _ func() (io.ReadCloser, error)) error {
	if size > 8<<20 {
		return fmt.Errorf("object %s has %d bytes", h, size)
	}
	return nil
}

func (s *smallSink) Close() error { return nil }

// withLarge returns a session with a checkpoint, and the file of a large content of it.
func withLarge(t *testing.T, store *lifecycle.Store) (id session.ID, content string) {
	t.Helper()
	sess := create(t, store, "auth")
	text := strings.Repeat("\x00line\x01", 20_000)
	put(t, store.Project(), "file", text)
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	sum := sha256.Sum256([]byte(text))
	name := path(store, "blobs", hex.EncodeToString(sum[:1]), hex.EncodeToString(sum[1:]))
	if _, err := os.Stat(name); err != nil {
		name += ".zst"
	}
	return sess.ID(), name
}

// A readable file and a stored content that became twenty gigabytes, with holes, are not read by
// an export: the one is made from the log, and the other costs its checkpoint.
func TestExportLeavesASparseFileOut(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, content := withLarge(t, store)
	require.NoError(t, os.Remove(content))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(content, ".zst"), nil, 0o600))
	for _, name := range []string{strings.TrimSuffix(content, ".zst"), path(store, "sessions", id.String(), "state.json"), path(store, "sessions", id.String(), "metrics.json")} {
		require.NoError(t, os.Truncate(name, 20<<30))
	}
	require.NoError(t, os.Truncate(path(store, "sessions", id.String(), "metrics.json"), 512<<20))
	sink := &smallSink{}
	out, err := store.Export(t.Context(), carry.ExportOptions{Sessions: []session.ID{id}}, func(bundle.Header) (carry.Sink, error) { return sink, nil })
	require.NoError(t, err)
	require.Len(t, out.Warnings, 3)
	require.Contains(t, strings.Join(out.Warnings, "\n"), "state.json is left out: its 21474836480 bytes are no text of ours")
	require.Contains(t, strings.Join(out.Warnings, "\n"), "metrics.json is left out")
	require.Contains(t, strings.Join(out.Warnings, "\n"), "it has 21474836480 bytes, and the tree says 120000")
	require.NotContains(t, sink.names, "sessions/"+id.String()+"/state.json")
}

// What --read-data reads of a content is what its checkpoint says, and the end of the command
// ends it.
func TestVerifyDataIsBounded(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, content := withLarge(t, store)
	ended, end := context.WithCancel(t.Context())
	end()
	r, err := store.Verify(id)
	require.NoError(t, err)
	require.ErrorIs(t, store.VerifyData(ended, &r), context.Canceled)
	_, _, err = store.VerifyBlobs(ended)
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, os.Remove(content))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(content, ".zst"), nil, 0o600))
	require.NoError(t, os.Truncate(strings.TrimSuffix(content, ".zst"), 20<<30))
	require.NoError(t, store.VerifyData(t.Context(), &r))
	require.Contains(t, fmt.Sprint(r.Faults), "21474836480 bytes, and not 120000")
	_, damaged, err := store.VerifyBlobs(t.Context())
	require.NoError(t, err)
	require.Len(t, damaged, 1)
	require.Contains(t, damaged[0].Problem, "more than any content that is stored")
}

// A session that is deleted while it is exported is no damage: with --all the others are
// exported, and alone it is not found.
func TestExportOfASessionThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	var ids []session.ID
	for range 130 { // more than stay open
		ids = append(ids, made(t, store, "auth"))
	}
	last, deleted := ids[len(ids)-1], ids[len(ids)-2]
	for _, c := range []struct {
		o    carry.ExportOptions
		gone session.ID
	}{
		{carry.ExportOptions{All: true}, last},
		{carry.ExportOptions{Sessions: ids[:len(ids)-1]}, deleted},
	} {
		begun := 0
		out, err := store.Export(t.Context(), c.o, func(bundle.Header) (carry.Sink, error) {
			if begun++; begun == 1 {
				_, err := store.Delete(t.Context(), c.gone)
				return &smallSink{}, err
			}
			return &smallSink{}, nil
		})
		if !c.o.All {
			require.ErrorIs(t, err, lifecycle.ErrNotFound)
			require.ErrorContains(t, err, "it was deleted meanwhile")
			require.False(t, errors.Is(err, lifecycle.ErrCorrupt))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 2, begun)
		require.Empty(t, out.Skipped)
		require.False(t, out.Incomplete)
		require.Equal(t, []string{"session " + last.String() + " was deleted meanwhile, and is left out"}, out.Warnings)
		require.Len(t, out.Header.Sessions, len(ids)-1)
	}

	// One that goes between the list and the export.
	out, err := store.Export(t.Context(), carry.ExportOptions{All: true, Sessions: []session.ID{last}}, func(bundle.Header) (carry.Sink, error) { return &smallSink{}, nil })
	require.NoError(t, err)
	require.Empty(t, out.Skipped)
	require.False(t, out.Incomplete)
	require.Len(t, out.Warnings, 1)
}

// doctor reads some contents, finds one that is damaged among few, and its last line says of how
// many nothing is known.
func TestDoctorSamplesContents(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, content := withLarge(t, store)
	last := func() repair.Check {
		all := store.Doctor(t.Context())
		return all[len(all)-1]
	}
	require.Equal(t, "contents", last().Name)
	require.False(t, last().Problem)
	require.Contains(t, last().Found, "read and intact")
	require.NotContains(t, last().Found, "nothing is known")
	r, err := store.Verify(id)
	require.NoError(t, err)
	require.Equal(t, 1, r.Unread)
	require.NoError(t, store.VerifyData(t.Context(), &r))
	require.Zero(t, r.Unread)

	ended, end := context.WithCancel(t.Context())
	end()
	all := store.Doctor(ended)
	require.Regexp(t, `^0 of \d+ read and intact, 0 bytes; nothing is known of the other \d+: lopen session verify --read-data reads them all$`, all[len(all)-1].Found)

	data, err := os.ReadFile(content)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.Chmod(content, 0o600))
	require.NoError(t, os.WriteFile(content, data, 0o600))
	require.True(t, last().Problem)
	require.Equal(t, "lopen session verify --read-data reads them all", last().Mend)
}
