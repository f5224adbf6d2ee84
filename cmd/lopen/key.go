package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/writer/crypt"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/plain"
)

const keyWays = "give a key by --key-file FILE, --key-command CMD or " + keyVariable

// maxKey bounds the text of a key, in bytes: crypt refuses longer ones.
const maxKey = 64 << 10

// keyFlags are the flags of a command that encrypts or decrypts. No flag holds a key itself:
// command lines are seen by others, and kept by shells.
type keyFlags struct {
	a             *app
	encrypt       bool
	file, command string
}

// keyFlags adds the flags to a command; --encrypt only to one that writes.
func (a *app) keyFlags(cmd *cobra.Command, writes bool) *keyFlags {
	k := &keyFlags{a: a}
	f := cmd.Flags()
	if writes {
		f.BoolVar(&k.encrypt, "encrypt", false, "encrypt as age does; "+keyWays)
	}
	f.StringVar(&k.file, "key-file", "", "the key is in `FILE`, which may be a pipe: keys of age or SSH, one a line, or a passphrase")
	f.StringVar(&k.command, "key-command", "", "the key is what `CMD` prints, a command of the shell")
	cmd.MarkFlagsMutuallyExclusive("key-file", "key-command")
	return k
}

// encryption returns the key to encrypt with, nil if that was not asked for.
func (k *keyFlags) encryption(ctx context.Context) (*crypt.Key, error) {
	if k.encrypt {
		return k.decryption(ctx)
	}
	if k.file != "" || k.command != "" {
		return nil, usagef("--key-file and --key-command need --encrypt")
	}
	return nil, nil
}

// decryption returns the key of something that is encrypted.
func (k *keyFlags) decryption(ctx context.Context) (*crypt.Key, error) {
	text, from, err := k.text(ctx)
	if err != nil {
		return nil, err
	}
	key, err := crypt.ParseKey(text)
	if err != nil {
		return nil, usagef("%s: %w", from, err)
	}
	return key, nil
}

// unneeded refuses a key for something that is not encrypted: who gives one means an encrypted
// one, and in its place may be what somebody else made.
func (k *keyFlags) unneeded(path string) error {
	if k.file == "" && k.command == "" {
		return nil
	}
	return usagef("%s is not encrypted, and there is a key: leave out --key-file and --key-command if that is right", shown(path))
}

// text returns what has the key, and where it is from.
func (k *keyFlags) text(ctx context.Context) (text []byte, from string, err error) {
	switch {
	case k.file != "":
		text, err = k.read(ctx)
		return text, plain.Line(k.file), err
	case k.command != "":
		text, err = k.run(ctx)
		return text, "--key-command", err
	case k.a.secrets[keyVariable] != "":
		return []byte(k.a.secrets[keyVariable]), keyVariable, nil
	}
	return nil, "", usagef("there is no key: %s", keyWays)
}

// read reads the file, which may be a pipe: --key-file <(pass show x).
func (k *keyFlags) read(ctx context.Context) ([]byte, error) {
	name, err := k.a.path(k.file)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	read := documents.ReadFile
	if err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		read = readPipe
	}
	text, err := await(ctx, func() ([]byte, error) { return read(name, maxKey) })
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, usagef("--key-file %s: %w", plain.Line(k.file), err)
	}
	key, err := crypt.ParseKey(text)
	public := err == nil && !key.CanDecrypt()
	if info != nil && !public && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		fmt.Fprintf(k.a.stderr, "warning: others may read the key: chmod go= %s\n", plain.Quote(k.file))
	}
	return text, nil
}

// readPipe reads what comes through a pipe, and at most one byte more than limit.
func readPipe(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// run runs the command, which may ask on the terminal.
func (k *keyFlags) run(ctx context.Context) ([]byte, error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(inner, "sh", "-c", k.command)
	cmd.WaitDelay = time.Second // for what it left behind
	out := &keyBuffer{full: cancel}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = k.a.stdin, out, k.a.stderr.Unwrap(), k.a.environ
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("--key-command: %w", cmp.Or(context.Cause(inner), err))
	}
	return out.text, nil
}

// A keyBuffer ends the command that prints too much for a key: it would wait for a reader.
type keyBuffer struct {
	text []byte
	full context.CancelCauseFunc
}

func (b *keyBuffer) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > maxKey {
		err := errors.New("it prints more than a key has")
		b.full(err)
		return 0, err
	}
	b.text = append(b.text, p...)
	return len(p), nil
}
