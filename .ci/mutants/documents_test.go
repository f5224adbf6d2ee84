package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a document says a test shows has to have that test.
func TestDocumentsNameTestsThatThereAre(t *testing.T) {
	t.Parallel()
	top := filepath.Join("..", "..")
	defined := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, "_test.go"):
			src, err := os.ReadFile(path)
			for _, m := range function.FindAllStringSubmatch(string(src), -1) {
				defined[m[1]] = true
			}
			return err
		case strings.HasSuffix(path, ".txtar"):
			defined["TestScripts/"+strings.TrimSuffix(filepath.Base(path), ".txtar")] = true
		}
		return nil
	}))
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][\\w/-]*)`")
	for _, name := range []string{"README.md", "DESIGN.md", "SECURITY.md"} {
		text, err := os.ReadFile(filepath.Join(top, name))
		require.NoError(t, err)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			require.True(t, defined[m[1]], "%s names %s", name, m[1])
		}
	}
}
