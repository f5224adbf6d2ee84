package writer

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every run has the same examples; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

const (
	oldContent = "the old content"
	newContent = "the new content, which is longer"
)

var replaceSteps = []string{"open .tmp-file-*", "write .tmp-file-*", "chmod .tmp-file-*", "sync .tmp-file-*", "close .tmp-file-*", "rename file", "syncdir ."}

func TestReplaceFileOrder(t *testing.T) {
	t.Parallel()
	dir := &faultFS{FS: openTemp(t)}
	require.NoError(t, ReplaceFile(dir, "file", []byte(newContent), 0o640))
	require.Equal(t, replaceSteps, dir.calls)
	require.Equal(t, newContent, get(t, dir, "file"))

	require.NoError(t, dir.FS.Mkdir("sub", 0o700))
	dir.calls = nil
	require.NoError(t, ReplaceFile(dir, "sub/file", []byte(newContent), 0o600))
	require.Equal(t, []string{"open sub/.tmp-file-*", "write sub/.tmp-file-*", "sync sub/.tmp-file-*", "close sub/.tmp-file-*", "rename sub/file", "syncdir sub"}, dir.calls)
}

// The umask must not take bits off a file that is replaced.
func TestReplaceFileMode(t *testing.T) {
	t.Parallel()
	if !canSyncDir {
		t.Skip("Windows knows one bit of a mode only")
	}
	for _, perm := range []fs.FileMode{0o600, 0o666, 0o755} {
		dir := openTemp(t)
		require.NoError(t, ReplaceFile(dir, "file", nil, perm))
		info, err := dir.Stat("file")
		require.NoError(t, err)
		require.Equal(t, perm, info.Mode().Perm())
	}
}

// Whichever call fails, with whichever error, the file has one of the two contents, whole,
// and the error says which.
func TestReplaceFileEveryFault(t *testing.T) {
	t.Parallel()
	for k, step := range replaceSteps {
		for _, errno := range storageErrnos {
			for _, done := range []bool{false, true} {
				if k == 0 && done {
					continue // no file system creates a file and reports that it failed
				}
				t.Run(fmt.Sprintf("%s %d done=%v", step, int(errno), done), func(t *testing.T) {
					t.Parallel()
					dir := &faultFS{FS: openTemp(t), decide: failNth(k+1, fault{errno, done})}
					put(t, dir, "file", oldContent)
					err := ReplaceFile(dir, "file", []byte(newContent), 0o644)
					require.Equal(t, step, dir.calls[k])

					want, outcome := oldContent, NotCommitted
					if step == "syncdir ." || step == "rename file" && done {
						want, outcome = newContent, NotDurable
					}
					failed(t, err, filepath.Join(dir.Name(), "file"), outcome, errno)
					require.Equal(t, want, get(t, dir, "file"))
					require.Equal(t, []string{"file"}, names(t, dir))
					dir.never(t)
				})
			}
		}
	}
}

// After the first failure every call fails. The temporary file may be left, and the outcome
// is unknown when the file cannot be read.
func TestReplaceFileBrokenFromThenOn(t *testing.T) {
	t.Parallel()
	for k, step := range replaceSteps {
		dir := &faultFS{FS: openTemp(t), decide: func(n int, _ string) fault {
			if n > k {
				return fault{err: syscall.EIO}
			}
			return fault{}
		}}
		put(t, dir, "file", oldContent)
		err := ReplaceFile(dir, "file", []byte(newContent), 0o644)
		want, outcome := oldContent, NotCommitted
		switch step {
		case "rename file":
			outcome = OutcomeUnknown
		case "syncdir .":
			want, outcome = newContent, NotDurable
		}
		failed(t, err, filepath.Join(dir.Name(), "file"), outcome, syscall.EIO)
		require.Equal(t, want, get(t, dir, "file"), step)
		dir.never(t)
	}
}

func TestReplaceFileFailedRename(t *testing.T) {
	t.Parallel()
	eio := fault{err: syscall.EIO}
	done := fault{err: syscall.EIO, done: true}
	for _, c := range []struct {
		name    string
		faults  map[string]fault
		old     string
		outcome Outcome
	}{
		{"not done", map[string]fault{"rename file": eio}, oldContent, NotCommitted},
		{"done", map[string]fault{"rename file": done}, oldContent, NotDurable},
		{"done, nothing was there", map[string]fault{"rename file": done}, "", NotDurable},
		{"not done, the folder cannot be read", map[string]fault{"rename file": eio, "lstat .tmp-file-*": eio}, oldContent, OutcomeUnknown},
		{"done, the file cannot be opened", map[string]fault{"rename file": done, "open file": eio}, oldContent, OutcomeUnknown},
		{"done, the file cannot be read", map[string]fault{"rename file": done, "read file": eio}, oldContent, OutcomeUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := &faultFS{FS: openTemp(t), decide: failCalls(c.faults)}
			if c.old != "" {
				put(t, dir, "file", c.old)
			}
			err := ReplaceFile(dir, "file", []byte(newContent), 0o600)
			failed(t, err, filepath.Join(dir.Name(), "file"), c.outcome, syscall.EIO)
			dir.never(t)
		})
	}
}

// When the temporary file is gone and the name has another content, of any length, the
// outcome is that nothing was renamed.
func TestReplaceFileLosesItsTemporaryFile(t *testing.T) {
	t.Parallel()
	for _, old := range []string{"", "short", strings.Repeat("x", len(newContent)), strings.Repeat("long", 99)} {
		dir := &faultFS{FS: openTemp(t)}
		dir.decide = func(_ int, call string) fault {
			if call == "rename file" {
				require.NoError(t, RemoveTemps(dir.FS, ".", nil))
				return fault{err: syscall.ENOENT}
			}
			return fault{}
		}
		if old != "" {
			put(t, dir, "file", old)
		}
		var e *Error
		require.ErrorAs(t, ReplaceFile(dir, "file", []byte(newContent), 0o600), &e)
		require.Equal(t, NotCommitted, e.Outcome)
	}
}

func TestReplaceFileRetries(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"open .tmp-file-*", "rename file"} {
		for _, errno := range []syscall.Errno{syscall.EINTR, syscall.EMFILE} {
			for failures := 1; failures <= attempts; failures++ {
				t.Run(fmt.Sprintf("%s %d %d times", call, int(errno), failures), func(t *testing.T) {
					t.Parallel()
					left := failures
					dir := &faultFS{FS: openTemp(t), decide: func(_ int, c string) fault {
						if c == call && left > 0 {
							left--
							return fault{err: errno}
						}
						return fault{}
					}}
					put(t, dir, "file", oldContent)
					err := ReplaceFile(dir, "file", []byte(newContent), 0o600)
					noTemps(t, dir)
					if failures < attempts {
						require.NoError(t, err)
						require.Equal(t, newContent, get(t, dir, "file"))
						require.Equal(t, failures+1, dir.count(call))
						return
					}
					failed(t, err, filepath.Join(dir.Name(), "file"), NotCommitted, errno)
					require.Equal(t, oldContent, get(t, dir, "file"))
					require.Equal(t, attempts, dir.count(call))
				})
			}
		}
	}
}

// fsync and close are not retried, not even after an error of class transient.
func TestReplaceFileNeverRepeatsSyncAndClose(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"write .tmp-file-*", "sync .tmp-file-*", "close .tmp-file-*", "syncdir ."} {
		dir := &faultFS{FS: openTemp(t), decide: failCalls(map[string]fault{call: {err: syscall.EINTR}})}
		put(t, dir, "file", oldContent)
		require.ErrorIs(t, ReplaceFile(dir, "file", []byte(newContent), 0o600), syscall.EINTR)
		require.Equal(t, 1, dir.count(call))
		noTemps(t, dir)
		dir.never(t)
	}
}

func TestReplaceFileShortWrites(t *testing.T) {
	t.Parallel()
	dir := &faultFS{FS: openTemp(t), chunk: 5}
	require.NoError(t, ReplaceFile(dir, "file", []byte(newContent), 0o600))
	require.Equal(t, newContent, get(t, dir, "file"))
	require.Equal(t, (len(newContent)+4)/5, dir.count("write .tmp-file-*"))

	dir = &faultFS{FS: openTemp(t), chunk: -1}
	put(t, dir, "file", oldContent)
	require.ErrorIs(t, ReplaceFile(dir, "file", []byte(newContent), 0o600), io.ErrShortWrite)
	require.Equal(t, 1, dir.count("write .tmp-file-*"))
	require.Equal(t, oldContent, get(t, dir, "file"))
	noTemps(t, dir)
}

// With any number of faults in several calls in a row, the error always agrees with what
// can be read.
func TestReplaceFileTellsTheTruth(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		sub, err := os.MkdirTemp(base, "")
		require.NoError(t, err)
		inner, err := OpenFS(sub)
		require.NoError(t, err)
		defer inner.Close()
		likely := rapid.IntRange(0, 4).Draw(t, "of ten calls fail")
		dir := &faultFS{FS: inner, decide: func(_ int, call string) fault {
			if rapid.IntRange(0, 9).Draw(t, call) >= likely {
				return fault{}
			}
			done := rapid.Bool().Draw(t, "done") && !strings.HasPrefix(call, "open")
			return fault{rapid.SampledFrom(storageErrnos).Draw(t, "errno"), done}
		}}
		content := "nothing yet"
		put(t, dir, "file", content)
		for i := range 4 {
			next := rapid.SampledFrom([]string{"", "a", newContent, oldContent}).Draw(t, "content") + fmt.Sprint(i)
			err := ReplaceFile(dir, "file", []byte(next), 0o600)
			now := get(t, dir, "file")
			var e *Error
			if err == nil {
				require.Equal(t, next, now)
			} else {
				require.ErrorAs(t, err, &e)
				switch e.Outcome {
				case NotCommitted:
					require.Equal(t, content, now)
				case NotDurable:
					require.Equal(t, next, now)
				case OutcomeUnknown:
					require.Contains(t, []string{content, next}, now)
				}
			}
			content = now
		}
		dir.never(t)
		dir.decide = nil
		require.NoError(t, RemoveTemps(dir, ".", nil))
		require.Equal(t, []string{"file"}, names(t, dir))
	})
}
