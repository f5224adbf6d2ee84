//go:build linux || darwin

package files

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The same examples in every run; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// seen is what a plain walk finds: the model, which shares no code with Take.
type seen struct {
	content string // of a file; the target of a symlink; "" for a folder
	mode    fs.FileMode
}

func look(t require.TestingT, dir string) map[string]seen {
	all := map[string]seen{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		one := seen{mode: info.Mode()}
		switch {
		case d.IsDir():
		case one.mode.IsRegular():
			data, _ := os.ReadFile(p)
			one.content = string(data)
		default:
			one.content, _ = os.Readlink(p)
			one.mode = fs.ModeSymlink
		}
		all[filepath.ToSlash(rel)] = one
		return nil
	}))
	return all
}

// apply undoes what Compare told: changes on top of the old paths must give the new
// ones, each for a reason that the model confirms.
func apply(t require.TestingT, before, after map[string]seen, changes []Change) {
	now := maps.Clone(before)
	for _, c := range changes { // what is gone makes room first
		if c.Kind == Deleted {
			require.NotContains(t, after, c.Path)
			delete(now, c.Path)
		}
		if c.Kind == Moved {
			require.NotContains(t, after, c.From)
			require.Equal(t, before[c.From].content, after[c.Path].content)
			delete(now, c.From)
		}
	}
	for _, c := range changes {
		a, had := before[c.Path]
		b := after[c.Path]
		switch c.Kind {
		case Created, Moved:
			require.False(t, had, c.Path)
			now[c.Path] = b
		case Modified:
			require.True(t, a.content != b.content || a.mode.Type() != b.mode.Type(), c.Path)
			now[c.Path] = b
		case Mode:
			require.Equal(t, a.content, b.content)
			require.NotEqual(t, a.mode, b.mode)
			now[c.Path] = b
		}
	}
	// Folders come and go with what is in them.
	for p := range now {
		if _, ok := after[p]; !ok && filled(before, p) {
			delete(now, p)
		}
	}
	for p, a := range after {
		if _, ok := now[p]; !ok && filled(after, p) {
			now[p] = a
		}
	}
	require.Equal(t, after, now)
}

// filled says whether something is in a folder.
func filled(all map[string]seen, dir string) bool {
	for p := range all {
		if path.Dir(p) == dir {
			return all[dir].mode.IsDir()
		}
	}
	return false
}

// kinds are changes without fingerprints.
func kinds(changes []Change) (all []string) {
	for _, c := range changes {
		all = append(all, fmt.Sprintf("%s %q %q", c.Kind, c.From, c.Path))
	}
	return all
}

// TestEdits makes random edits by hand between snapshots, with times put back now
// and then so that the stat alone would not tell, and compares with what a plain
// walk and a reading of everything find.
func TestEdits(t *testing.T) {
	t.Parallel()
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		x := newTree(outer)
		x.t = t
		name := rapid.Custom(func(t *rapid.T) string {
			return path.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c.d", "é", "\xff\xfe", "x y"}), 1, 3).Draw(t, "parts")...)
		})
		base := x.take(nil, Options{})
		before := look(t, x.dir)
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for range rapid.IntRange(0, 8).Draw(t, "edits") {
				edit(t, x, name)
			}
			now := x.take(base, Options{})
			after := look(t, x.dir)
			require.Equal(t, slices.Sorted(maps.Keys(after)), every(now))
			apply(t, before, after, Compare(base, now))
			full := x.take(nil, Options{})
			require.Equal(t, full.Files, now.Files, "with a base as without one")
			again, err := Decode(now.Encode())
			require.NoError(t, err)
			require.Equal(t, now.Files, again.Files)

			refreshed := base.Refresh(now)
			require.Equal(t, kinds(Compare(base, now)), kinds(Compare(refreshed, now)), "all of it is told again")
			base, before = again, after
		}
	})
}

// edit makes one change; one that the tree does not allow does nothing.
func edit(t *rapid.T, x tree, names *rapid.Generator[string]) {
	p := x.path(names.Draw(t, "name"))
	_ = os.MkdirAll(filepath.Dir(p), 0o755)
	content := strings.Repeat(rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "content"), rapid.IntRange(0, 3).Draw(t, "times"))
	switch rapid.SampledFrom([]string{"write", "write", "write", "append", "rm", "mv", "chmod", "ln", "touch", "mkdir", "folder", "behind"}).Draw(t, "edit") {
	case "write":
		_ = os.WriteFile(p, []byte(content), 0o644)
	case "append":
		if f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString(content)
			_ = f.Close()
		}
	case "rm":
		_ = os.RemoveAll(p)
	case "mv":
		_ = os.Rename(p, x.path(names.Draw(t, "to")))
	case "chmod":
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
			_ = os.Chmod(p, rapid.SampledFrom([]fs.FileMode{0o600, 0o755, 0o755 | fs.ModeSetuid}).Draw(t, "mode"))
		}
	case "ln":
		_ = os.Symlink(rapid.SampledFrom([]string{"a", "../..", "\xff"}).Draw(t, "target"), p)
	case "touch":
		_ = os.Chtimes(p, time.Time{}, time.Unix(rapid.Int64Range(0, 2e9).Draw(t, "time"), 0))
	case "mkdir":
		_ = os.Mkdir(p, 0o755)
	case "folder":
		if os.RemoveAll(p) == nil && os.Mkdir(p, 0o755) == nil && content != "" {
			_ = os.WriteFile(filepath.Join(p, "in"), []byte(content), 0o644)
		}
	case "behind": // as long as before, and the time put back
		info, err := os.Lstat(p)
		if err == nil && info.Mode().IsRegular() {
			_ = os.WriteFile(p, []byte(strings.Repeat("w", int(info.Size()))), 0o644)
			_ = os.Chtimes(p, time.Time{}, info.ModTime())
		}
	}
}

// The window: a change within the same size, times and inode is seen when the file
// was young at the base, and only then; there the stat is the proof.
func TestRacy(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("f", "one")
	youngest := func() int64 {
		info, err := os.Lstat(x.path("f"))
		require.NoError(t, err)
		s := statOf(info)
		return max(s.modTime, s.chgTime)
	}
	for _, tt := range []struct {
		after time.Duration // between the file's time and the base
		want  []Kind
	}{
		{-time.Hour, []Kind{Modified}}, {0, []Kind{Modified}}, {granularity, []Kind{Modified}}, {granularity + time.Nanosecond, nil},
	} {
		base := x.take(nil, Options{now: func() time.Time { return time.Unix(0, youngest()).Add(tt.after) }})
		// The same stat over another content is what the window is about. The clock of the
		// file system cannot be held, so the base says what the file would have been.
		base.Files[0].Hash[0]++
		var kinds []Kind
		for _, c := range Compare(base, x.take(base, Options{})) {
			kinds = append(kinds, c.Kind)
		}
		require.Equal(t, tt.want, kinds, fmt.Sprint(tt.after))
	}
}

// After a Refresh the window is that of the older base.
func TestRefreshKeepsDoubt(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("f", "one")
	base := x.take(nil, Options{})
	base.Files[0].Hash[0]++ // as in TestRacy
	late := Options{now: func() time.Time { return base.At.Add(time.Hour) }}
	for range 3 {
		now := x.take(base, late)
		changes := Compare(base, now)
		require.Len(t, changes, 1)
		require.Equal(t, Modified, changes[0].Kind)
		base = base.Refresh(now)
	}
}
