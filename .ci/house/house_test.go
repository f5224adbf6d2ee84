package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFrontDoors holds how many names the packages export that a caller of the storage
// meets, that each has a caller, and how many files lifecycle has.
func TestFrontDoors(t *testing.T) {
	t.Parallel()
	h, err := read("../..")
	require.NoError(t, err)
	for dir, most := range map[string]int{"lifecycle": 90, "lifecycle/session": 120, "writer": 66} {
		require.LessOrEqual(t, len(h[dir].exported), most, dir)
		require.Empty(t, h.unused(dir), "exported by %s, and used by no other package's source and no Example", dir)
	}
	require.LessOrEqual(t, len(h["lifecycle"].files), 15, "files of lifecycle")
}

// TestUnused is a package of which one name is used by another package, one is part of
// that, one is of an enumeration, one is used by an Example, and one by a test alone.
func TestUnused(t *testing.T) {
	t.Parallel()
	h, err := read("testdata/house")
	require.NoError(t, err)
	require.Equal(t, []string{"Alone", "Lonely", "TestedOnly"}, h.unused("a"))
	require.Len(t, h["a"].exported, 9)
	require.Equal(t, 2, len(h["a"].files)+len(h["b"].files))
}

// TestNothingLargeIsKept: what was built, or recorded at length, does not belong to the sources.
func TestNothingLargeIsKept(t *testing.T) {
	t.Parallel()
	listed, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("the sources are in no repository: ", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(listed), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join("../..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not committed yet
		}
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(1<<20), name)
	}
}
