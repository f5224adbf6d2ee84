package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer/crypt"
)

// TestOneSignalEndsAStalledPipe: nobody writes the rest of a bundle, or reads it.
func TestOneSignalEndsAStalledPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	must(t, dir, "run", "m", "--", "sh", "-c", "head -c 1000000 /dev/urandom >noise")
	must(t, dir, "session", "export", "-o", "bundle")
	sealed, err := os.ReadFile(filepath.Join(dir, "bundle"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		args   []string
		signal syscall.Signal
		gets   int    // bytes of the bundle
		left   string // what is there while it works
	}{
		"import": {[]string{"session", "import", "-"}, syscall.SIGHUP, len(sealed) / 2, ".lopen/.import-*"},
		"verify": {[]string{"bundle", "verify", "-"}, syscall.SIGTERM, len(sealed) / 2, "lopen-verify-*"},
		"header": {[]string{"bundle", "verify", "-"}, syscall.SIGTERM, 1, "."},
		"export": {[]string{"-C", dir, "session", "export", "-o", "-"}, syscall.SIGINT, 0, "."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := t.TempDir()
			cmd := command(t, here, c.args...)
			cmd.Env = append(cmd.Env, "TMPDIR="+here)
			var said bytes.Buffer
			cmd.Stderr = &said
			r, w, err := os.Pipe()
			require.NoError(t, err)
			defer r.Close()
			defer w.Close()
			if cmd.Stdin = r; c.gets == 0 {
				cmd.Stdin, cmd.Stdout = nil, w
			}
			require.NoError(t, cmd.Start())
			watch := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
			defer watch.Stop()
			_, err = w.Write(sealed[:c.gets])
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
				found, _ := filepath.Glob(filepath.Join(here, c.left))
				waits := n == 0 // for more
				if c.gets == 0 {
					waits = n > 32<<10 // it writes more at once than the pipe takes
				}
				return err == nil && waits && len(found) > 0
			}, 10*time.Second, time.Millisecond)
			require.NoError(t, cmd.Process.Signal(c.signal))
			require.Error(t, cmd.Wait())
			require.Equal(t, 130, cmd.ProcessState.ExitCode(), "%s", &said)
			if c.left != "." {
				left, err := filepath.Glob(filepath.Join(here, c.left))
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
	}
}

// A key may come through a pipe. Who waits for it can be interrupted.
func TestAKeyThroughAPipe(t *testing.T) {
	t.Parallel()
	_, text, err := crypt.NewKey()
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "key")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	flags := &keyFlags{a: &app{}, file: name}
	for key, want := range map[string]string{string(text): "", string(make([]byte, maxKey+1)): "more than 65536 bytes"} {
		closed := make(chan struct{}) // before that, the next read would be the end of this writer
		go func() {
			defer close(closed)
			// A signal may interrupt the reader's open after it has let this one return, and then nobody reads.
			for n, err := 0, error(syscall.EPIPE); n == 0 && errors.Is(err, syscall.EPIPE); {
				var w *os.File
				if w, err = os.OpenFile(name, os.O_WRONLY, 0); err == nil {
					n, err = io.WriteString(w, key)
					_ = w.Close()
				}
			}
		}()
		_, err = flags.decryption(t.Context())
		<-closed
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.Equal(t, exitUsage, exitCode(err))
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	_, err = flags.decryption(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 130, exitCode(err))
	w, err := os.OpenFile(name, os.O_RDWR, 0) // lets the open end that nobody waits for
	require.NoError(t, err)
	require.NoError(t, w.Close())
}
