package repo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
)

const (
	// Patience is the time limit of a start of git unless its Command has another one. Hooks
	// and signing are part of it.
	Patience = 2 * time.Minute
	// MaxOutput is how much git may print to stdout, in bytes.
	MaxOutput = 64 << 20
	// maxText bounds what an error quotes of git's output, in bytes.
	maxText = 2 << 10
	// grace is the time from SIGTERM to SIGKILL.
	grace = 2 * time.Second
)

// A Command is one start of git.
type Command struct {
	Args  []string
	Dir   string        // where git runs; "" is the folder that was opened
	Index string        // the index to use in place of the work tree's; "" is that one
	Input []byte        // of stdin; nil is the null device
	Limit time.Duration // 0 is Patience
	alone bool          // as the commands in alone
	inert bool          // run no hook and no monitor, and fetch nothing

	inherit *os.File // kept open in git and what it starts; nil is none
}

// Git starts git and returns what it prints to stdout, also where it fails. The error is ctx.Err() if ctx ended
// git, otherwise an [*Error]. The time limit, which is in it, wraps
// [context.DeadlineExceeded].
func (r *Repository) Git(ctx context.Context, c Command) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, release, err := r.held(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	out := &bounded{}
	cmd := r.process(c, out)
	run := child.Run
	if c.Input != nil {
		run = func(ctx context.Context, cmd child.Command) (child.Result, error) {
			return child.RunOn(ctx, cmd, c.Input)
		}
	}
	res, err := run(ctx, cmd)
	failed := &Error{Command: "git " + strings.Join(c.Args, " "), Exit: res.Exit, Text: end(res.Tail)}
	switch {
	case err != nil:
		failed.Err = err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case res.Cause == child.CauseTimeout:
		failed.Err = fmt.Errorf("it did not end within %s and was killed: %w", cmd.Timeout, context.DeadlineExceeded)
	case res.Signal != "":
		failed.Err = errors.New("killed by signal " + res.Signal)
	case res.Exit == 0 && out.over:
		failed.Err = fmt.Errorf("it printed more than %d bytes", MaxOutput)
	case res.Exit == 0:
		return out.data.Bytes(), nil
	}
	return out.data.Bytes(), failed
}

// process is the process of a start of git, which prints to out.
func (r *Repository) process(c Command, out io.Writer) child.Command {
	cmd := child.Command{Argv: []string{git.Program(r.environ)}, Dir: cmp.Or(c.Dir, r.folder), Env: slices.Clip(r.environ),
		Stdout: out, Timeout: cmp.Or(c.Limit, Patience), Grace: grace, Keep: !c.alone && !slices.Contains(alone, c.Args[0]), EndsWithUs: true}
	if c.inert {
		cmd.Argv = append(cmd.Argv, "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath="+os.DevNull)
		cmd.Env = append(cmd.Env, "GIT_ALLOW_PROTOCOL=none")
	}
	if c.inherit != nil {
		cmd.Inherit = []*os.File{c.inherit}
	}
	if c.Index != "" {
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+c.Index)
	}
	cmd.Argv = append(cmd.Argv, c.Args...)
	return cmd
}

// alone are commands that end at once and start no program, hooks included (diff-index with
// --cached, commit-tree without -S): they need no keeper, which would cost more than they do.
var alone = []string{"rev-parse", "symbolic-ref", "log", "rev-list", "diff-tree", "check-ignore", "merge-base", "var", "hash-object", "diff-index", "write-tree", "commit-tree", "config"}

// An Error is a start of git that failed.
type Error struct {
	Command string
	Exit    int
	Text    string // the end of what it printed, as it came
	Err     error  // why git was killed or not started; nil if it exited by itself
}

// Error returns the command with what git printed, on one line.
func (e *Error) Error() string {
	how := fmt.Sprintf("exit %d", e.Exit)
	if e.Err != nil {
		how = e.Err.Error()
	}
	lines := strings.FieldsFunc(e.Text, func(c rune) bool { return c == '\n' || c == '\r' })
	return strings.Join(append([]string{e.Command + ": " + how}, lines...), "; ")
}

func (e *Error) Unwrap() error { return e.Err }

// ExitOf returns the exit code of a start of git that failed by itself, otherwise -1.
func ExitOf(err error) int {
	if e := (*Error)(nil); errors.As(err, &e) && e.Err == nil {
		return e.Exit
	}
	return -1
}

// end returns the last whole lines of a text.
func end(text []byte) string {
	return strings.TrimSpace(string(child.LastLines(text, maxText)))
}

// A bounded buffer keeps the first MaxOutput bytes. One goroutine writes, and it is read when
// that has ended.
type bounded struct {
	data bytes.Buffer
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), MaxOutput-b.data.Len())
	b.over = b.over || n < len(p)
	_, _ = b.data.Write(p[:n]) // never fails
	return len(p), nil
}

// persons are the GIT_ variables with which a person configures git, besides
// GIT_CONFIG_COUNT and its keys and values. All others say which repository is used, how a
// command of git that has started lopen is to behave, or where git asks for a password.
var persons = []string{
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT", "GIT_ATTR_NOSYSTEM",
	"GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	"GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CEILING_DIRECTORIES",
}

// environment returns the environment of git.
func environment(environ []string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		name = strings.ToUpper(name)
		switch {
		case name == "GPG_TTY", name == "SSH_ASKPASS", name == "SSH_ASKPASS_REQUIRE":
			return true
		case strings.HasPrefix(name, "GIT_CONFIG_KEY_"), strings.HasPrefix(name, "GIT_CONFIG_VALUE_"):
			return false
		}
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(persons, name)
	})
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=never",
		"GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", "GIT_MERGE_AUTOEDIT=no", "GIT_PAGER=cat")
}
