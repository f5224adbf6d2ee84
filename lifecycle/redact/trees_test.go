package redact_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

var trees = flag.String("trees", "", "folders, separated by colons, in whose texts is counted what is hidden")

// TestWhatIsHiddenInTrees holds that of the project's own files, but for those of tests, which have credentials of all
// forms, less than one in 10,000 lines is hidden. With -trees it is about other folders: it prints each line that is
// hidden, for somebody to judge, and how many there are.
func TestWhatIsHiddenInTrees(t *testing.T) {
	t.Parallel()
	roots := filepath.SplitList(*trees)
	if *trees == "" {
		roots = []string{filepath.Join("..", "..")}
	}
	r := &redact.Redactor{}
	lines, hidden := 0, 0
	look := func(path string) {
		const most = 2 << 20
		text, err := os.ReadFile(path)
		if err != nil || len(text) > most || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
			return
		}
		lines += bytes.Count(text, []byte("\n"))
		got, n := r.Bytes(text)
		if hidden += n; n == 0 {
			return
		}
		for line := range strings.Lines(string(got)) {
			if strings.Contains(line, "[redacted:") {
				t.Logf("%s: %.200s", path, strings.TrimSpace(line))
			}
		}
	}
	for _, root := range roots {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			name := d.Name()
			switch {
			case err != nil:
				return err
			case d.IsDir() && (name == ".git" || *trees == "" && (name == "testdata" || name == "bin")):
				return filepath.SkipDir
			case d.Type().IsRegular() && (*trees != "" || !strings.HasSuffix(name, "_test.go")):
				look(path)
			}
			return nil
		}))
	}
	t.Logf("%d pieces in %d lines", hidden, lines)
	if *trees == "" {
		require.Greater(t, lines, 50_000)
		require.Less(t, hidden*10_000, lines)
	}
}
