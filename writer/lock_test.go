package writer

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/internal/proc"
)

func TestLockExcludes(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	_, held, err := Holder(dir, ".lock")
	require.NoError(t, err)
	require.False(t, held, "nobody made it yet")

	one, err := TryLock(dir, ".lock", OwnerOf(os.Getpid(), "the first"))
	require.NoError(t, err)
	require.NoError(t, one.Check(dir, ".lock"))
	_, err = TryLock(dir, ".lock", OwnerOf(os.Getpid(), "the second"))
	var busy *BusyError
	require.ErrorAs(t, err, &busy)
	require.ErrorIs(t, err, ErrBusy)
	require.Equal(t, ClassBusy, ClassOf(err))
	require.Equal(t, os.Getpid(), busy.Owner.PID)
	require.Equal(t, "the first", busy.Owner.Command)
	require.ErrorContains(t, err, fmt.Sprintf("pid %d", os.Getpid()))
	require.ErrorContains(t, err, "the first")
	require.ErrorContains(t, err, filepath.Join(dir.Name(), ".lock"))
	owner, held, err := Holder(dir, ".lock")
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, "the first", owner.Command)

	require.NoError(t, one.Unlock())
	require.NoError(t, one.Unlock(), "Unlock is idempotent")
	require.Equal(t, ClassFenced, ClassOf(one.Check(dir, ".lock")))
	require.Equal(t, []string{".lock"}, names(t, dir), "the file stays")
	_, held, err = Holder(dir, ".lock")
	require.NoError(t, err)
	require.False(t, held)
	two, err := TryLock(dir, ".lock", OwnerOf(os.Getpid(), "x"))
	require.NoError(t, err)
	require.NoError(t, one.Unlock())
	require.NoError(t, two.Check(dir, ".lock"), "the first one's Unlock is not the second one's")
	owner, _, err = Holder(dir, ".lock")
	require.NoError(t, err)
	require.Equal(t, "x", owner.Command, "a shorter record leaves nothing of a longer one")
	require.NoError(t, two.Unlock())
}

// A lock with a damaged record has an unknown holder. It is not free.
func TestLockDamagedRecord(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	l, err := TryLock(dir, ".lock", OwnerOf(os.Getpid(), "x"))
	require.NoError(t, err)
	defer l.Unlock()
	for _, record := range []string{"", "{", "\x00\x00", `{"pid":-1}`, strings.Repeat(" ", maxRecord+1)} {
		put(t, dir, ".lock", record)
		_, err = TryLock(dir, ".lock", OwnerOf(os.Getpid(), "y"))
		require.ErrorIs(t, err, ErrBusy)
		require.ErrorContains(t, err, "left no record")
	}
}

func TestLockProcessesContend(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	put(t, dir, "counter", "0")
	const n = 4
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		cmd := process(t, dir, "contend")
		require.NoError(t, cmd.Start())
		wg.Go(func() { errs[i] = cmd.Wait() })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, fmt.Sprint(n*rounds), get(t, dir, "counter"))
}

func TestLockHolderKilled(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	cmd := process(t, dir, "hold")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)

	_, err = TryLock(dir, ".lock", OwnerOf(os.Getpid(), "me"))
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorContains(t, err, fmt.Sprintf("pid %d", cmd.Process.Pid))
	require.ErrorContains(t, err, "hold for a test")
	owner, held, err := Holder(dir, ".lock")
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, cmd.Process.Pid, owner.PID)

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	_, held, err = Holder(dir, ".lock")
	require.NoError(t, err)
	require.False(t, held, "the record is there still and says nothing")
	last := get(t, dir, ".lock")
	l, err := TryLock(dir, ".lock", OwnerOf(os.Getpid(), "me"))
	require.NoError(t, err)
	if proc.BootID() != "" { // else nothing tells that a process has ended
		put(t, dir, ".lock", last) // as a holder does that is not lopen: it leaves what is there
		_, err = TryLock(dir, ".lock", OwnerOf(os.Getpid(), "another"))
		require.ErrorContains(t, err, "held by a process that left no record")
		owner, held, err = Holder(dir, ".lock")
		require.NoError(t, err)
		require.True(t, held)
		require.Zero(t, owner)
	}
	require.NoError(t, l.Unlock())
}

// A process is gone only if that is certain: one of another machine or boot may live.
func TestOwnerIsGone(t *testing.T) {
	t.Parallel()
	if proc.BootID() == "" {
		t.Skip("nothing tells when a process started")
	}
	me := OwnerOf(os.Getpid(), "me")
	require.False(t, me.gone())
	reused, elsewhere, early := me, me, me
	reused.Start = "1"
	require.True(t, reused.gone(), "the number is another process's now")
	elsewhere.Start, elsewhere.Host = "1", "elsewhere"
	require.False(t, elsewhere.gone())
	early.Start, early.Boot = "1", "another boot"
	require.False(t, early.gone())
}

func TestLockFileDeletedOrReplaced(t *testing.T) {
	t.Parallel()
	if !canSyncDir {
		t.Skip("Windows removes no open file")
	}
	for name, harm := range map[string]func(t *testing.T, path string){
		"deleted":  func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"replaced": func(t *testing.T, path string) { swap(t, path, func() error { return os.WriteFile(path, nil, 0o600) }) },
		"copied": func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			swap(t, path, func() error { return os.WriteFile(path, data, 0o600) })
		},
		"symlinked to itself": func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+".old"))
			require.NoError(t, os.Symlink(filepath.Base(path)+".old", path))
		},
		"folder removed": func(t *testing.T, path string) { require.NoError(t, os.RemoveAll(filepath.Dir(path))) },
		"folder replaced": func(t *testing.T, path string) {
			dir := filepath.Dir(path)
			require.NoError(t, os.Rename(dir, dir+".old"))
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := openTemp(t)
			require.NoError(t, base.Mkdir("s", 0o700))
			dir, err := base.Sub("s")
			require.NoError(t, err)
			defer dir.Close()
			l, err := TryLock(dir, ".lock", OwnerOf(os.Getpid(), "x"))
			require.NoError(t, err)
			defer l.Unlock()
			require.NoError(t, l.Check(base, "s/.lock"))
			harm(t, filepath.Join(dir.Name(), ".lock"))
			err = l.Check(base, "s/.lock")
			require.Equal(t, ClassFenced, ClassOf(err))
			require.Equal(t, ClassFenced, ClassOf(err))
			require.ErrorContains(t, err, filepath.Join(dir.Name(), ".lock"))
		})
	}
}

// swap renames the old file instead of removing it, so that the new file gets another inode.
func swap(t *testing.T, path string, write func() error) {
	require.NoError(t, os.Rename(path, path+".old"))
	require.NoError(t, write())
}

// Callers of Holder have a shared lock for a moment. TryLock must not report a free lock
// as busy because of them.
func TestHolderDisturbsNobody(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if owner, held, err := Holder(dir, ".lock"); err != nil {
					errs <- err
					return
				} else if !held && owner != (Owner{}) {
					errs <- fmt.Errorf("a free lock has the owner %v", owner)
					return
				}
			}
		})
	}
	for i := range 150 {
		l, err := TryLock(dir, ".lock", OwnerOf(os.Getpid(), "x"))
		if err == nil {
			err = l.Unlock()
		}
		if err != nil {
			close(stop)
			wg.Wait()
			require.NoError(t, err, "round %d", i)
		}
	}
	close(stop)
	wg.Wait()
	close(errs)
	require.NoError(t, <-errs)
}

// A symlink, a folder and the like are refused as a lock file and left alone.
func TestLockRefusesOtherKinds(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	put(t, dir, "target", oldContent)
	require.NoError(t, dir.Mkdir("folder", 0o700))
	places := []string{"folder"}
	if canSyncDir {
		require.NoError(t, dir.Symlink("target", "link"))
		require.NoError(t, dir.Symlink("missing", "dangling"))
		places = append(places, "link", "dangling")
	}
	for _, place := range places {
		for op, call := range map[string]func() error{
			"lock":   func() error { _, err := TryLock(dir, place, OwnerOf(os.Getpid(), "x")); return err },
			"wait":   func() error { _, err := LockWait(t.Context(), dir, place, OwnerOf(os.Getpid(), "x")); return err },
			"holder": func() error { _, _, err := Holder(dir, place); return err },
		} {
			err := call()
			require.ErrorIs(t, err, ErrInvalid, "%s %s", op, place)
			require.ErrorContains(t, err, filepath.Join(dir.Name(), place))
		}
	}
	require.Equal(t, oldContent, get(t, dir, "target"))
	_, err := dir.Lstat("missing")
	require.ErrorIs(t, err, fs.ErrNotExist, "nothing was made through the link")
}

func TestLockWait(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	l, err := TryLock(dir, ".lock", OwnerOf(os.Getpid(), "the holder"))
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = LockWait(ctx, dir, ".lock", OwnerOf(os.Getpid(), "me"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, ErrBusy)
	require.Equal(t, ClassBusy, ClassOf(err))
	require.ErrorContains(t, err, fmt.Sprintf("pid %d", os.Getpid()))
	require.ErrorContains(t, err, "the holder")

	done := make(chan error, 1)
	go func() {
		two, err := LockWait(t.Context(), dir, ".lock", OwnerOf(os.Getpid(), "me"))
		if err == nil {
			err = two.Unlock()
		}
		done <- err
	}()
	require.NoError(t, l.Unlock())
	require.NoError(t, <-done)
}
