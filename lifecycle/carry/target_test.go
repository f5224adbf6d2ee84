package carry

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

const exported = "what was exported, in two pieces"

// write is what a command does with a target.
func write(dir writer.FS, force bool) error {
	t, err := createIn(dir, "out", force)
	if err != nil {
		return err
	}
	defer t.Discard()
	for _, piece := range []string{exported[:7], exported[7:]} {
		if _, err := t.Write([]byte(piece)); err != nil {
			return err
		}
	}
	return t.Commit()
}

// diskWith returns a disk on which out has a content, "" for no such file.
func diskWith(t *testing.T, mode crashfs.Mode, content string) *crashfs.Disk {
	d := crashfs.New(mode)
	if content != "" {
		require.NoError(t, writer.ReplaceFile(d.FS(), "out", []byte(content), 0o600))
	}
	return d
}

func contentOf(t *testing.T, dir writer.FS) string {
	data, err := writer.ReadFile(dir, "out", 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	return string(data)
}

// TestTargetEveryCut cuts the power at each call: the file is the old one or the new one, and
// the new one once Commit returned.
func TestTargetEveryCut(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "an older one"} {
		for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
			d := diskWith(t, mode, before)
			rng := rand.New(rand.NewPCG(1, 2))
			look := func(d *crashfs.Disk, want ...string) {
				for _, v := range d.Variants(rng, 20) {
					require.Contains(t, want, contentOf(t, d.Crash(v).FS()), v.Name)
				}
			}
			d.SetHook(func(op crashfs.Op) crashfs.Fault {
				look(d.Snapshot(), before, exported)
				return crashfs.Fault{}
			})
			require.NoError(t, write(d.FS(), before != ""))
			d.SetHook(nil)
			look(d, exported)
		}
	}
}

// TestTargetEveryFault fails each call: nothing is left behind, and what was there stays,
// unless the error says that the new file is not durable.
func TestTargetEveryFault(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "an older one"} {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EPERM} {
			for n, done := 1, false; !done; n++ {
				d := diskWith(t, crashfs.Ext4, before)
				count, what := 0, ""
				d.SetHook(func(op crashfs.Op) crashfs.Fault {
					if op.N == 0 {
						return crashfs.Fault{}
					}
					if count++; count == n {
						what = fmt.Sprintf("%s %s: %v", op.Call, op.Name, errno)
						return crashfs.Fault{Err: errno}
					}
					return crashfs.Fault{}
				})
				err := write(d.FS(), before != "")
				d.SetHook(nil)
				done = what == ""
				want := []string{before}
				if e, ok := errors.AsType[*writer.Error](err); err == nil || ok && e.Outcome == writer.NotDurable {
					want = []string{exported}
				}
				require.Contains(t, want, contentOf(t, d.FS()), what)
				entries, err := d.FS().ReadDir(".")
				require.NoError(t, err)
				for _, e := range entries {
					require.True(t, e.Name() == "out" || strings.Contains(what, "remove"), "%s: %s is left", what, e.Name())
				}
			}
		}
	}
}

func TestTargetTakesNothingsPlace(t *testing.T) {
	t.Parallel()
	d := crashfs.New(crashfs.Ext4)
	dir := d.FS()
	one, err := createIn(d.FS(), "out", false)
	require.NoError(t, err)
	require.NoError(t, writer.ReplaceFile(dir, "out", []byte("somebody else's"), 0o600))
	err = one.Commit()
	require.ErrorIs(t, err, fs.ErrExist)
	require.Equal(t, "somebody else's", contentOf(t, dir))
	_, err = createIn(dir, "out", false)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "--force")
	require.NoError(t, dir.Mkdir("folder", 0o700))
	require.NoError(t, dir.Symlink("out", "link"))
	for _, name := range []string{"folder", "link"} {
		_, err = createIn(dir, name, true)
		require.ErrorContains(t, err, "no regular file")
	}
	entries, err := dir.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, entries, 3)
}
