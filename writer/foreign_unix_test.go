//go:build unix

package writer

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// No method of an FS waits for the other end of a FIFO, whichever name is one.
func TestNothingWaitsForAFIFO(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		openTheFIFO(t, dir)
	}()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		require.FailNow(t, "it waits")
	}
}

func openTheFIFO(t assert.TestingT, dir FS) {
	full := filepath.Join(dir.Name(), "fifo")
	assert.NoError(t, unix.Mkfifo(full, 0o600))
	_, err := OpenFS(full)
	assert.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, full)
	_, err = dir.Sub("fifo")
	assert.ErrorIs(t, err, unix.ENOTDIR)
	_, err = dir.ReadDir("fifo")
	assert.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, full+": it is no folder but a named pipe")
	assert.ErrorIs(t, dir.SyncDir("fifo"), unix.ENOTDIR)
	for _, flag := range []int{os.O_RDONLY, os.O_RDWR, os.O_RDONLY | os.O_CREATE} {
		_, err = dir.OpenFile("fifo", flag, 0o600)
		assert.ErrorIs(t, err, ErrInvalid)
		assert.ErrorContains(t, err, full+": it is no regular file but a named pipe")
	}
	_, err = TryLock(dir, "fifo", OwnerOf(os.Getpid(), "test"))
	assert.ErrorIs(t, err, ErrInvalid)
	_, _, err = Holder(dir, "fifo")
	assert.ErrorIs(t, err, ErrInvalid)
}

// A lock file with another hard link is some other file too, or another lock.
func TestHardLinksAreNotWritten(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	put(t, dir, "precious", "precious")
	for name, open := range map[string]func(name string) error{
		"lock": func(name string) error { _, err := TryLock(dir, name, OwnerOf(os.Getpid(), "test")); return err },
		"wait": func(name string) error {
			_, err := LockWait(t.Context(), dir, name, OwnerOf(os.Getpid(), "test"))
			return err
		},
		"look": func(name string) error { _, _, err := Holder(dir, name); return err },
		"owner": func(name string) error {
			RecordOwner(dir, name, OwnerOf(os.Getpid(), "test"))
			_, _, err := OpenRegular(dir, "test", name, os.O_WRONLY)
			return err
		},
	} {
		require.NoError(t, dir.Link("precious", name))
		err := open(name)
		require.ErrorIs(t, err, ErrInvalid, name)
		require.ErrorContains(t, err, filepath.Join(dir.Name(), name), name)
		require.ErrorContains(t, err, "hard link", name)
		require.Equal(t, "precious", get(t, dir, "precious"), name)
		require.NoError(t, dir.Remove(name))
	}
	data, err := ReadFile(dir, "precious", 100)
	require.NoError(t, err, "what is only read may have any number of names")
	require.Equal(t, "precious", string(data))
}

// When the files of two locks are one file, both locks are refused at once.
func TestTwoLocksThatAreOneFile(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	l, err := TryLock(dir, "one", OwnerOf(os.Getpid(), "test"))
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
	require.NoError(t, dir.Link("one", "two"))
	for _, name := range []string{"one", "two"} {
		_, err = LockWait(t.Context(), dir, name, OwnerOf(os.Getpid(), "test"))
		require.ErrorContains(t, err, "remove this name, and a new file is made")
	}
	require.NoError(t, dir.Remove("two"))
	for _, name := range []string{"one", "two"} {
		l, err := TryLock(dir, name, OwnerOf(os.Getpid(), "test"))
		require.NoError(t, err)
		defer l.Unlock()
	}
}

// A shorter record leaves nothing of a longer one.
func TestOwnerRecordIsWrittenOver(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	for _, command := range []string{"a long command line", "short", "a longer command line than before", ""} {
		l, err := TryLock(dir, "lock", Owner{PID: 7, Command: command})
		require.NoError(t, err)
		require.Equal(t, command, LastOwner(dir, "lock").Command)
		require.Equal(t, 7, LastOwner(dir, "lock").PID)
		require.NoError(t, l.Unlock())
	}
}

// A plain open of a FIFO for reading hangs until another process opens it for writing.
func TestFIFOHangsNobody(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	path := filepath.Join(dir.Name(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	for op, call := range map[string]func() error{
		"read":   func() error { _, err := ReadFile(dir, "fifo", 100); return err },
		"lock":   func() error { _, err := TryLock(dir, "fifo", OwnerOf(os.Getpid(), "x")); return err },
		"holder": func() error { _, _, err := Holder(dir, "fifo"); return err },
	} {
		err := call()
		require.ErrorIs(t, err, ErrInvalid, op)
		require.ErrorContains(t, err, "a named pipe")
	}

	// The FIFO replaces the file between the look and the open.
	put(t, dir, "file", oldContent)
	racing := &faultFS{FS: dir, decide: func(_ int, call string) fault {
		if call == "open file" {
			require.NoError(t, os.Rename(path, filepath.Join(dir.Name(), "file")))
		}
		return fault{}
	}}
	_, err := ReadFile(racing, "file", 100)
	require.ErrorIs(t, err, ErrInvalid)
	racing.never(t)
}
