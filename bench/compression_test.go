package bench

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/codec"
)

var storeFlag = flag.String("store", "", "a .lopen that was written with compression none, for TestWhatCompressionSaves; without it one is made")

// sourcesStore makes a .lopen with a session that has files of this module as messages, and a
// checkpoint of them as one file.
func sourcesStore(t *testing.T) string {
	t.Helper()
	project := t.TempDir()
	store, _, err := lifecycle.Init(project, lifecycle.Options{Policy: lifecycle.Policy{Compression: codec.Options{Codec: "none"}}})
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "sources")
	require.NoError(t, err)
	names, err := filepath.Glob("../lifecycle/*.go")
	require.NoError(t, err)
	var all []byte
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(string(data))}))
		all = append(all, data...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(project, "all"), all, 0o600))
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, errors.Join(err, sess.Close(t.Context()), store.Close(t.Context())))
	return store.Path()
}

// TestWhatCompressionSaves prints, of a store's large files, what they take with each codec.
func TestWhatCompressionSaves(t *testing.T) {
	dir := *storeFlag
	if dir == "" {
		dir = sourcesStore(t)
	}
	kinds := []struct{ name, pattern string }{
		{"segments", `journal-[0-9-]+\.jsonl$`}, {"snapshots", `history/.*\.json$`}, {"output", `output/.*\.(log|raw|md)`}, {"objects", `blobs/[0-9a-f]{2}/`},
	}
	ways := []codec.Options{{Codec: "none"}, {Level: 1}, {Level: 3}, {Level: 9}, {Codec: "gzip", Level: 1}, {Codec: "gzip", Level: 6}}
	fmt.Println("| files | bytes | zstd 1 | zstd 3 | zstd 9 | gzip 1 | gzip 6 |\n|---|---|---|---|---|---|---|")
	for _, k := range kinds {
		sums := make([]int64, len(ways))
		is := regexp.MustCompile(k.pattern)
		require.NoError(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
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
		if *storeFlag == "" && (k.name == "segments" || k.name == "objects") {
			require.Positive(t, sums[0], k.name)
			for i, n := range sums[1:] {
				require.Less(t, n, sums[0]/2, "%s, %v", k.name, ways[i+1])
			}
		}
		fmt.Printf("| %s | %d KiB |", k.name, sums[0]>>10)
		for _, n := range sums[1:] {
			fmt.Printf(" %d %% |", 100*n/max(sums[0], 1))
		}
		fmt.Println()
	}
}
