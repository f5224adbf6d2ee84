package crypt_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// runAge runs the age command, on a terminal of its own on which answers are typed.
func runAge(t *testing.T, answers string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("age")
	if err != nil {
		t.Skip("the age command is not installed")
	}
	cmd := exec.Command(path, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if answers != "" {
		ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
		if errors.Is(err, os.ErrNotExist) {
			t.Skip("there are no pseudo-terminals here")
		}
		require.NoError(t, err)
		defer ptmx.Close()
		require.NoError(t, unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0))
		n, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
		require.NoError(t, err)
		tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
		require.NoError(t, err)
		defer tty.Close()
		cmd.Stdin, cmd.SysProcAttr = tty, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		_, err = io.WriteString(ptmx, answers)
		require.NoError(t, err)
	}
	require.NoError(t, cmd.Run(), "%s", &said)
}

// TestAgeCommand has the age command open what is encrypted here, and the other way round.
func TestAgeCommand(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("some text "), 20_000)
	for kind, pair := range keys(t) {
		if kind == "hybrid" {
			continue // Debian's age is older
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := func(name string) string { return filepath.Join(dir, name) }
			write := func(name string, text []byte) { require.NoError(t, os.WriteFile(path(name), text, 0o600)) }
			read := func(name string) []byte {
				text, err := os.ReadFile(path(name))
				require.NoError(t, err)
				return text
			}
			write("plain", text)
			write("ours", encrypt(t, parse(t, pair[0]), text))
			write("public", []byte(pair[0]))
			write("private", []byte(pair[1]))
			switch {
			case kind == "passphrase":
				runAge(t, passphrase+"\n", "-d", "-o", path("opened"), path("ours"))
				runAge(t, passphrase+"\n"+passphrase+"\n", "-p", "-o", path("theirs"), path("plain"))
			case strings.HasPrefix(pair[0], "AGE-SECRET-KEY-"):
				runAge(t, "", "-d", "-i", path("private"), "-o", path("opened"), path("ours"))
				return // they have it encrypt to public keys only
			default:
				runAge(t, "", "-d", "-i", path("private"), "-o", path("opened"), path("ours"))
				runAge(t, "", "-R", path("public"), "-o", path("theirs"), path("plain"))
			}
			require.Equal(t, text, read("opened"))
			got, err := decrypt(parse(t, pair[1]), read("theirs"))
			require.NoError(t, err)
			require.Equal(t, text, got)
		})
	}
}
