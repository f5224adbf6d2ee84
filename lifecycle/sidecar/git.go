package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lopen-dev/lopen/writer"
)

const (
	// patience bounds a start of git, with as much again as the contents need at bytesPerSecond.
	patience       = time.Minute
	bytesPerSecond = 4 << 20
	// maxOutput bounds what is read of git's output, in bytes.
	maxOutput = 64 << 20
	// maxMessage bounds what an error quotes of it.
	maxMessage = 2 << 10
)

// ErrNoGit means that there is no git on this machine.
var ErrNoGit = errors.New("git was not found: install git 2.38 or newer, or do without transactions")

// HasGit returns ErrNoGit if there is no git on this machine.
func HasGit() error {
	if _, err := exec.LookPath("git"); err != nil {
		return fmt.Errorf("%w (%w)", ErrNoGit, err)
	}
	return nil
}

// config is the whole configuration that git gets, but for what names no program: contents
// above 8 MiB are streamed, everything is synced, and each import is one pack.
const config = `[core]
	repositoryformatversion = 0
	bare = true
	fsync = all
	fsyncMethod = fsync
	bigFileThreshold = 8m
	logAllRefUpdates = false
	commitGraph = false
	protectHFS = false
	protectNTFS = false
	hooksPath = /dev/null
	attributesFile = /dev/null
	fsmonitor = false
[fastimport]
	unpackLimit = 0
[gc]
	auto = 0
[maintenance]
	auto = false
[protocol]
	allow = never
`

// A gitError is what git printed before it failed.
type gitError struct {
	command string
	text    string
	err     error
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: %v: %s", e.command, e.err, strings.ReplaceAll(strings.TrimSpace(e.text), "\n", "; "))
}

func (e *gitError) Unwrap() error { return e.err }

// exit returns the exit code, or -1 if git did not end by itself.
func (e *gitError) exit() int {
	var exit *exec.ExitError
	if errors.As(e.err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// directory makes a git directory for one command. It has no reference. It is outside of
// .lopen, where an agent that is confined to the project cannot change it.
func (s *Store) directory() (string, error) {
	if err := os.MkdirAll(s.opts.Scratch, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.opts.Scratch, "git-*")
	if err != nil {
		return "", err
	}
	err = errors.Join(os.Mkdir(filepath.Join(dir, "refs"), 0o700),
		os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600))
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return dir, err
}

// environ is the environment of git: without a GIT_ variable that others set.
func (s *Store) environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(strings.ToUpper(kv), "GIT_")
	})
	return append(env, "GIT_OBJECT_DIRECTORY="+filepath.Join(s.repo.Name(), "objects"),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=lopen", "GIT_AUTHOR_EMAIL="+email, "GIT_COMMITTER_NAME=lopen", "GIT_COMMITTER_EMAIL="+email)
}

// git runs a command on the side-car's objects and returns what it prints. input, unless nil,
// writes its stdin; if input fails, git is killed, so that it never takes a part for the whole.
// size is that of the contents, in bytes.
func (s *Store) git(ctx context.Context, size int64, input func(io.Writer) error, args ...string) ([]byte, error) {
	if err := HasGit(); err != nil {
		return nil, err
	}
	dir, err := s.directory()
	if err != nil {
		return nil, fmt.Errorf("make a folder for git: %w", err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience+time.Duration(size/bytesPerSecond)*time.Second, fmt.Errorf("git did not end in time and was killed: %w", context.DeadlineExceeded))
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "--no-replace-objects", "--git-dir=" + dir}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, s.environ(), time.Second
	out, text := &head{limit: maxOutput}, &head{limit: maxMessage}
	cmd.Stdout, cmd.Stderr = out, text
	wrong, err := fed(cmd, cancel, input)
	switch {
	case wrong != nil:
		return nil, wrong
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case out.over:
		err = fmt.Errorf("more than %d bytes of output", maxOutput)
	}
	if err != nil {
		err = &gitError{args[0], text.String(), err}
	}
	return out.Bytes(), err
}

// fed runs git with what input writes. wrong is the error of input; git is killed then. That git
// ended before it had read everything is no such error.
func fed(cmd *exec.Cmd, kill func(), input func(io.Writer) error) (wrong, err error) {
	if input == nil {
		return nil, cmd.Run()
	}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	if wrong = input(stdin); brokenPipe(wrong) {
		wrong = nil
	} else if wrong != nil {
		kill()
	}
	_ = stdin.Close() // without the end of the stream git changes nothing
	return wrong, cmd.Wait()
}

// A head keeps the first bytes that are written to it.
type head struct {
	bytes.Buffer
	limit int
	over  bool
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.limit-h.Len())
	h.over = h.over || n < len(p)
	_, _ = h.Buffer.Write(p[:n])
	return len(p), nil
}

// failed returns the error of a command that git could not do on the side-car.
func (s *Store) failed(err error) error {
	var g *gitError
	if !errors.As(err, &g) {
		return err
	}
	class := writer.ClassCorrupt
	switch {
	case strings.Contains(g.text, "No space left") || strings.Contains(g.text, "Out of diskspace") || strings.Contains(g.text, "quota exceeded"):
		class = writer.ClassNoSpace
	case strings.Contains(g.text, "Permission denied") || strings.Contains(g.text, "Read-only file system"):
		class = writer.ClassDenied
	case g.exit() >= 0:
		err = fmt.Errorf("%w; %s", err, wayOut)
	default: // killed, or not started
		return fmt.Errorf("side-car %s: %w", s.repo.Name(), err)
	}
	return &writer.Error{Op: "use the side-car", Path: s.repo.Name(), Class: class, Err: err}
}

// wayOut is what to do about a side-car that is damaged.
const wayOut = "if the side-car is damaged, move it away: lopen transaction commit --remake makes it again from the checkpoints"

// brokenPipe reports whether git ended before it had read everything, which it explains itself.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) }
