package files

import (
	"crypto/sha256"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// Only what was remembered under the key is known. Anything else can be compared with, and spares no
// reading.
func TestRecall(t *testing.T) {
	t.Parallel()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	m, was := Own(), sample()
	require.NoError(t, Remember(dir, "s", was, m, "key"))
	for _, c := range []struct {
		m    Memory
		key  string
		want bool
	}{{m, "key", true}, {m, "other", false}, {Own(), "key", false}, {nil, "key", false}} {
		s, known, err := Recall(dir, "s", c.m, c.key)
		require.NoError(t, err)
		require.Equal(t, c.want, known)
		require.Equal(t, was.Files, s.Files)
		require.Equal(t, known, s.At.Equal(was.At))
		require.Equal(t, known, s.Stored == was.Stored)
	}

	forged := sample()
	forged.At = forged.At.Add(time.Hour)
	require.NoError(t, Remember(dir, "s", forged, nil, ""))
	_, known, err := Recall(dir, "s", m, "key")
	require.NoError(t, err)
	require.False(t, known)
	require.NoError(t, Remember(dir, "s", was, nil, "key"), "without a Memory it is saved")
	_, known, err = Recall(dir, "s", m, "key")
	require.NoError(t, err)
	require.True(t, known, "it is what was remembered")
	_, _, err = Recall(dir, "none", m, "key")
	require.Error(t, err)
}

// A Memory of a process has a bound.
func TestOwnIsBounded(t *testing.T) {
	t.Parallel()
	m := &own{sums: map[string][sha256.Size]byte{}}
	for n := range 3 * maxOwn {
		m.Note(strconv.Itoa(n), blob.Hash{1})
		require.LessOrEqual(t, len(m.sums), maxOwn)
		require.True(t, m.Noted(strconv.Itoa(n), blob.Hash{1}))
	}
}
