package bench

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/codec"
)

var storeFlag = flag.String("store", "", "a .lopen that was written with compression none, for TestWhatCompressionSaves")

// TestWhatCompressionSaves prints, of a store's large files, what they take with each codec.
func TestWhatCompressionSaves(t *testing.T) {
	if *storeFlag == "" {
		t.Skip("give -store")
	}
	kinds := []struct{ name, pattern string }{
		{"segments", `journal-[0-9-]+\.jsonl$`}, {"snapshots", `history/.*\.json$`}, {"output", `output/.*\.(log|raw|md)`}, {"objects", `blobs/[0-9a-f]{2}/`},
	}
	ways := []codec.Options{{Codec: "none"}, {Level: 1}, {Level: 3}, {Level: 9}, {Codec: "gzip", Level: 1}, {Codec: "gzip", Level: 6}}
	fmt.Println("| files | bytes | zstd 1 | zstd 3 | zstd 9 | gzip 1 | gzip 6 |\n|---|---|---|---|---|---|---|")
	for _, k := range kinds {
		sums := make([]int64, len(ways))
		is := regexp.MustCompile(k.pattern)
		require.NoError(t, filepath.WalkDir(*storeFlag, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !is.MatchString(filepath.ToSlash(name)) {
				return err
			}
			data, err := os.ReadFile(name)
			data = bytes.TrimRight(data, "\x00") // what a segment was filled with
			for i, by := range ways {
				n := int64(len(data))
				if i > 0 && (n > 64<<10 || k.name == "segments" || k.name == "snapshots") {
					n = min(n, int64(len(by.Encoder().Frame(data))))
				}
				sums[i] += n
			}
			return err
		}))
		fmt.Printf("| %s | %d KiB |", k.name, sums[0]>>10)
		for _, n := range sums[1:] {
			fmt.Printf(" %d %% |", 100*n/max(sums[0], 1))
		}
		fmt.Println()
	}
}
