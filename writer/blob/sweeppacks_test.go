package blob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// hashes returns the hashes of contents.
func hashes(contents ...string) (all []Hash) {
	for _, c := range contents {
		all = append(all, hashOf(c))
	}
	return all
}

// fill returns a content of about n bytes.
func fill(name string, n int) string { return name + strings.Repeat("x", n) }

// A sweep removes a pack without needed contents, rewrites one that is less than half needed,
// and leaves one that is at least half needed.
func TestSweepPacks(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	live := []string{fill("few", 500), fill("many", 2000), fill("large", PackMax)}
	dead := []string{fill("dead", 1000), fill("mostly dead", 1000), fill("hardly dead", 1000), fill("large and dead", PackMax)}
	putTogether(t, s, dead[0], dead[3])
	putTogether(t, s, live[0], dead[1])
	putTogether(t, s, live[1], dead[2], live[2])
	all := packs(t, dir)
	before, err := s.Usage()
	require.NoError(t, err)

	// The sum of a whole pack, a record and its content in a rewritten pack, and a loose blob.
	freed := int64(16+40+len(dead[0])) + int64(40+len(dead[1])) + int64(len(dead[3]))
	swept, err := s.Sweep(only(hashes(live...)...))
	require.NoError(t, err)
	require.ElementsMatch(t, hashes(dead[0], dead[1], dead[3]), swept.Hashes)
	require.Equal(t, freed, swept.Bytes)

	require.NoFileExists(t, all[0])
	require.NoFileExists(t, all[1])
	require.FileExists(t, all[2])
	for _, s := range []*Store{s, New(dir)} {
		for _, h := range hashes(live...) {
			require.NoError(t, s.Verify(h))
		}
		require.ElementsMatch(t, hashes(append(live, dead[2])...), list(t, s))
	}
	after, err := s.Usage()
	require.NoError(t, err)
	locks := int64(0) // length of the lock file: the sweep recorded its owner
	if info, err := os.Stat(dir.Name() + "/" + lockName); err == nil {
		locks = info.Size()
	}
	require.Equal(t, before-freed+locks, after)

	again, err := s.Sweep(only(hashes(live...)...))
	require.NoError(t, err)
	require.Zero(t, again, "what is swept is swept")
}

// Each call fails once. What is marked stays, and the next sweep completes the work.
func TestSweepPacksFaults(t *testing.T) {
	t.Parallel()
	live := []string{fill("few", 100), fill("few too", 200), fill("many", 2000)}
	setup := func() writer.FS {
		dir := openTemp(t)
		putTogether(t, New(dir), fill("dead", 100))
		putTogether(t, New(dir), live[0], fill("mostly dead", 1000))
		putTogether(t, New(dir), live[1], fill("mostly dead too", 1000))
		putTogether(t, New(dir), live[2], fill("hardly dead", 10))
		return dir
	}
	for _, kill := range []bool{false, true} {
		for n := 1; ; n++ {
			dir := setup()
			decide := failNth(n, fault{err: syscall.EIO, done: n%2 == 0})
			if kill {
				decide = failFrom(n, syscall.EIO)
			}
			f := &faultFS{FS: dir, decide: decide}
			_, err := New(f).Sweep(only(hashes(live...)...))
			f.never(t)
			for _, h := range hashes(live...) {
				require.NoError(t, New(dir).Verify(h), "%d %v", n, f.calls[len(f.calls)-1])
			}
			if n > len(f.calls) {
				require.NoError(t, err)
				require.Greater(t, n, 60)
				break
			}
			_, err = New(dir).Sweep(only(hashes(live...)...))
			require.NoError(t, err)
			require.Len(t, list(t, New(dir)), 4)
			require.Empty(t, temps(t, dir))
		}
	}
}

// When there is no room for a new pack the old one stays, and the sweep continues.
func TestSweepWithoutRoom(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	few := []string{fill("few", 100), fill("a", 3000)}
	putTogether(t, New(dir), few[0], fill("mostly dead too", 1000))
	putTogether(t, New(dir), fill("dead", 100))
	putTogether(t, New(dir), few[1], fill("mostly dead", 9000))
	writes := 0
	f := &faultFS{FS: dir}
	f.decide = func(_ int, call string) fault {
		if call == "write .tmp-blob-*" {
			if writes++; writes > 1 {
				return fault{err: syscall.ENOSPC}
			}
		}
		return fault{}
	}
	all := packs(t, dir)
	swept, err := New(f).Sweep(only(hashes(few...)...))
	require.NoError(t, err)
	f.never(t)
	require.NoFileExists(t, all[0])
	require.NoFileExists(t, all[1])
	require.FileExists(t, all[2], "the larger one comes last, and stays")
	require.ElementsMatch(t, hashes(fill("dead", 100), fill("mostly dead too", 1000)), swept.Hashes)
	require.Empty(t, temps(t, dir))
	for _, h := range hashes(few...) {
		require.NoError(t, New(dir).Verify(h))
	}
}

// A pack with a damaged index stays while a marked blob is missing that may be in it. A pack
// of a newer version stays.
func TestSweepDamagedPacks(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	putTogether(t, s, content, "another")
	putTogether(t, s, "of a newer version")
	all := packs(t, dir)
	flip := func(file string, at int) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		data[at]++
		require.NoError(t, os.WriteFile(file, data, 0o600))
	}
	flip(all[0], 0)
	flip(all[1], headerSize-1)
	swept, err := New(dir).Sweep(only(hashOf(content)))
	require.NoError(t, err)
	require.Empty(t, swept)
	require.Equal(t, all, packs(t, dir))

	put(t, New(dir), content)
	info, err := os.Stat(all[0])
	require.NoError(t, err)
	swept, err = New(dir).Sweep(only(hashOf(content)))
	require.NoError(t, err)
	require.Equal(t, Swept{Bytes: info.Size()}, swept)
	require.NoFileExists(t, all[0])
	require.FileExists(t, all[1])
	require.NoError(t, New(dir).Verify(hashOf(content)))
}

// A pack stays while it has a needed content that is damaged and has no other copy. Once that
// is stored again, the pack is swept.
func TestSweepDamagedContent(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	putTogether(t, New(dir), content, fill("mostly dead", 1000))
	file := packs(t, dir)[0]
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	data[headerSize] ^= 1
	require.NoError(t, os.WriteFile(file, data, 0o600))
	swept, err := New(dir).Sweep(only(hashOf(content)))
	require.NoError(t, err)
	require.Zero(t, swept)
	require.FileExists(t, file)

	put(t, New(dir), content)
	swept, err = New(dir).Sweep(only(hashOf(content)))
	require.NoError(t, err)
	require.Equal(t, Swept{Hashes: hashes(fill("mostly dead", 1000)), Bytes: int64(len(data))}, swept)
	require.NoFileExists(t, file)
	require.NoError(t, New(dir).Verify(hashOf(content)))
}

// When the folder cannot be synced after a rewrite, the old pack stays.
func TestSweepKeepsWhatIsNotDurable(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	putTogether(t, New(dir), content, fill("mostly dead", 1000))
	old := packs(t, dir)
	f := &faultFS{FS: dir, decide: failCalls(map[string]fault{"syncdir packs": {err: syscall.EIO}})}
	swept, err := New(f).Sweep(only(hashOf(content)))
	require.Equal(t, writer.ClassDevice, writer.ClassOf(err))
	require.Empty(t, swept.Hashes)
	require.Equal(t, old, packs(t, dir))
}

// Swept does not list a content of a removed pack if a pack that stays has it too.
func TestSweepSaysWhatIsGone(t *testing.T) {
	t.Parallel()
	dir, other := openTemp(t), openTemp(t)
	putTogether(t, New(dir), content, "twice")
	putTogether(t, New(other), "twice", "once")
	file := packs(t, other)[0]
	require.NoError(t, os.Rename(file, filepath.Join(dir.Name(), "packs", filepath.Base(file))))
	swept, err := New(dir).Sweep(only(hashOf(content)))
	require.NoError(t, err)
	require.Equal(t, hashes("once"), swept.Hashes)
	require.Len(t, list(t, New(dir)), 2)
}

// While packs are stored and swept at once, what a manifest names is never swept.
func TestSweepPacksConcurrent(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	for round := range 10 {
		live := fmt.Sprint("live ", round)
		h := hold(t, New(dir))
		done := make(chan error)
		go func() {
			_, err := New(dir).Sweep(nothing)
			done <- err
		}()
		b := h.Batch()
		err := putAll(b, []string{live, fill(live, 500), fill("dead", round*100)})
		err = errors.Join(err, b.Commit())
		require.ErrorIs(t, <-done, writer.ErrBusy)
		require.NoError(t, err)
		require.NoError(t, h.Release())
		_, err = New(dir).Sweep(only(hashOf(live)))
		require.NoError(t, err)
		require.NoError(t, New(dir).Verify(hashOf(live)))
	}
}
