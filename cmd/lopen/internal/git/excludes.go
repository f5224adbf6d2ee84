package git

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/documents"
)

// maxExcludes bounds an ignore file from outside of the tree, in bytes, as git's
// ignore files in the tree are bounded.
const maxExcludes = 256 << 10

// errNone says that the repository names no core.excludesFile that counts.
var errNone = errors.New("no core.excludesFile")

// A Tree is a folder of which git says what it ignores and tracks.
type Tree struct {
	folder  string
	environ []string
	log     zerolog.Logger
	once    sync.Once
	users   string // Guarded by once.
	names   index
	warned  atomic.Bool
}

// Of returns the Tree of a folder. It does not touch the disk.
func Of(folder string, environ []string, log zerolog.Logger) *Tree {
	return &Tree{folder: folder, environ: environ, log: log}
}

// Repository returns a text that changes with the repository in a folder of the Tree: with its HEAD and, of a
// submodule that the index named at the last call of Outside, with its files. It is "" if that is not known.
func (t *Tree) Repository(ctx context.Context, path string) string {
	return within(ctx, filepath.Join(t.folder, filepath.FromSlash(path)), t.environ, t.names.isSubmodule(path))
}

// Outside reads the ignore files which git uses in the folder besides the .gitignore files in it, the weakest
// first: core.excludesFile, info/exclude, and the .gitignore files of the folders above it in the work tree.
// With core.ignorecase in the repository's own configuration [files.FoldPath] comes before them.
// What is not there, or is not a regular file of at most 256 KiB, is left out. There are
// none where the folder is in no repository. Behind them comes what the index tracks, see
// [files.TrackedPath], for which git is asked again only when the index changed.
//
// core.excludesFile is the repository's own where that lies in its work tree or its git
// directory. One that lies elsewhere does not count, and is logged: the repository is
// foreign text, and what it names would be copied. The user's own counts then, which git
// is asked for at the first call; without git that is the default file. A condition on
// the repository in the user's configuration (includeIf) does not hold.
//
// Where the folder is below the top of the work tree, patterns are those that hold in it.
func (t *Tree) Outside(ctx context.Context) (all []files.IgnoreFile) {
	r, err := find(ctx, t.folder, t.environ)
	if err == nil {
		defer r.close()
		err = ctx.Err()
	}
	switch {
	case errors.Is(err, ErrNone):
		return nil
	case err != nil:
		return []files.IgnoreFile{{Path: files.TrackedPath}} // what is known holds
	}
	t.once.Do(func() { t.users = r.usersExcludes(ctx) })
	if r.foldsCase() {
		all = append(all, files.IgnoreFile{Path: files.FoldPath, Data: []byte("true\n")})
	}
	prefix := r.prefix(t.folder)
	add := func(name, prefix string, data []byte, err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.log.Debug().Err(err).Str("name", name).Msg("ignore file left out")
		}
		if data = below(data, prefix); len(data) > 0 {
			all = append(all, files.IgnoreFile{Path: "//" + name, Data: data})
		}
	}
	data, err := r.ownExcludes(ctx, t.log)
	if errors.Is(err, errNone) {
		data, err = r.inside(t.users, documents.ReadFile)
	}
	add("core.excludesFile", prefix, data, err)
	data, err = read(r.common, "info/exclude", maxExcludes)
	add("info/exclude", prefix, data, err)
	t.above(r, prefix, add)
	if list := t.tracked(ctx, r); list.Data == nil || len(list.Data) > 0 {
		all = append(all, list)
	}
	return all
}

// above adds the .gitignore files of the folders above the one whose path from the top of the work tree on is
// prefix. As git does, it takes a symlink for none.
func (t *Tree) above(r *repository, prefix string, add func(name, prefix string, data []byte, err error)) {
	if prefix == "." {
		return
	}
	top, err := documents.OpenRoot(r.top)
	if err != nil {
		t.log.Debug().Err(err).Msg("the ignore files above the folder are left out")
		return
	}
	defer top.Close()
	dir, rest := ".", prefix
	for ok := true; ok; {
		name := path.Join(dir, ".gitignore")
		if info, err := top.Lstat(name); err == nil && info.Mode().IsRegular() {
			data, err := read(top, name, maxExcludes)
			add("above/"+name, rest, data, err)
		}
		var next string
		next, rest, ok = strings.Cut(rest, "/")
		dir = path.Join(dir, next)
	}
}

// foldsCase reports whether the repository says that its file system takes both cases of a letter for one, as
// git notes where it makes a repository. Git is not started for that: a setting elsewhere does not count.
func (r *repository) foldsCase() bool {
	text, err := read(r.common, "config", maxConfig)
	return err == nil && ignoreCase.Match(text)
}

var ignoreCase = regexp.MustCompile(`(?mi)^\s*ignorecase\s*(=\s*(true|yes|on|1)\s*)?$`)

// tracked returns what the index tracks.
func (t *Tree) tracked(ctx context.Context, r *repository) files.IgnoreFile {
	list, err := t.names.file(ctx, r, t.folder)
	if err != nil {
		level := zerolog.DebugLevel
		if !errors.Is(err, exec.ErrNotFound) && ctx.Err() == nil && t.warned.CompareAndSwap(false, true) {
			level = zerolog.WarnLevel
		}
		t.log.WithLevel(level).Err(err).Msg("git does not say what it tracks: what is known of that holds")
	}
	return list
}

// ownExcludes reads the core.excludesFile that the repository's configuration names. The
// error is errNone where it names none that counts.
func (r *repository) ownExcludes(ctx context.Context, log zerolog.Logger) ([]byte, error) {
	text, err := read(r.common, "config", maxConfig)
	if err != nil || !bytes.Contains(bytes.ToLower(text), []byte("excludesfile")) {
		return nil, errNone // nor is git started
	}
	config, err := r.config(ctx)
	if err != nil {
		return nil, errNone
	}
	name, ok := config["core.excludesfile"]
	if !ok {
		return nil, errNone
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(r.getenv("HOME"), rest)
	}
	return r.inside(name, func(path string, _ int64) ([]byte, error) {
		log.Debug().Str("path", path).Msg("core.excludesFile of the repository lies outside of it and does not count")
		return nil, errNone
	})
}

// inside reads a file through the work tree or a git directory where its path lies in
// one of them, so that no symlink leads out, and else by what is given.
func (r *repository) inside(name string, elsewhere func(string, int64) ([]byte, error)) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	name = rebase(r.top, name)
	top, err := documents.OpenRoot(r.top)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	for _, root := range []*os.Root{r.dir, r.common, top} {
		if below, err := filepath.Rel(at(root), name); err == nil && filepath.IsLocal(below) {
			return read(root, filepath.ToSlash(below), maxExcludes)
		}
	}
	return elsewhere(name, maxExcludes)
}

// usersExcludes is the core.excludesFile of the user and the system, else git's default.
func (r *repository) usersExcludes(ctx context.Context) string {
	if out, err := r.settings(ctx, nil, "--includes", "--type=path", "--null", "--get", "core.excludesFile"); err == nil {
		return strings.TrimSuffix(string(out), "\x00")
	}
	dir := r.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := r.getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "git", "ignore")
}

func (r *repository) getenv(name string) string {
	for _, kv := range slices.Backward(r.environ) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// prefix is a folder from the top of the work tree on, "." for the top itself.
func (r *repository) prefix(folder string) string {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "."
	}
	prefix, err := filepath.Rel(r.top, folder)
	if err != nil {
		return "."
	}
	return filepath.ToSlash(prefix)
}

// below turns patterns that hold at the top of a work tree into those that hold in a
// folder of it. What ignores the folder itself is left out: somebody works there.
func below(text []byte, prefix string) []byte {
	if prefix == "." {
		return text
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		pattern := strings.TrimRight(string(line), "\r\n")
		not := strings.HasPrefix(pattern, "!")
		pattern = strings.TrimPrefix(pattern, "!")
		if strings.Contains(strings.TrimSuffix(pattern, "/"), "/") { // it begins at the top
			parts, ok := strings.Split(strings.TrimPrefix(pattern, "/"), "/"), true
			for _, name := range strings.Split(prefix, "/") {
				if parts[0] == "**" {
					break
				}
				match, err := path.Match(parts[0], name)
				if ok = err == nil && match && len(parts) > 1 && parts[1] != ""; !ok {
					break
				}
				parts = parts[1:]
			}
			if !ok {
				continue
			}
			pattern = "/" + strings.Join(parts, "/")
		}
		if not {
			pattern = "!" + pattern
		}
		out.WriteString(pattern + "\n")
	}
	return out.Bytes()
}
