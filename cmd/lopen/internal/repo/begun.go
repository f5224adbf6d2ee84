package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
)

// From returns the repository as one on which git runs what it ran at a Begin. As long as that is what it would
// run now, git is started as the person starts it. Else it runs without hooks, on the configuration and the
// attributes of the Begin, and changed, which is optional, gets the names of what is another one. A nil Begin
// is that of each moment.
func (r *Repository) From(b *Begin, changed func(names []string)) *Repository {
	from := *r
	from.begin, from.changed, from.hangs = b, changed, &atomic.Bool{}
	return &from
}

// Changed returns the names of what is not as it was at the Begin of the repository.
func (r *Repository) Changed(ctx context.Context) []string {
	if r.begin == nil {
		return nil
	}
	if r.hangs.Load() { // a named pipe among the files of its configuration, which held it before
		return []string{"what git says of the repository: nothing"}
	}
	now, err := r.Begin(ctx)
	r.hangs.Store(errors.Is(err, context.DeadlineExceeded))
	if err != nil {
		return []string{"what git says of the repository: " + err.Error()}
	}
	return r.begin.differing(now)
}

// held returns the repository as git is to be started on it now, until release is called.
func (r *Repository) held(ctx context.Context) (_ *Repository, release func(), err error) {
	if r.begin == nil {
		return r, func() {}, nil
	}
	names := r.Changed(ctx)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return r.From(nil, nil), func() {}, nil
	}
	if r.changed != nil {
		r.changed(names)
	}
	dir, err := git.Scratch(r.getenv)
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the configuration of git: %w", err)
	}
	if err := r.furnish(dir.Path()); err != nil {
		dir.Close()
		return nil, nil, fmt.Errorf("make git's configuration of when the run began: %w", err)
	}
	held := r.From(nil, nil)
	held.frozen = true
	held.environ = slices.DeleteFunc(slices.Clone(r.environ), func(kv string) bool { return strings.HasPrefix(kv, "GIT_CONFIG") })
	held.environ = append(held.environ, "GIT_DIR="+r.Dir, "GIT_COMMON_DIR="+dir.Path(), "GIT_WORK_TREE="+r.Top,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_GLOBAL="+os.DevNull)
	return held, dir.Close, nil
}

// furnish makes of an empty folder the git directory that work trees share, with the configuration and the
// attributes of the Begin. The rest leads to the real one, as of a folder that git-new-workdir makes.
func (r *Repository) furnish(dir string) error {
	if err := link(r.Common, dir, "config", "config.worktree", "hooks", "info"); err != nil {
		return err
	}
	for _, name := range []string{"packed-refs", "shallow", "worktrees"} { // which another git may make at any time
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			continue
		}
		if err := os.Symlink(filepath.Join(r.Common, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	info := filepath.Join(dir, "info")
	if err := os.Mkdir(info, 0o700); err != nil {
		return err
	}
	if err := link(filepath.Join(r.Common, "info"), info, "attributes"); err != nil && !os.IsNotExist(err) {
		return err
	}
	users := filepath.Join(info, "users-attributes")
	for name, data := range map[string][]byte{
		filepath.Join(dir, "config"): r.begin.file(r.Common, users), filepath.Join(dir, infoAttributes): r.begin.attributes[infoAttributes], users: r.begin.attributes[keyAttributesFile],
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// link makes a symlink in a folder to each entry of another one but the ones that are left out.
func link(from, to string, without ...string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(without, e.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// file returns the configuration as one file, for the git directory common, with the file of the user's
// attributes. A git that tidies up would do so in a folder that goes at once.
func (b *Begin) file(common, attributes string) []byte {
	var text strings.Builder
	add := func(e entry) {
		section, rest, _ := strings.Cut(e.key, ".")
		name := rest
		if i := strings.LastIndexByte(rest, '.'); i >= 0 {
			section, name = fmt.Sprintf("%s \"%s\"", section, sectionQuoter.Replace(rest[:i])), rest[i+1:]
		}
		fmt.Fprintf(&text, "[%s]\n\t%s", section, name)
		if !e.bare {
			fmt.Fprintf(&text, " = \"%s\"", quoter.Replace(e.value))
		}
		text.WriteByte('\n')
	}
	add(entry{key: "lfs.storage", value: filepath.Join(common, "lfs")}) // Git LFS takes it for relative to the folder
	for _, e := range b.config {
		switch section, _, _ := strings.Cut(e.key, "."); {
		case section == "include", section == "includeif": // what they include is there
		case e.key == "core.bare", e.key == "core.worktree", e.key == "extensions.worktreeconfig":
		default:
			add(e)
		}
	}
	for key, value := range map[string]string{keyHooksPath: os.DevNull, keyAttributesFile: attributes, "core.fsmonitor": "false", "gc.auto": "0", "maintenance.auto": "false"} {
		add(entry{key: key, value: value})
	}
	return []byte(text.String())
}

// What git's configuration does not take as it is between quotation marks.
var (
	quoter        = strings.NewReplacer("\\", `\\`, "\"", `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)
	sectionQuoter = strings.NewReplacer("\\", `\\`, "\"", `\"`)
)
