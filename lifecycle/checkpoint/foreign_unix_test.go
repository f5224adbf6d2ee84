//go:build unix

package checkpoint

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func modeAt(t *testing.T, name string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(name)
	require.NoError(t, err)
	return info.Mode()
}

// A rewind neither sets nor clears setuid, setgid and sticky; a file that it writes anew
// has none of them.
func TestRewindLeavesSpecialBits(t *testing.T) {
	t.Parallel()
	const special = fs.ModeSetuid | fs.ModeSetgid
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"mode": "one", "content": "one", "bare": "one", "dir/a": "one"})
	chmod := func(name string, mode fs.FileMode) { require.NoError(t, os.Chmod(p.path(name), mode)) }
	chmod("mode", 0o755|special)
	chmod("content", 0o755|special)
	chmod("bare", 0o755|special)
	chmod("dir", 0o755|fs.ModeSetgid|fs.ModeSticky)
	first := p.create(nil)
	for _, f := range first.Files.Files {
		require.Zero(t, f.Mode&specialBits, f.Path)
	}
	chmod("mode", 0o700|special)
	p.write(map[string]string{"content": "two"})
	chmod("bare", 0o755) // somebody took them away, which no checkpoint sees
	chmod("dir", 0o700|fs.ModeSetgid|fs.ModeSticky)
	last := p.create(nil)
	plan, done := p.rewind(first, last, false)
	require.Len(t, plan.Changes, 3)
	require.Equal(t, Applied{Changes: 3}, done)
	require.Equal(t, 0o755|special, modeAt(t, p.path("mode")))
	require.Equal(t, fs.FileMode(0o755), modeAt(t, p.path("content")))
	require.Equal(t, fs.FileMode(0o755), modeAt(t, p.path("bare")))
	require.Equal(t, fs.ModeDir|0o755|fs.ModeSetgid|fs.ModeSticky, modeAt(t, p.path("dir")))
}

// A manifest that names such bits is nobody's: lopen never wrote it. No change of a plan
// sets one either, wherever it came from.
func TestManifestWithSpecialBitsIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"a": "one", "dir/": ""})
	m := p.create(nil)
	data, err := m.Encode()
	require.NoError(t, err)
	for mode, forged := range map[string]string{`"mode":"100644"`: `"mode":"104644"`, `"mode":"40755"`: `"mode":"42755"`} {
		require.Contains(t, string(data), mode)
		body := strings.Replace(string(data[:strings.LastIndex(string(data), sumKey)]), mode, forged, 1)
		_, err = Decode(fmt.Appendf(nil, "%s%s%x%s", body, sumKey, sha256.Sum256([]byte(body)), tail))
		require.ErrorContains(t, err, "has no mode of a file, a folder or a symlink")
	}
	for _, path := range []string{"a", "dir"} {
		bad := *m.Files.Find(path)
		bad.Mode |= specialBits
		_, err = p.Apply(t.Context(), &Plan{Changes: []Change{{Kind: KindCreate, Path: "new", New: &bad}}})
		require.NoError(t, err)
		require.Zero(t, modeAt(t, p.path("new"))&specialBits)
		p.remove("new")
	}
}

// A file whose mode a rewind changes may be a hard link to what is outside: that keeps
// its mode, and the project has a file of its own.
func TestModeOfAHardLink(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	outside := filepath.Join(filepath.Dir(p.root), "outside")
	p.write(map[string]string{"a": "one", "b": "one"})
	require.NoError(t, os.Chmod(p.path("a"), 0o666))
	first := p.create(nil)
	p.remove("a")
	require.NoError(t, os.WriteFile(outside, []byte("one"), 0o600))
	require.NoError(t, os.Link(outside, p.path("a")))
	last := p.create(nil)
	plan, done := p.rewind(first, last, false)
	require.Len(t, plan.Changes, 1)
	require.Equal(t, KindMode, plan.Changes[0].Kind)
	require.Equal(t, Applied{Changes: 1}, done)
	require.Equal(t, fs.FileMode(0o600), modeAt(t, outside))
	require.Equal(t, fs.FileMode(0o666), modeAt(t, p.path("a")))
	data, err := os.ReadFile(p.path("a"))
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
	again, err := p.Apply(context.Background(), plan)
	require.NoError(t, err)
	require.Equal(t, done, again)
}
