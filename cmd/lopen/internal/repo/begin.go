package repo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/writer/documents"
)

// A Begin is what git runs for a repository and in whose name it commits, as that was when a run began: the
// configuration of all files, the attributes outside of the work tree, and the hooks with what they read. It is
// immutable.
type Begin struct {
	config     []entry           // in git's order: of several values of a key the last one counts
	attributes map[string][]byte // what info/attributes and core.attributesFile hold
	parts      map[string]string // of each key of the configuration and each file, by its name for people: what it is
	later      map[string]string // files that are not there and may come; see In
	hooks      []string          // those that git runs of [usual]
}

// An entry is a value of the configuration.
type entry struct {
	key, value string
	bare       bool // the key has no value
}

// inConfig begins the name of a key of the configuration.
const inConfig = "config "

// The keys that a Begin looks at itself, as git prints them.
const (
	keyHooksPath      = "core.hookspath"
	keyAttributesFile = "core.attributesfile"
	infoAttributes    = "info/attributes"
)

// maxAttributes bounds a file of attributes, in bytes.
const maxAttributes = 1 << 20

// beginPatience bounds how long git is asked for what it runs.
const beginPatience = 10 * time.Second

// Begin reads what git runs for the repository now.
func (r *Repository) Begin(ctx context.Context) (*Begin, error) {
	ctx, cancel := context.WithTimeout(ctx, beginPatience)
	defer cancel()
	now := r.From(nil, nil)
	at, err := Open(ctx, now.folder, now.environ)
	if err != nil {
		return nil, err
	}
	if at.Dir != now.Dir || at.Common != now.Common {
		return nil, fmt.Errorf("the repository of %s is %s, and was %s", now.folder, at.Dir, now.Dir)
	}
	out, err := now.Git(ctx, Command{Args: []string{"config", "--includes", "--null", "--list"}})
	if err != nil {
		return nil, err
	}
	b := &Begin{attributes: map[string][]byte{}, parts: map[string]string{}}
	for text := range strings.SplitAfterSeq(string(out), "\x00") {
		key, value, ok := strings.Cut(strings.TrimSuffix(text, "\x00"), "\n")
		if key == "" {
			continue
		}
		b.config = append(b.config, entry{key, value, !ok})
		if !harmless(key) {
			b.parts[inConfig+key] += fmt.Sprintf("%t %s\x00", ok, value)
		}
	}
	if err := b.readAttributes(ctx, now); err != nil {
		return nil, err
	}
	return b, b.readHooks(ctx, now)
}

// harmless says of a key of the configuration that it runs nothing when git commits or makes a work tree, and that git,
// Git LFS, gh, or an agent at its usual work sets it.
func harmless(key string) bool {
	section, _, _ := strings.Cut(key, ".")
	switch name := key[strings.LastIndexByte(key, '.')+1:]; section {
	case "branch", "pull", "advice", "color":
		return true
	case "remote":
		return slices.Contains([]string{"url", "pushurl", "fetch", "tagopt", "prune", "gh-resolved"}, name)
	case "submodule":
		return name == "url" || name == "active"
	case "lfs":
		return name == "access" || key == "lfs.repositoryformatversion"
	default:
		return slices.Contains([]string{"core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse", "extensions.worktreeconfig"}, key)
	}
}

// Sum is the same for two Begins where git runs the same for both.
func (b *Begin) Sum() string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(b.parts)) {
		fmt.Fprintf(sum, "%q %q\n", name, b.parts[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// path returns the path that a key of the configuration names, by default other.
func (b *Begin) path(ctx context.Context, r *Repository, key, other string) (string, error) {
	if !slices.ContainsFunc(b.config, func(e entry) bool { return e.key == key }) {
		return other, nil
	}
	out, err := r.Git(ctx, Command{Args: []string{"config", "--includes", "--type=path", "--null", "--get", key}})
	name := filepath.FromSlash(strings.TrimSuffix(string(out), "\x00"))
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.Top, name)
	}
	return name, err
}

// readAttributes reads the attributes that the work tree does not hold itself, in .gitattributes.
func (b *Begin) readAttributes(ctx context.Context, r *Repository) error {
	config := cmp.Or(r.getenv("XDG_CONFIG_HOME"), filepath.Join(r.getenv("HOME"), ".config"))
	users, err := b.path(ctx, r, keyAttributesFile, filepath.Join(config, "git", "attributes"))
	for key, name := range map[string]string{infoAttributes: filepath.Join(r.Common, infoAttributes), keyAttributesFile: users} {
		data, err := documents.ReadFile(name, maxAttributes)
		switch {
		case err == nil:
			b.attributes[key], b.parts[r.nameOf(name)] = data, string(data)
		case !errors.Is(err, fs.ErrNotExist):
			b.parts[r.nameOf(name)] = err.Error()
		}
	}
	return err
}

// Hooks returns the names of the hooks that commits and the making of work trees run, in the order in which
// git runs them.
func (b *Begin) Hooks() []string { return b.hooks }

// In returns the Begin of a run in a linked work tree, of which b is the Begin, where home is that of the main
// one. A hook that only home has may come, as when a package manager installs it. Of a work tree that is
// fresh, the hooks in it have to be those of home, which else is the Begin: they may be an agent's commit.
func (b *Begin) In(home *Begin, fresh bool) *Begin {
	joined := *b
	joined.later = map[string]string{}
	for name, is := range home.parts {
		if _, ok := b.parts[name]; !ok && !strings.HasPrefix(name, inConfig) {
			joined.later[name] = is
		}
	}
	for name, is := range b.parts {
		if fresh && inTree(name) && home.parts[name] != is {
			return home
		}
	}
	return &joined
}

// inTree says of the name of a part that it is a file in the work tree.
func inTree(name string) bool {
	return !strings.HasPrefix(name, inConfig) && !strings.HasPrefix(name, git.Mark+"/") && !filepath.IsAbs(name)
}

// differing returns the names of what is another one now: first keys of the configuration, then files. Where
// another folder has the hooks, the files of the old one are not named.
func (b *Begin) differing(now *Begin) (names []string) {
	moved := b.parts[inConfig+keyHooksPath] != now.parts[inConfig+keyHooksPath]
	for name, is := range now.parts {
		if is != b.parts[name] && is != b.later[name] {
			names = append(names, name)
		}
	}
	for name := range b.parts {
		if _, ok := now.parts[name]; !ok && (!moved || strings.HasPrefix(name, inConfig)) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if key := strings.HasPrefix(a, inConfig); key != strings.HasPrefix(b, inConfig) {
			if key {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return names
}
