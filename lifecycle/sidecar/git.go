package sidecar

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	patience       = 30 * time.Second
	bytesPerSecond = 4 << 20
	maxOutput      = 64 << 20 // of git, in bytes
	maxMessage     = 2 << 10  // of what an error quotes, in bytes
	// wayOut is what to do about a side-car that is damaged.
	wayOut = "if the side-car is damaged, move it away: lopen transaction commit --remake makes it again from the checkpoints"
)

// ErrNoGit means that there is no git on this machine that works.
var ErrNoGit = errors.New("git was not found: install git 2.38 or newer, or do without transactions")

// HasGit returns ErrNoGit if there is no git on this machine that tells its version.
func HasGit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "version")
	cmd.WaitDelay = time.Second // for what a wrapper left behind
	out, err := cmd.Output()
	if err == nil && !bytes.HasPrefix(out, []byte("git version ")) {
		err = fmt.Errorf("git version prints %.40q", out)
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrNoGit, err)
	}
	return nil
}

// config is the whole configuration that git gets, but for what names no program: contents
// above 8 MiB are streamed, everything is synced, and each import is one pack, for this user.
const config = `[core]
	repositoryformatversion = 0
	bare = true
	sharedRepository = 0600
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

// directory makes a git directory for one command, which remove removes. It has no reference.
func (s *Store) directory() (dir string, remove func(), err error) {
	dir, remove, err = s.opts.Scratch()
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for git: %w", err)
	}
	err = errors.Join(os.Mkdir(filepath.Join(dir, "refs"), 0o700),
		os.WriteFile(filepath.Join(dir, "config"), []byte(config), filePerm),
		os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), filePerm))
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("make a folder for git: %w", err)
	}
	return dir, remove, nil
}

// environ is the environment of git: without a GIT_ variable that others set. New objects go
// into a folder of the side-car.
func (s *Store) environ(into string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(strings.ToUpper(kv), "GIT_")
	})
	return append(env, "GIT_OBJECT_DIRECTORY="+filepath.Join(s.repo.Name(), into),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoted(filepath.Join(s.repo.Name(), "objects")),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=lopen", "GIT_AUTHOR_EMAIL="+email, "GIT_COMMITTER_NAME=lopen", "GIT_COMMITTER_EMAIL="+email)
}

// git runs a command that only reads the side-car's objects, and returns what it prints.
func (s *Store) git(ctx context.Context, args ...string) ([]byte, error) {
	return s.start(ctx, "objects", 0, nil, args)
}

// add runs a command that adds objects, into a folder of its own. They come to objects when it
// has succeeded: one that is killed, or finds the disk full, leaves nothing there. The caller
// holds the lock.
func (s *Store) add(ctx context.Context, size int64, input func(io.Writer) error, args ...string) ([]byte, error) {
	err := s.repo.RemoveAll(incoming) // of a process that was killed
	if err == nil {
		err = s.repo.Mkdir(incoming, 0o700)
	}
	if err != nil {
		return nil, writer.NewError("write to the side-car", filepath.Join(s.repo.Name(), incoming), writer.NotCommitted, err)
	}
	out, err := s.start(ctx, incoming, size, input, args)
	if err == nil {
		err = s.adopt()
	}
	_ = s.repo.RemoveAll(incoming) // else the next one does
	return out, err
}

// adopt moves what git wrote to objects, and makes the names durable, as git did the contents.
// The index of a pack comes last: without it there is no pack.
func (s *Store) adopt() error {
	folders, err := s.repo.ReadDir(incoming)
	for _, f := range folders {
		from, to := incoming+"/"+f.Name()+"/", "objects/"+f.Name()
		var written []fs.DirEntry
		if err == nil {
			written, err = s.repo.ReadDir(from)
		}
		if err == nil {
			err = writer.MkdirDurable(s.repo, to)
		}
		slices.SortFunc(written, func(a, b fs.DirEntry) int { return cmp.Compare(b.Name(), a.Name()) })
		for _, e := range written {
			if err == nil {
				err = s.repo.Rename(from+e.Name(), to+"/"+e.Name())
			}
		}
		if err == nil {
			err = s.repo.SyncDir(to)
		}
	}
	if err != nil {
		err = writer.NewError("write to the side-car", s.repo.Name(), writer.NotCommitted, err)
	}
	return err
}

// start runs a command and returns what it prints. input, unless nil, writes its stdin; if
// input fails, git is killed, so that it never takes a part for the whole. size is that of the
// contents, in bytes. After a git that hung no other one is started.
func (s *Store) start(ctx context.Context, into string, size int64, input func(io.Writer) error, args []string) ([]byte, error) {
	if s.hung != nil {
		return nil, s.hung
	}
	dir, remove, err := s.directory()
	if err != nil {
		return nil, err
	}
	defer remove()
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.Patience+time.Duration(size/bytesPerSecond)*time.Second, fmt.Errorf("git did not end in time and was killed: %w", context.DeadlineExceeded))
	defer cancel()
	cmd := exec.CommandContext(ctx, s.opts.Git, append([]string{"--no-pager", "--no-replace-objects", "--git-dir=" + dir}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, s.environ(into), time.Second
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
		err = s.failed(args[0], text.String(), err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		s.hung = err
	}
	return out.Bytes(), err
}

// fed runs git with what input writes. wrong is the error of input; git is killed then. That git
// ended before it had read everything is no such error, since git explains it.
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
	if wrong = input(stdin); errors.Is(wrong, syscall.EPIPE) || errors.Is(wrong, os.ErrClosed) {
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

// failed returns the error of a command: what git printed, and what to do.
func (s *Store) failed(command, text string, err error) error {
	text, _, _ = strings.Cut(text, "fast-import: dumping crash report") // which is not kept
	if err = fmt.Errorf("git %s: %w", command, err); text != "" {
		err = fmt.Errorf("%w: %s", err, strings.ReplaceAll(strings.TrimSpace(text), "\n", "; "))
	}
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	class, exit := writer.ClassCorrupt, (*exec.ExitError)(nil)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w (%w)", ErrNoGit, err)
	case says("No space left", "Out of diskspace", "quota exceeded"):
		class = writer.ClassNoSpace
	case says("Permission denied", "Read-only file system"):
		class = writer.ClassDenied
	case errors.As(err, &exit) && exit.Exited():
		err = fmt.Errorf("%w; %s", err, wayOut)
	default: // killed, or not started
		return fmt.Errorf("side-car %s: %w", s.repo.Name(), err)
	}
	return &writer.Error{Op: "use the side-car", Path: s.repo.Name(), Class: class, Err: err}
}
