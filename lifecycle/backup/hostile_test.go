package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// forge makes a backup with a snapshot's file that make returns. put stores an object.
func forge(t *testing.T, build func(put func([]byte) blob.Hash) snapshotFile) *Folder {
	t.Helper()
	f, err := Create(filepath.Join(t.TempDir(), "backup"), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	require.NoError(t, f.prepare())
	s, err := f.objects()
	require.NoError(t, err)
	hold, err := s.Hold(context.Background())
	require.NoError(t, err)
	batch := hold.Batch()
	file := build(func(data []byte) blob.Hash {
		h, _, err := batch.Put(bytes.NewReader(data), blob.Hash{})
		require.NoError(t, err)
		return h
	})
	require.NoError(t, errors.Join(batch.Commit(), hold.Release()))
	file.Number, file.At = 1, time.Unix(0, 0).UTC()
	data, err := sealed.Encode(file)
	require.NoError(t, err)
	require.NoError(t, writer.ReplaceFile(f.files, "snapshots/00000001.json", data, 0o600))
	return f
}

// header is the ref of a header that announces so many bytes.
func forgedHeader(put func([]byte) blob.Hash, bytes string) ref {
	text := []byte(`{"lopen":"x","at":"2026-01-01T00:00:00Z","project":{"path":"/p"},"sessions":[],"bytes":` + bytes + `}`)
	return ref{Hash: put(text), Size: int64(len(text))}
}

// bomb is a ref of depth levels of nodes which name one object again and again.
func bomb(put func([]byte) blob.Hash, leaf []byte, depth int) ref {
	h := put(leaf)
	for range depth {
		h = put(slices.Repeat(h[:], nodeMax/hashSize))
	}
	return ref{Hash: h, Depth: depth, Size: 1 << 62}
}

// A forged snapshot is refused or ends: nothing reads for ever, and no more comes out than was
// announced.
func TestForgedSnapshots(t *testing.T) {
	t.Parallel()
	const huge = "4611686018427387904"
	line := func(e entry) []byte {
		data, err := e.encode()
		require.NoError(t, err)
		return data
	}
	list := func(put func([]byte) blob.Hash, lines []byte) ref {
		return ref{Hash: put(lines), Size: int64(len(lines))}
	}
	for name, c := range map[string]struct {
		why   string
		build func(put func([]byte) blob.Hash) snapshotFile
	}{
		"a bomb of chunks": {"it says, and the folder", func(put func([]byte) blob.Hash) snapshotFile {
			return snapshotFile{Snapshot{Files: 1, Bytes: 1 << 62}, forgedHeader(put, huge), list(put, line(entry{"a", bomb(put, make([]byte, chunkSize), 4)}))}
		}},
		"more than the folder explains": {"it says, and the folder", func(put func([]byte) blob.Hash) snapshotFile {
			return snapshotFile{Snapshot{Bytes: 1 << 62}, forgedHeader(put, huge), ref{}}
		}},
		"a bomb of small chunks": {"its chunks have another size", func(put func([]byte) blob.Hash) snapshotFile {
			at := bomb(put, []byte("x"), 4)
			at.Size = 1 << 30
			return snapshotFile{Snapshot{Files: 1, Bytes: 1 << 30}, forgedHeader(put, huge), list(put, line(entry{"a", at}))}
		}},
		"a bomb of entries": {"it says, and the folder", func(put func([]byte) blob.Hash) snapshotFile {
			return snapshotFile{Snapshot{Files: 1 << 50}, forgedHeader(put, huge), bomb(put, line(entry{"a", ref{}}), 4)}
		}},
		"a list that is longer than it says": {"its list has other than", func(put func([]byte) blob.Hash) snapshotFile {
			at := bomb(put, line(entry{"a", ref{}}), 1)
			at.Size = 1000
			return snapshotFile{Snapshot{Files: 1 << 50}, forgedHeader(put, huge), at}
		}},
		"a header without an end": {"its header has", func(put func([]byte) blob.Hash) snapshotFile {
			return snapshotFile{Snapshot{}, bomb(put, make([]byte, chunkSize), 4), ref{}}
		}},
		"a header that announces less": {"announces 3 bytes of 4", func(put func([]byte) blob.Hash) snapshotFile {
			at := list(put, []byte("four"))
			return snapshotFile{Snapshot{Files: 1, Bytes: 4}, forgedHeader(put, "3"), list(put, line(entry{"a", at}))}
		}},
		"more bytes than of all": {"more than the 4 bytes of all", func(put func([]byte) blob.Hash) snapshotFile {
			at := list(put, []byte("five!"))
			return snapshotFile{Snapshot{Files: 1, Bytes: 4}, forgedHeader(put, "4"), list(put, line(entry{"a", at}))}
		}},
		"fewer entries": {"it has 2 files", func(put func([]byte) blob.Hash) snapshotFile {
			at := list(put, []byte("four"))
			return snapshotFile{Snapshot{Files: 2, Bytes: 4}, forgedHeader(put, "4"), list(put, line(entry{"a", at}))}
		}},
		"an object of another size": {"an object has another size", func(put func([]byte) blob.Hash) snapshotFile {
			at := list(put, []byte("four"))
			at.Size = 3
			return snapshotFile{Snapshot{Objects: 1, Bytes: 3}, forgedHeader(put, "4"), list(put, line(entry{"", at}))}
		}},
		"a line without an end": {"without an end", func(put func([]byte) blob.Hash) snapshotFile {
			return snapshotFile{Snapshot{Files: 1}, forgedHeader(put, "4"), list(put, []byte(`{"name":"a"`))}
		}},
		"a depth below 0": {"as no backup does", func(put func([]byte) blob.Hash) snapshotFile {
			return snapshotFile{Snapshot{}, forgedHeader(put, "4"), ref{Depth: -1, Size: 1}}
		}},
		"a node of odd length": {"no list of hashes", func(put func([]byte) blob.Hash) snapshotFile {
			return snapshotFile{Snapshot{Files: 1}, forgedHeader(put, "4"), ref{Hash: put([]byte("odd")), Depth: 1, Size: 1}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := forge(t, c.build)
			err := drain(f)
			require.ErrorIs(t, err, envelope.ErrCorrupt)
			require.ErrorContains(t, err, c.why)
			require.ErrorContains(t, err, f.path("snapshots/00000001.json"))
			reports, err := f.Verify(context.Background(), 0)
			require.NoError(t, err)
			require.NotEmpty(t, reports[0].Damage)
			_, _, _ = f.Prune(context.Background(), Retention{Bytes: 1}, false) // it ends
		})
	}
}

func drain(f *Folder) error {
	s, err := f.Source(1)
	for err == nil {
		if _, err = s.Next(); err == nil {
			_, err = io.Copy(io.Discard, s)
		}
	}
	return err
}
