package crashfs

import (
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// open opens a file of the root.
func open(t testing.TB, dir writer.FS, name string, flag int) writer.File {
	t.Helper()
	f, err := dir.OpenFile(name, flag, 0o600)
	require.NoError(t, err)
	return f
}

// put writes a file and leaves it unsynced.
func putFile(t testing.TB, dir writer.FS, name, content string) {
	t.Helper()
	f := open(t, dir, name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC)
	_, err := f.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// putSynced writes a file and syncs it and its name in the root.
func putSynced(t testing.TB, dir writer.FS, name, content string) {
	t.Helper()
	f := open(t, dir, name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC)
	_, err := f.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, dir.SyncDir("."))
}

// read returns a file's content, or "-" if it is not there.
func read(t testing.TB, dir writer.FS, name string) string {
	t.Helper()
	if _, err := dir.Lstat(name); err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
		return "-"
	}
	f := open(t, dir, name, os.O_RDONLY)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return string(data)
}

// outcomes are the contents that a file may have after a cut, by what may be
// found: "-" is no file.
func outcomes(t testing.TB, d *Disk, name string, random int) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, v := range d.Variants(rand.New(rand.NewPCG(1, 2)), random) {
		require.NotEmpty(t, v.Name)
		got := read(t, d.Crash(v).FS(), name)
		if _, ok := found[got]; !ok {
			found[got] = v.Name
		}
	}
	return found
}

// nothing is the disk on which all that was not synced is lost.
func nothing(d *Disk) *Disk { return d.Crash(d.Variants(nil, 0)[0]) }

// all is the disk on which nothing is lost.
func all(t testing.TB, d *Disk) *Disk {
	for _, v := range d.Variants(nil, 0) {
		if v.Name == "all" {
			return d.Crash(v)
		}
	}
	return nothing(d) // the same image, then
}

func names(t testing.TB, dir writer.FS, name string) []string {
	t.Helper()
	entries, err := dir.ReadDir(name)
	require.NoError(t, err)
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// failCall fails the calls of one kind.
func failCall(call string, err error) func(Op) Fault {
	return func(op Op) Fault {
		if op.Call == call {
			return Fault{Err: err}
		}
		return Fault{}
	}
}
