package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRemovalsCrossNoMount holds that what removes a folder with all that is in it goes through
// writer/mount, which stops where something is mounted. Tests and what serves them are free.
func TestRemovalsCrossNoMount(t *testing.T) {
	t.Parallel()
	top := filepath.Join("..", "..")
	var free []string
	require.NoError(t, filepath.WalkDir(top, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		switch name = filepath.ToSlash(name); {
		case e.IsDir() && (name == "bench" || name == "lifecycle/fleet/pgtest" || name == "writer/mount" || strings.HasPrefix(name, ".") && name != "."):
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "os.RemoveAll(") {
			free = append(free, name)
		}
		return err
	}))
	require.Empty(t, free, "os.RemoveAll also removes what is mounted in a folder; take mount.RemoveAll")
}
