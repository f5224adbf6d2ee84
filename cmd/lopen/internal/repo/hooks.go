package repo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/writer/documents"
)

// The bounds of what is compared of hooks.
const (
	maxHookFiles = 5000
	maxHookBytes = 64 << 20
)

// usual are the hooks that commits and the making of work trees run.
var usual = []string{"post-checkout", "pre-commit", "prepare-commit-msg", "commit-msg", "reference-transaction", "post-commit", "post-index-change"}

// managers are the files at the top of a work tree by which managers of hooks are told what to run.
var managers = []string{"lefthook*", ".lefthook*", ".pre-commit-config.yaml", ".overcommit.yml", ".lintstagedrc*", "lint-staged.config.*", ".huskyrc*", "husky.config.*"}

// readHooks reads the folder of the hooks and, where git runs one of them, what managers of hooks are told. A
// folder in the work tree is husky's or a similar one: its scripts read the files beside it.
func (b *Begin) readHooks(ctx context.Context, r *Repository) error {
	dir, err := b.path(ctx, r, keyHooksPath, filepath.Join(r.Common, "hooks"))
	if err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	w := hookFiles{r: r, parts: b.parts}
	w.folder(dir, true, "*")
	for _, name := range usual {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
			b.hooks = append(b.hooks, name)
		}
	}
	if beside := filepath.Dir(dir); within(r.Top, dir) && !within(r.Common, dir) && beside != r.Top {
		w.folder(beside, false, "*")
	}
	if len(b.hooks) > 0 {
		w.folder(r.Top, false, managers...)
	}
	if w.over() {
		b.parts["hooks, which are too many to compare"] = rand.Text() // never what it was
	}
	return nil
}

// hookFiles reads files into the parts of a Begin.
type hookFiles struct {
	r     *Repository
	parts map[string]string
	files int
	bytes int64
}

func (w *hookFiles) over() bool { return w.files > maxHookFiles || w.bytes > maxHookBytes }

// folder reads the files in a folder whose names match one of the patterns and, if it is deep, what is in the
// folders there. Symlinks are followed, as git and a shell follow them; the bounds end a loop of them.
func (w *hookFiles) folder(dir string, deep bool, patterns ...string) {
	docs, err := documents.Open(dir)
	if err != nil {
		return // there git runs nothing
	}
	defer docs.Close()
	entries, err := fs.ReadDir(docs, ".")
	if err != nil {
		w.parts[w.r.nameOf(dir)] = err.Error()
	}
	for _, e := range entries {
		if !slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, e.Name()); return ok }) {
			continue
		}
		if w.files++; w.over() {
			return
		}
		name := filepath.Join(dir, e.Name())
		switch info, err := os.Stat(name); {
		case err == nil && !info.IsDir():
			w.file(name, info)
		case err == nil && deep:
			w.folder(name, true, "*")
		case err != nil:
			w.parts[w.r.nameOf(name)] = err.Error()
		}
	}
}

// file reads a file: its content and whether it can be executed.
func (w *hookFiles) file(name string, info fs.FileInfo) {
	if w.bytes += info.Size(); w.over() {
		return
	}
	data, err := documents.ReadFile(name, info.Size())
	if err != nil {
		w.parts[w.r.nameOf(name)] = err.Error()
		return
	}
	w.parts[w.r.nameOf(name)] = fmt.Sprintf("%t %x", info.Mode()&0o111 != 0, sha256.Sum256(data))
}

// nameOf is a path for people: below .git, or relative to the top of the work tree, where it is in one of them.
func (r *Repository) nameOf(name string) string {
	for _, folder := range []struct{ path, name string }{{r.Common, git.Mark}, {r.Top, ""}} {
		if rel, err := filepath.Rel(folder.path, name); err == nil && filepath.IsLocal(rel) {
			return path.Join(folder.name, filepath.ToSlash(rel))
		}
	}
	return name
}

// within reports whether a path is in a folder, or is it.
func within(folder, name string) bool {
	rel, err := filepath.Rel(folder, name)
	return err == nil && filepath.IsLocal(rel)
}
