//go:build linux || darwin

package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at calls do after the names of a folder were read for the nth time, from 1 on.
func at(do func(folder string, n int)) Options {
	var mu sync.Mutex
	times := map[string]int{}
	return Options{looked: func(folder string) {
		mu.Lock()
		defer mu.Unlock()
		times[folder]++
		do(folder, times[folder])
	}}
}

func (x tree) move(from, to string) {
	require.NoError(x.t, os.MkdirAll(filepath.Dir(x.path(to)), 0o755))
	require.NoError(x.t, os.Rename(x.path(from), x.path(to)))
}

// Whatever is renamed while the tree is looked at is found once, where it is at the end.
func TestRenamedWhileLookedAt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(x tree, folder string, n int)
		want string
	}{
		"a file into a folder that was read": {func(x tree, folder string, n int) {
			if folder == "z" && n == 1 { // its names were read, and not those of a
				x.move("a/f", "z/g")
			}
		}, "a a/sub a/sub/h k z z/e z/g"},
		"a file out of a folder that was read": {func(x tree, folder string, n int) {
			if folder == "a" && n == 1 {
				x.move("a/f", "z/f")
			}
		}, "a a/sub a/sub/h k z z/e z/f"},
		"a folder": {func(x tree, folder string, n int) {
			if folder == "a" && n == 1 {
				x.move("a/sub", "z/sub")
			}
		}, "a a/f k z z/e z/sub z/sub/h"},
		"a folder, and another one takes its name": {func(x tree, folder string, n int) {
			if folder == "a/sub" && n == 1 {
				x.move("a/sub", "z/sub")
				x.write("a/sub/i", "i")
			}
		}, "a a/f a/sub a/sub/i k z z/e z/sub z/sub/h"},
		"the last file of a folder": {func(x tree, folder string, n int) {
			if folder == "a/sub" && n == 1 {
				x.move("a/sub/h", "h")
			}
		}, "a a/f a/sub h k z z/e"},
		"a folder becomes a file": {func(x tree, folder string, n int) {
			if folder == "a/sub" && n == 1 {
				x.move("a/sub", "sub")
				x.write("a/sub", "file")
			}
		}, "a a/f a/sub k sub sub/h z z/e"},
		"rules that appear": {func(x tree, folder string, n int) {
			if folder == "a/sub" && n == 1 {
				x.write("a/.gitignore", "h\n")
			}
		}, "a a/.gitignore a/f k z z/e"},
		"each pass but the last": {func(x tree, folder string, n int) {
			if folder == "a" && n < passes {
				x.write(fmt.Sprint("a/n", n), "n")
			}
		}, "a a/f a/n1 a/n2 a/n3 a/n4 a/sub a/sub/h k z z/e"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, based := range []bool{false, true} {
				x := newTree(t)
				for _, f := range []string{"a/f", "a/sub/h", "z/e"} {
					x.write(f, f)
				}
				require.NoError(t, os.Mkdir(x.path("k"), 0o755))
				var base *Snapshot
				if based && name != "rules that appear" { // what the base has is named
					base = x.take(nil, Options{now: func() time.Time { return time.Now().Add(time.Hour) }})
				}
				s := x.take(base, at(func(folder string, n int) { tt.do(x, folder, n) }))
				require.Empty(t, s.Unstable)
				require.Equal(t, strings.Fields(tt.want), every(s))
				require.Equal(t, s.Files, x.take(nil, Options{}).Files)
			}
		})
	}
}

// A folder that is not what it was after the last pass is unstable, and of what is not recorded
// in it nothing is known.
func TestNeverSettles(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	for _, f := range []string{"a/f", "a/sub/h", "z/e"} {
		x.write(f, f)
	}
	before := x.take(nil, Options{})
	s := x.take(before, at(func(folder string, n int) {
		if folder == "a" {
			x.move("a/f", "a/g")
			x.move("a/g", "a/f")
		}
	}))
	require.Equal(t, []string{"a"}, s.Unstable)
	require.Equal(t, paths(before), paths(s))
	for path, known := range map[string]bool{"a": true, "a/f": true, "a/sub/h": true, "a/sub/i": true, "z/i": true, "i": true, "a/x": false, "a/x/y": false} {
		require.Equal(t, known, s.Covers(path), path)
	}
	require.False(t, s.Equal(before))
	read, err := Decode(s.Encode())
	require.NoError(t, err)
	require.True(t, s.Equal(read))

	x.write("a/x", "x")
	require.NoError(t, os.Remove(x.path("a/f")))
	after := x.take(s, Options{})
	require.Empty(t, after.Unstable)
	require.Equal(t, []Change{{Kind: Deleted, Path: "a/f", Old: s.Find("a/f")}}, Compare(s, after), "a/x may have been there")
	require.Empty(t, Compare(after, s)[1:], "nor is a/x known to be gone")
	fresh := s.Refresh(after)
	require.Empty(t, fresh.Unstable)
	require.Equal(t, []string{`deleted "" "a/f"`}, kinds(Compare(fresh, after)))
}

// A change within the tick of the clock leaves no other stat, so the folder is read again.
func TestChangedWithinTheTick(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("a/f", "f")
	info, err := os.Lstat(x.path("a"))
	require.NoError(t, err)
	changed := statOf(info).changed()
	waited, reads := false, 0
	s := x.take(nil, Options{
		tick: func() int64 {
			if waited {
				return changed + 1
			}
			return changed
		},
		wait: func() { waited = true },
		looked: func(folder string) {
			if folder == "a" {
				reads++
			}
		},
	})
	require.Empty(t, s.Unstable)
	require.True(t, waited)
	require.Equal(t, 2, reads)

	var all atomic.Int32
	x.take(nil, Options{tick: func() int64 { return changed - 10*maxTick }, wait: func() {}, looked: func(string) { all.Add(1) }})
	require.EqualValues(t, 2, all.Load(), "the root and a, whose time is not now")
}
