package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
	"github.com/lopen-dev/lopen/writer/crypt"
)

// A key comes from a file, a command or the environment, and is the same from each.
func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, text, err := crypt.NewKey()
	require.NoError(t, err)
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	good := file("key", string(text), 0o600)
	open := file("open", string(text), 0o644)
	public := file("public", "age1phsrxh5wjhy9xa8rqyvdt2nzs0rksgsqazcnzkvehpa78v69w9uqccjgex\n", 0o644)
	bad := file("bad", "two\nlines", 0o600)
	var sealed bytes.Buffer
	for _, c := range []struct {
		name, env   string
		args        []string
		reads       bool
		want, shown string
		code        int
	}{
		{name: "a file", args: []string{"--encrypt", "--key-file", good}},
		{name: "a command", args: []string{"--encrypt", "--key-command", "cat " + good}},
		{name: "the environment", env: string(text), args: []string{"--encrypt"}},
		{name: "a flag goes before the environment", env: "two\nlines", args: []string{"--encrypt", "--key-file", good}},
		{name: "reading a file", reads: true, args: []string{"--key-file", good}},
		{name: "reading with a command", reads: true, args: []string{"--key-command", "cat " + good}},
		{name: "reading with the environment", reads: true, env: string(text)},
		{name: "a file that others read", args: []string{"--encrypt", "--key-file", open}, shown: "warning: others may read the key"},
		{name: "a public key is for others", args: []string{"--encrypt", "--key-file", public}},
		{name: "the command speaks to the user", args: []string{"--encrypt", "--key-command", "echo touch >&2; cat " + good}, shown: "touch"},
		{name: "the command is not told", env: "secret", args: []string{"--encrypt", "--key-command", "test -z \"$LOPEN_KEY\" && cat " + good}},

		{name: "no key", args: []string{"--encrypt"}, want: "give a key by --key-file FILE, --key-command CMD or LOPEN_KEY", code: exitUsage},
		{name: "no key to read", reads: true, want: "there is no key", code: exitUsage},
		{name: "a key for nothing", args: []string{"--key-file", good}, want: "need --encrypt", code: exitUsage},
		{name: "a command for nothing", args: []string{"--key-command", "true"}, want: "need --encrypt", code: exitUsage},
		{name: "two", args: []string{"--encrypt", "--key-file", good, "--key-command", "true"}, want: "none of the others can be", code: exitUsage},
		{name: "no such file", args: []string{"--encrypt", "--key-file", filepath.Join(dir, "no")}, want: "--key-file " + filepath.Join(dir, "no") + ": ", code: exitUsage},
		{name: "a folder", args: []string{"--encrypt", "--key-file", dir}, want: "no regular file", code: exitUsage},
		{name: "a large file", args: []string{"--encrypt", "--key-file", file("large", strings.Repeat("x", maxKey+1), 0o600)}, want: "more than the 65536", code: exitUsage},
		{name: "no key in the file", args: []string{"--encrypt", "--key-file", bad}, want: "bad: read key: it has several lines", code: exitUsage},
		{name: "no key in the environment", env: "age1xyz", args: []string{"--encrypt"}, want: "LOPEN_KEY: read key: line 1: the public key is malformed", code: exitUsage},
		{name: "a command that fails", args: []string{"--encrypt", "--key-command", "echo secret; exit 3"}, want: "--key-command: exit status 3", code: 1},
		{name: "a command without end", args: []string{"--encrypt", "--key-command", "yes"}, want: "--key-command: it prints more than a key has", code: 1},
		{name: "a command that prints nothing", args: []string{"--encrypt", "--key-command", "true"}, want: "--key-command: read key: it is empty", code: exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			var shown bytes.Buffer
			a := &app{stdin: nil}
			a.takeSecrets([]string{"PATH=" + os.Getenv("PATH"), "LOPEN_KEY=" + c.env})
			a.stdout, a.stderr = terminal.Streams(io.Discard, &shown)
			var key *crypt.Key
			cmd := &cobra.Command{Use: "x", SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs}
			flags := a.keyFlags(cmd, !c.reads)
			cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
				if c.reads {
					key, err = flags.decryption(cmd.Context())
				} else {
					key, err = flags.encryption(cmd.Context())
				}
				return err
			}
			asUsage(cmd)
			cmd.SetArgs(append([]string{}, c.args...)) // nil would be those of the test
			err := cmd.ExecuteContext(context.Background())
			require.NoError(t, a.stderr.Close())
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), "secret")
				require.Equal(t, c.code, exitCode(err))
				return
			}
			require.NoError(t, err)
			require.Contains(t, shown.String(), c.shown)
			if c.shown == "" {
				require.Empty(t, shown.String())
			}
			if !c.reads { // what one encrypts, the next decrypts
				sealed.Reset()
				w, err := key.Encrypt(&sealed)
				require.NoError(t, err)
				require.NoError(t, w.Close())
				return
			}
			_, err = key.Decrypt(bytes.NewReader(sealed.Bytes()))
			require.NoError(t, err)
		})
	}
	plainly, err := (&keyFlags{a: &app{secrets: map[string]string{keyVariable: string(text)}}}).encryption(t.Context())
	require.NoError(t, err)
	require.Nil(t, plainly, "a key in the environment alone asks for nothing")
}
