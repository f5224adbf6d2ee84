package bundle

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The standard library writes and reads the same blocks; it writes a size beyond 8 GiB in
// another way, and reads it.
func TestBlocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "a/b", strings.Repeat("a", 100), strings.Repeat("a", 99) + "/b", strings.Repeat("a", 100) + "/b",
		strings.Repeat("a", 100) + "/" + strings.Repeat("b", 100), strings.Repeat("a/", 7) + strings.Repeat("b", 99), strings.Repeat("a", 60) + "/" + strings.Repeat("b", 90) + "/" + strings.Repeat("c", 100)} {
		for _, size := range []int64{0, 1, 511, maxOctal, maxOctal + 1, 1 << 62} {
			for _, mtime := range []int64{0, 1771061400, maxOctal} {
				b, err := newBlock(name, size, mtime)
				require.NoError(t, err)
				if size <= maxOctal {
					var out bytes.Buffer
					require.NoError(t, tar.NewWriter(&out).WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: time.Unix(mtime, 0), Format: tar.FormatUSTAR}))
					require.Equal(t, out.Bytes(), b[:])
				}
				h, err := tar.NewReader(bytes.NewReader(b[:])).Next()
				require.NoError(t, err)
				require.Equal(t, []any{name, size, mtime}, []any{h.Name, h.Size, h.ModTime.Unix()})
				name2, size2, mtime2, err := b.parse()
				require.NoError(t, err)
				require.Equal(t, []any{name, size, mtime}, []any{name2, size2, mtime2})
			}
		}
	}
	for _, name := range []string{strings.Repeat("a", 101), strings.Repeat("a", 156) + "/b", "a/" + strings.Repeat("b", 101), ""} {
		_, err := newBlock(name, 0, 0)
		require.ErrorContains(t, err, "too long")
	}
}
