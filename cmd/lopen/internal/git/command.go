package git

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
	"sync"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/scratch"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
)

// patience bounds each start of git on a repository.
const patience = 10 * time.Second

// kept are the keys of a repository's configuration that git is given: what its files
// are compared by. None names a program, a path or another repository.
var passed = []string{
	"core.repositoryformatversion", "core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode",
	"core.protecthfs", "core.protectntfs", "core.longpaths", "core.autocrlf", "core.eol", "core.checkstat", "core.trustctime",
	"core.sparsecheckout", "core.sparsecheckoutcone", "extensions.objectformat",
}

// always is configuration that git gets over the user's own: the built-in
// fsmonitor would be started for a directory that goes at once, and the repository's
// commit-graph need not agree with its commits.
var always = []string{
	"--no-pager", "--no-optional-locks", "--no-replace-objects",
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.commitGraph=false", "-c", "status.renames=false",
}

// nowhere is a git directory that nobody can make.
var nowhere = filepath.Join(os.DevNull, "none")

// config reads the repository's configuration with git's own parser, as text on stdin:
// nothing is included, and nothing of it is in force. Keys are in lower case but for the
// middle part; of several values the last counts.
func (r *repository) config(ctx context.Context) (map[string]string, error) {
	text, err := read(r.common, "config", maxConfig)
	if err != nil {
		return nil, err
	}
	out, err := r.settings(ctx, bytes.NewReader(text), "--file", "-", "--no-includes", "--null", "--list")
	if err != nil {
		return nil, fmt.Errorf("git config of %s: %w", filepath.Join(at(r.common), "config"), err)
	}
	config := map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, value, ok := strings.Cut(entry, "\n")
		if !ok {
			value = "true" // a key alone
		}
		config[key] = value
	}
	return config, nil
}

// programs are those that Program found, by the PATH of then.
var programs sync.Map

// Program is the git that was first in the PATH of an environment when it was asked for first. An agent may put another
// one there later.
func Program(environ []string) string {
	path := os.Getenv("PATH")
	for _, kv := range environ {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = value
		}
	}
	if found, ok := programs.Load(path); ok {
		return found.(string)
	}
	for _, dir := range filepath.SplitList(path) {
		if name, err := exec.LookPath(filepath.Join(dir, "git")); err == nil && filepath.IsAbs(name) {
			programs.Store(path, name)
			return name
		}
	}
	return "git" // whose start says that it is not there
}

// Scratch makes a folder among the user's own state, for one start of git. The temporary folder
// would not do: an agent that is confined to it and to the project could write a filter into
// the configuration before git reads it.
func Scratch(getenv func(string) string) (*scratch.Dir, error) {
	state, err := trust.MakeDir(getenv)
	if err != nil {
		return nil, err
	}
	return scratch.In(state, "git-")
}

// synthetic makes a git directory of our own at a commit, "" for none yet, and returns
// what removes it.
func (r *repository) synthetic(config map[string]string, commit string) (string, func(), error) {
	made, err := Scratch(r.getenv)
	if err != nil {
		return "", nil, err
	}
	dir, remove := made.Path(), made.Close
	var own strings.Builder
	for _, key := range passed {
		value, ok := config[key]
		if ok && len(value) <= 16 && isWord(value) {
			section, name, _ := strings.Cut(key, ".")
			fmt.Fprintf(&own, "[%s]\n\t%s = %s\n", section, name, value)
		}
	}
	if commit == "" {
		commit = "ref: refs/heads/none"
	}
	files := map[string]string{"config": own.String(), "HEAD": commit + "\n"}
	for _, name := range []string{"info/exclude", "info/attributes"} {
		if text, err := read(r.common, name, maxConfig); err == nil {
			files[name] = string(text)
		}
	}
	for _, sub := range []string{"refs", "info"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600))
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return dir, remove, nil
}

// isWord says whether a value is a word or a number, which needs no quotes.
func isWord(s string) bool {
	return strings.Trim(strings.ToLower(s), "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// command is git on a directory of our own. Of the caller's GIT_ variables stay those
// that say where git and the user's own configuration are.
func (r *repository) command(ctx context.Context, dir string, args ...string) (*exec.Cmd, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, Program(r.environ), append(slices.Clone(always), args...)...) // #nosec G702 -- the git of the user's PATH
	cmd.Dir, cmd.WaitDelay = r.top, time.Second
	cmd.Env = slices.DeleteFunc(slices.Clone(r.environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch strings.ToUpper(name) {
		case "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH":
			return false
		}
		return strings.HasPrefix(strings.ToUpper(name), "GIT_")
	})
	cmd.Env = append(cmd.Env, "GIT_DIR="+dir, "GIT_WORK_TREE="+r.top,
		"GIT_INDEX_FILE="+filepath.Join(at(r.dir), "index"), "GIT_OBJECT_DIRECTORY="+filepath.Join(at(r.common), "objects"),
		"GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOC_LIMIT=128m", "LC_ALL=C")
	return cmd, cancel
}

// settings runs git config outside of any repository. Where that hangs every git does.
func (r *repository) settings(ctx context.Context, stdin io.Reader, args ...string) (out []byte, err error) {
	err = r.asked(ctx, LookPatience, "", func(ctx context.Context) error {
		cmd, end := r.command(ctx, nowhere, append([]string{"config"}, args...)...)
		defer end()
		defer endsWithUs(cmd)()
		cmd.Dir, cmd.Stdin = os.TempDir(), stdin
		out, err = cmd.Output()
		return err
	})
	return out, err
}

// errHangs is the error of what git is not asked again.
var errHangs = fmt.Errorf("git hung before, and is not asked again: %w", context.DeadlineExceeded)

// hung has what git was asked when its context ended it: behind the home of the user whose configuration
// it reads, "" or its repository and words. This process does not ask that again.
var hung sync.Map

// asked calls ask, for so long at most, unless git hung when it was asked that before.
func (r *repository) asked(ctx context.Context, bound time.Duration, what string, ask func(context.Context) error) error {
	home := r.getenv("HOME") + "\x00"
	if what != "" {
		what = at(r.dir) + "\x00" + what
	}
	if _, is := hung.Load(home + what); is {
		return errHangs
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err := ask(ctx)
	if err != nil && ctx.Err() != nil {
		hung.Store(home+what, true)
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// run starts git on a synthetic directory and returns the first limit bytes of what it
// prints. Git is ended there.
func (r *repository) run(ctx context.Context, config map[string]string, commit string, limit int64, args ...string) ([]byte, error) {
	dir, remove, err := r.synthetic(config, commit)
	if err != nil {
		return nil, err
	}
	defer remove()
	var out []byte
	err = r.asked(ctx, patience, strings.Join(args, " "), func(ctx context.Context) error {
		cmd, end := r.command(ctx, dir, args...)
		defer end()
		defer endsWithUs(cmd)()
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		out, err = io.ReadAll(io.LimitReader(pipe, limit))
		if int64(len(out)) == limit {
			end()
			_ = cmd.Wait()
			return nil
		}
		return errors.Join(err, cmd.Wait())
	})
	return out, err
}

// comparable says whether git can be started on the repository's objects and index: they
// are a folder and a file, and objects are named as git on this machine knows it.
func (r *repository) comparable(config map[string]string) bool {
	objects, err := r.common.Lstat("objects")
	if err != nil || !objects.IsDir() {
		return false
	}
	index, err := r.dir.Lstat("index")
	if err == nil && (!index.Mode().IsRegular() || index.Size() > maxIndex) {
		return false
	}
	return config["extensions.refstorage"] == "" || config["extensions.refstorage"] == "files"
}
