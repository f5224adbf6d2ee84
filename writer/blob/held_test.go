package blob

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// A Hold gives what the Store gives, from more packs than it keeps open, and lets go of them.
func TestReadingDuringAHold(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	contents := []string{strings.Repeat("large", PackMax)}
	putTogether(t, s, contents[0])
	for i := range maxKept + 3 {
		both := []string{fmt.Sprint("one of ", i), fmt.Sprint("the other of ", i)}
		putTogether(t, s, both...)
		contents = append(contents, both...)
	}
	h := hold(t, New(dir))
	for range 2 {
		for _, content := range contents {
			size, err := h.Size(s.sum([]byte(content)))
			require.NoError(t, err)
			require.EqualValues(t, len(content), size)
			require.True(t, h.Has(s.sum([]byte(content)), size))
			r, err := h.Open(s.sum([]byte(content)))
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			require.Equal(t, content, string(got))
		}
	}
	require.Len(t, h.kept, maxKept)
	require.False(t, h.Has(Hash{1}, 1))
	require.False(t, h.Has(Hash{1}, PackMax+1))
	_, err := h.Open(Hash{1})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = h.Size(Hash{1})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, h.Release())
	require.Empty(t, h.kept)
}

// What is damaged in one pack comes from another, or is an error that names it.
func TestReadingADamagedPackDuringAHold(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	putTogether(t, New(dir), content, "beside it")
	file := packs(t, dir)[0]
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	data[headerSize] ^= 1
	data[headerSize+len(content)] ^= 1
	require.NoError(t, os.WriteFile(file, data, 0o600))
	putTogether(t, New(dir), content)
	s := New(dir)
	h := hold(t, s)
	r, err := h.Open(s.sum([]byte(content)))
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, content, string(got))
	_, err = h.Open(s.sum([]byte("beside it")))
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
	require.ErrorContains(t, err, file)
	require.NoError(t, h.Release())
}
