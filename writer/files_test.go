package writer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var noLinks = fault{err: syscall.EOPNOTSUPP}

func TestCreateFileNeverOverwrites(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]map[string]fault{"links": nil, "no links": {"link file": noLinks}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := &faultFS{FS: openTemp(t), decide: failCalls(faults)}
			require.NoError(t, CreateFile(dir, "file", []byte(oldContent), 0o600))
			err := CreateFile(dir, "file", []byte(newContent), 0o600)
			require.ErrorIs(t, err, fs.ErrExist)
			require.ErrorContains(t, err, filepath.Join(dir.Name(), "file"))
			require.Equal(t, oldContent, get(t, dir, "file"))
			require.Equal(t, []string{"file"}, names(t, dir))
			dir.never(t)
		})
	}
}

func TestCreateFileOrder(t *testing.T) {
	t.Parallel()
	temp := []string{"open .tmp-file-*", "write .tmp-file-*", "sync .tmp-file-*", "close .tmp-file-*", "link file"}
	dir := &faultFS{FS: openTemp(t)}
	require.NoError(t, CreateFile(dir, "file", []byte(newContent), 0o600))
	require.Equal(t, append(slices.Clone(temp), "remove .tmp-file-*", "syncdir ."), dir.calls)

	dir = &faultFS{FS: openTemp(t), decide: failCalls(map[string]fault{"link file": noLinks})}
	require.NoError(t, CreateFile(dir, "file", []byte(newContent), 0o600))
	require.Equal(t, append(slices.Clone(temp), "lstat .tmp-file-*", "lstat file", "open file", "close file", "rename file", "syncdir ."), dir.calls)
}

// After a fault the file is there whole or not there at all, never empty, and the error
// says which.
func TestCreateFileEveryFault(t *testing.T) {
	t.Parallel()
	for name, always := range map[string]map[string]fault{"links": nil, "no links": {"link file": noLinks}} {
		for k := 1; k <= 11; k++ {
			for _, errno := range storageErrnos {
				for _, done := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s %d %v done=%v", name, k, classes[errno], done), func(t *testing.T) {
						t.Parallel()
						var step string
						dir := &faultFS{FS: openTemp(t)}
						dir.decide = func(n int, call string) fault {
							if n != k {
								return always[call]
							}
							step = call
							return fault{errno, done && !strings.HasPrefix(call, "open")}
						}
						err := CreateFile(dir, "file", []byte(newContent), 0o600)
						there := slices.Contains(names(t, dir), "file")
						if there {
							require.Equal(t, newContent, get(t, dir, "file"))
						}
						if step != "remove .tmp-file-*" {
							noTemps(t, dir)
						}
						dir.never(t)
						if err == nil {
							require.True(t, there)
							return
						}
						outcome := NotCommitted
						if there {
							outcome = NotDurable
						}
						failed(t, err, filepath.Join(dir.Name(), "file"), outcome, errno)
					})
				}
			}
		}
	}
}

func TestCreateFileOneOfManyWins(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]map[string]fault{"links": nil, "no links": {"link file": noLinks}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := &faultFS{FS: openTemp(t), decide: failCalls(faults)}
			var wg sync.WaitGroup
			start := make(chan struct{})
			errs := make([]error, 16)
			for i := range errs {
				wg.Go(func() {
					<-start
					errs[i] = CreateFile(dir, "file", fmt.Appendf(nil, "writer %d", i), 0o600)
				})
			}
			close(start)
			wg.Wait()
			winner := -1
			for i, err := range errs {
				if err == nil {
					require.Equal(t, -1, winner, "two won")
					winner = i
					continue
				}
				require.ErrorIs(t, err, fs.ErrExist)
			}
			require.NotEqual(t, -1, winner, "nobody won: %v", errs)
			require.Equal(t, fmt.Sprintf("writer %d", winner), get(t, dir, "file"))
			require.Equal(t, []string{"file"}, names(t, dir))
		})
	}
}

func TestReplaceSymlink(t *testing.T) {
	t.Parallel()
	if !canSyncDir {
		t.Skip("symlinks need a privilege")
	}
	dir := &faultFS{FS: openTemp(t)}
	require.NoError(t, ReplaceSymlink(dir, "one", "latest"))
	require.Equal(t, []string{"symlink .tmp-latest-*", "rename latest", "syncdir ."}, dir.calls)
	require.NoError(t, ReplaceSymlink(dir, "two", "latest"))
	target, err := os.Readlink(filepath.Join(dir.Name(), "latest"))
	require.NoError(t, err)
	require.Equal(t, "two", target)

	for k := 1; k <= 3; k++ {
		for _, errno := range storageErrnos {
			for _, done := range []bool{false, true} {
				if k == 1 && done {
					continue // a local file system loses no answer
				}
				dir := &faultFS{FS: openTemp(t), decide: failNth(k, fault{errno, done})}
				require.NoError(t, os.Symlink("one", filepath.Join(dir.Name(), "latest")))
				err := ReplaceSymlink(dir, "two", "latest")
				want, outcome := "one", NotCommitted
				if k == 3 || k == 2 && done {
					want, outcome = "two", NotDurable
				}
				failed(t, err, filepath.Join(dir.Name(), "latest"), outcome, errno)
				target, rerr := os.Readlink(filepath.Join(dir.Name(), "latest"))
				require.NoError(t, rerr)
				require.Equal(t, want, target)
				require.Equal(t, []string{"latest"}, names(t, dir))
			}
		}
	}
	dir = &faultFS{FS: openTemp(t), decide: failNth(1, noLinks)}
	require.True(t, RefusesLinks(ReplaceSymlink(dir, "two", "latest")))
}

func TestMkdirDurable(t *testing.T) {
	t.Parallel()
	dir := &faultFS{FS: openTemp(t)}
	require.NoError(t, MkdirDurable(dir, "a"))
	require.NoError(t, MkdirDurable(dir, "a/b"))
	require.Equal(t, []string{"mkdir a", "syncdir .", "mkdir a/b", "syncdir a"}, dir.calls)
	dir.calls = nil
	require.NoError(t, MkdirDurable(dir, "a/b"), "it is there")
	require.Equal(t, "syncdir a", dir.calls[len(dir.calls)-1], "who made it may not have come to sync it")
	info, err := dir.Stat("a/b")
	require.NoError(t, err)
	if canSyncDir {
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	}
	require.ErrorIs(t, MkdirDurable(dir, "missing/b"), fs.ErrNotExist)

	put(t, dir, "file", oldContent)
	places := []string{"file"}
	if canSyncDir {
		require.NoError(t, dir.FS.Symlink("a", "link"))
		places = append(places, "link")
	}
	for _, place := range places {
		err := MkdirDurable(dir, place)
		require.ErrorIs(t, err, ErrInvalid, place)
		require.ErrorContains(t, err, filepath.Join(dir.Name(), place))
	}
	require.Equal(t, oldContent, get(t, dir, "file"))
}

func TestMkdirDurableFaults(t *testing.T) {
	t.Parallel()
	for _, errno := range storageErrnos {
		dir := &faultFS{FS: openTemp(t), decide: failNth(1, fault{err: errno})}
		failed(t, MkdirDurable(dir, "a"), filepath.Join(dir.Name(), "a"), NotCommitted, errno)
		dir.calls, dir.decide = nil, failNth(2, fault{err: errno})
		failed(t, MkdirDurable(dir, "a"), filepath.Join(dir.Name(), "a"), NotDurable, errno)
		_, err := dir.FS.Lstat("a")
		require.ErrorIs(t, err, fs.ErrNotExist, "the next try makes it anew: syncing it once more would prove nothing")
		require.NoError(t, dir.FS.Mkdir("a", 0o700))
		dir.calls, dir.decide = nil, failNth(2, fault{err: errno}) // mkdir, lstat
		failed(t, MkdirDurable(dir, "a"), filepath.Join(dir.Name(), "a"), NotCommitted, errno)
	}
	dir := &faultFS{FS: openTemp(t), decide: failNth(1, fault{err: syscall.EINTR})}
	require.NoError(t, MkdirDurable(dir, "a"))
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := &faultFS{FS: openTemp(t)}
	put(t, dir, "file", oldContent)
	put(t, dir, "empty", "")
	require.NoError(t, dir.FS.Mkdir("folder", 0o700))
	for _, limit := range []int64{int64(len(oldContent)), 1 << 20} {
		data, err := ReadFile(dir, "file", limit)
		require.NoError(t, err)
		require.Equal(t, oldContent, string(data))
	}
	data, err := ReadFile(dir, "empty", 0)
	require.NoError(t, err)
	require.Empty(t, data)

	dir.calls = nil
	_, err = ReadFile(dir, "file", int64(len(oldContent)-1))
	require.ErrorIs(t, err, ErrInvalid)
	require.Zero(t, dir.count("read file"), "its size is known, and nothing is read into memory")
	require.ErrorContains(t, err, filepath.Join(dir.Name(), "file"))
	_, err = ReadFile(dir, "folder", 1<<20)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "a folder")
	_, err = ReadFile(dir, "missing", 1<<20)
	require.ErrorIs(t, err, fs.ErrNotExist)
	dir.never(t)
}

// A file that grows while it is read must not fill the memory.
func TestReadFileGrows(t *testing.T) {
	t.Parallel()
	dir := &faultFS{FS: openTemp(t)}
	put(t, dir, "file", oldContent)
	dir.decide = func(_ int, call string) fault {
		if call == "read file" {
			f, err := os.OpenFile(filepath.Join(dir.Name(), "file"), os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			defer f.Close()
			_, err = f.WriteString(oldContent)
			require.NoError(t, err)
		}
		return fault{}
	}
	_, err := ReadFile(dir, "file", 100)
	require.ErrorIs(t, err, ErrInvalid)
	require.Less(t, dir.count("read file"), 20)
}

func TestReadFileFaults(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"lstat file", "open file", "read file"} {
		for _, errno := range storageErrnos {
			dir := &faultFS{FS: openTemp(t), decide: failCalls(map[string]fault{call: {err: errno}})}
			put(t, dir, "file", oldContent)
			_, err := ReadFile(dir, "file", 100)
			failed(t, err, filepath.Join(dir.Name(), "file"), NotCommitted, errno)
			dir.never(t)
		}
	}
}

// OpenRegular returns the file that it looked at before the open, or an error.
func TestReadFileReplacedBetweenLookAndOpen(t *testing.T) {
	t.Parallel()
	if !canSyncDir {
		t.Skip("symlinks need a privilege")
	}
	dir := &faultFS{FS: openTemp(t)}
	put(t, dir, "file", oldContent)
	put(t, dir, "secret", "secret")
	dir.decide = func(_ int, call string) fault {
		if call == "open file" {
			require.NoError(t, os.Remove(filepath.Join(dir.Name(), "file")))
			require.NoError(t, os.Symlink("secret", filepath.Join(dir.Name(), "file")))
		}
		return fault{}
	}
	_, err := ReadFile(dir, "file", 100)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "a symlink")
	dir.never(t)
}

func TestRemoveTemps(t *testing.T) {
	t.Parallel()
	dir := &faultFS{FS: openTemp(t)}
	for _, name := range []string{TempName("file"), TempName("other"), "file", ".hidden", "x" + tempPrefix} {
		put(t, dir, name, oldContent)
	}
	require.NoError(t, dir.FS.Mkdir(tempPrefix+"folder", 0o700))
	if canSyncDir {
		require.NoError(t, dir.FS.Symlink("file", TempName("latest")))
	}
	other := TempName("other")
	put(t, dir, other, oldContent)
	require.NoError(t, RemoveTemps(dir, ".", func(of string) bool { return of != "other" }))
	require.Contains(t, names(t, dir), other)
	require.NoError(t, RemoveTemps(dir, ".", nil))
	require.Equal(t, []string{".hidden", tempPrefix + "folder", "file", "x" + tempPrefix}, names(t, dir))
	require.Equal(t, oldContent, get(t, dir, "file"))
	require.NoError(t, RemoveTemps(dir, "missing", nil))

	temp := TempName("file")
	put(t, dir, temp, oldContent)
	dir.decide = failCalls(map[string]fault{"remove .tmp-file-*": {err: syscall.EACCES}})
	failed(t, RemoveTemps(dir, ".", nil), filepath.Join(dir.Name(), temp), NotCommitted, syscall.EACCES)
	dir.decide = failCalls(map[string]fault{"remove .tmp-file-*": {err: syscall.ENOENT}})
	require.NoError(t, RemoveTemps(dir, ".", nil), "somebody else removed it")
}

// Neither .. nor a symlink leads out of the folder, with any method.
func TestNothingLeadsOutside(t *testing.T) {
	t.Parallel()
	base := openTemp(t)
	require.NoError(t, base.Mkdir("inside", 0o700))
	require.NoError(t, base.Mkdir("outside", 0o700))
	put(t, base, "outside/file", oldContent)
	put(t, base, "outside/"+tempPrefix+"x", oldContent)
	dir, err := base.Sub("inside")
	require.NoError(t, err)
	defer dir.Close()
	require.Equal(t, filepath.Join(base.Name(), "inside"), dir.Name())
	places := []string{"../outside", filepath.Join(base.Name(), "outside")}
	if canSyncDir {
		require.NoError(t, os.Symlink("../outside", filepath.Join(dir.Name(), "out")))
		places = append(places, "out")
	}
	for _, place := range places {
		for _, leaf := range []string{"file", "new"} {
			name := place + "/" + leaf
			for op, call := range map[string]func() error{
				"replace": func() error { return ReplaceFile(dir, name, []byte(newContent), 0o600) },
				"create":  func() error { return CreateFile(dir, name, []byte(newContent), 0o600) },
				"link":    func() error { return ReplaceSymlink(dir, "x", name) },
				"mkdir":   func() error { return MkdirDurable(dir, name) },
				"read":    func() error { _, err := ReadFile(dir, name, 100); return err },
				"temps":   func() error { return RemoveTemps(dir, place, nil) },
				"lock":    func() error { _, err := TryLock(dir, name, Owner{}); return err },
				"holder":  func() error { _, _, err := Holder(dir, name); return err },
				"sub":     func() error { _, err := dir.Sub(place); return err },
			} {
				err := call()
				require.Error(t, err, "%s %s", op, name)
				require.NotErrorIs(t, err, fs.ErrNotExist, "%s %s", op, name)
			}
		}
	}
	require.Equal(t, oldContent, get(t, base, "outside/file"))
	entries, err := os.ReadDir(filepath.Join(base.Name(), "outside"))
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// ReplaceFile replaces a symlink and does not follow it.
func TestReplaceFileReplacesSymlink(t *testing.T) {
	t.Parallel()
	if !canSyncDir {
		t.Skip("symlinks need a privilege")
	}
	base := openTemp(t)
	put(t, base, "target", oldContent)
	require.NoError(t, base.Symlink("target", "file"))
	require.ErrorIs(t, CreateFile(base, "file", []byte(newContent), 0o600), fs.ErrExist)
	_, err := ReadFile(base, "file", 100)
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, ReplaceFile(base, "file", []byte(newContent), 0o600))
	require.Equal(t, oldContent, get(t, base, "target"))
	info, err := base.Lstat("file")
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
}
