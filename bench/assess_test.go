package bench

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/cache/assess"
)

// BenchmarkAssess is an assessment that is remembered, by the number of files in its
// scope; walk walks the same folder with a stat a file.
func BenchmarkAssess(b *testing.B) {
	for _, n := range usual(1_000, 10_000, 100_000) {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			dir, store := b.TempDir(), b.TempDir()
			old := time.Now().Add(-time.Hour)
			for i := range n {
				folder := filepath.Join(dir, fmt.Sprint(i/100))
				if i%100 == 0 {
					require.NoError(b, os.Mkdir(folder, 0o700))
				}
				name := filepath.Join(folder, fmt.Sprint(i))
				require.NoError(b, os.WriteFile(name, nil, 0o600))
				require.NoError(b, os.Chtimes(name, old, old))
			}
			time.Sleep(2100 * time.Millisecond) // until no file is racy
			c := assess.Open(assess.Options{Store: store})
			defer c.Close()
			look, err := assess.Files(dir, nil)
			require.NoError(b, err)
			ask := func() bool {
				_, hit, err := c.GetOrCompute(b.Context(), assess.Key{Name: "bench"}, time.Hour, look, func(context.Context) ([]byte, error) { return nil, nil })
				require.NoError(b, err)
				return hit
			}
			require.False(b, ask())
			walk := func() {
				require.NoError(b, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						_, err = d.Info()
					}
					return err
				}))
			}
			turns.Run(b, turns.Side{Name: "lopen", Do: func() { require.True(b, ask()) }}, turns.Side{Name: "walk", Do: walk})
		})
	}
}
