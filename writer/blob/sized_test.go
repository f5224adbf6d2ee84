package blob

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A content that grows while it is read ends with an error after the bytes that it had.
func TestReadOfABlobThatGrows(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := loose(dir)
	large := strings.Repeat("line\n", 50_000)
	sum := put(t, s, large)
	r, err := s.Open(sum)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, os.Truncate(filepath.Join(dir.Name(), sum.name()), 1<<40))
	n, err := io.Copy(io.Discard, r)
	require.ErrorContains(t, err, "it grows")
	require.LessOrEqual(t, n, int64(len(large)))
}

// A Put that finds its content stored verifies it, and ends with its context.
func TestPutEndsWhileItVerifies(t *testing.T) {
	t.Parallel()
	s := loose(openTemp(t))
	large := strings.Repeat("line\n", 50_000)
	put(t, s, large)
	hold, err := s.Hold(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, hold.Release()) }()
	ctx, cancel := context.WithCancel(t.Context())
	b := hold.Batch().Until(ctx)
	defer b.Discard()
	_, _, err = b.Put(io.MultiReader(strings.NewReader(large), ends{cancel}), Hash{})
	require.ErrorIs(t, err, context.Canceled)
}

// ends is a reader at the end of a content, which ends a context.
type ends struct{ cancel context.CancelFunc }

func (e ends) Read([]byte) (int, error) {
	e.cancel()
	return 0, io.EOF
}
