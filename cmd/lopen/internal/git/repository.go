package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/writer/documents"
)

// ErrNone says that a folder is in no git repository, or in one that is not believed.
var ErrNone = errors.New("no git repository")

// Mark is the name of what makes a folder the top of a work tree.
const Mark = ".git"

// The sizes from which on a file is not read.
const (
	maxLine   = 8 << 10 // .git, HEAD, a reference, commondir, gitdir
	maxConfig = 1 << 20 // config, info/exclude, info/attributes
	maxPacked = 1 << 30 // packed-refs, which is read line by line
	maxIndex  = 1 << 30 // which git maps into memory
)

// repository is a work tree and its git directories. dir holds HEAD and index, common
// objects, references and config; they differ in a linked work tree only.
type repository struct {
	top         string
	dir, common *os.Root
	environ     []string
}

func (r *repository) close() {
	_ = r.dir.Close()
	_ = r.common.Close()
}

// find opens the repository of the nearest .git from folder upwards.
func find(ctx context.Context, folder string, environ []string) (*repository, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	above, err := os.Stat(folder)
	if err != nil {
		return nil, err
	}
	for top := folder; ; top = filepath.Dir(top) {
		info, err := os.Lstat(filepath.Join(top, Mark))
		switch {
		case err == nil:
			return open(ctx, top, info, above, environ)
		case top == filepath.Dir(top):
			return nil, ErrNone
		}
	}
}

// open opens the repository whose .git in top is info.
func open(ctx context.Context, top string, info, above fs.FileInfo, environ []string) (_ *repository, err error) {
	r := &repository{top: top, environ: environ}
	path := filepath.Join(top, Mark)
	switch {
	case info.IsDir():
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is neither a folder nor a file: %w", path, ErrNone)
	default:
		if path, err = named(top); err != nil {
			return nil, err
		}
	}
	if r.dir, err = openFolder(path, above); err != nil {
		return nil, err
	}
	r.common = r.dir
	if info.IsDir() {
		return r, nil
	}
	common, linked := commonOf(r.dir, info)
	switch {
	case linked:
		if r.common, err = openFolder(common, above); err != nil {
			_ = r.dir.Close()
			return nil, err
		}
	case !r.submoduleOf(ctx):
		_ = r.dir.Close()
		return nil, fmt.Errorf("%s names %s, which does not point back: %w", filepath.Join(top, Mark), path, ErrNone)
	}
	return r, nil
}

// named returns the folder that the .git file of a work tree names.
func named(top string) (string, error) {
	root, err := documents.OpenRoot(top)
	if err != nil {
		return "", err
	}
	defer root.Close()
	line, err := readLine(root, Mark)
	path, ok := strings.CutPrefix(line, "gitdir: ")
	if err == nil && (!ok || path == "") {
		err = fmt.Errorf("%s names no folder: %w", filepath.Join(top, Mark), ErrNone)
	}
	return rebase(top, path), err
}

// commonOf returns the git directory that a linked work tree's belongs to. The pair has
// to be as git makes it, dir being COMMON/worktrees/NAME, and dir to point back
// to the work tree's .git, which is what mark describes.
func commonOf(dir *os.Root, mark fs.FileInfo) (string, bool) {
	line, err := readLine(dir, "commondir")
	if err != nil {
		return "", false
	}
	common := rebase(at(dir), line)
	back, err := readLine(dir, "gitdir")
	if err != nil || filepath.Base(filepath.Dir(at(dir))) != "worktrees" || !Same(filepath.Dir(filepath.Dir(at(dir))), common) {
		return "", false
	}
	info, err := os.Lstat(rebase(at(dir), back))
	return common, err == nil && os.SameFile(info, mark)
}

// submoduleOf says whether the git directory names the work tree as its own.
func (r *repository) submoduleOf(ctx context.Context) bool {
	config, err := r.config(ctx)
	if err != nil {
		return false
	}
	tree, ok := config["core.worktree"]
	return ok && Same(rebase(at(r.dir), tree), r.top)
}

// MainWorkTree returns the top of the main work tree of the repository that top, which
// holds a .git, is a linked work tree of. The boolean is false where top is none, where
// the main one is bare, and where the two do not name each other. Both git directories
// belong to this user.
func MainWorkTree(top string) (string, bool) {
	info, err := os.Lstat(filepath.Join(top, Mark))
	if err != nil || !info.Mode().IsRegular() || owner.Foreign(info) {
		return "", false
	}
	path, err := named(top)
	if err != nil {
		return "", false
	}
	dir, err := openFolder(path, info)
	if err != nil {
		return "", false
	}
	defer dir.Close()
	common, linked := commonOf(dir, info)
	if !linked || filepath.Base(common) != Mark {
		return "", false
	}
	main, err := os.Lstat(common)
	return filepath.Dir(common), err == nil && main.IsDir() && !owner.Foreign(main)
}

// openFolder opens a git directory: a folder, no symlink, that belongs to this user or
// to the owner of above.
func openFolder(path string, above fs.FileInfo) (*os.Root, error) {
	want, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !want.IsDir() {
		return nil, fmt.Errorf("%s is not a folder: %w", path, ErrNone)
	}
	if owner.Foreign(want) && !owner.Same(want, above) {
		return nil, fmt.Errorf("%s belongs to another user: %w", path, ErrNone)
	}
	root, err := documents.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if have, err := root.Stat("."); err != nil || !os.SameFile(want, have) {
		_ = root.Close()
		return nil, fmt.Errorf("%s was replaced meanwhile: %w", path, ErrNone)
	}
	return root, nil
}

// at is the path that a folder was opened at.
func at(root *os.Root) string { return filepath.Clean(root.Name()) }

// rebase is path, from dir where it is relative.
func rebase(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// Same says whether two paths lead to one file or folder.
func Same(a, b string) bool {
	ai, aerr := os.Stat(a)
	bi, berr := os.Stat(b)
	return aerr == nil && berr == nil && os.SameFile(ai, bi)
}

// readLine reads a file of one line.
func readLine(root *os.Root, name string) (string, error) {
	data, err := read(root, name, maxLine)
	return strings.TrimRight(string(data), "\r\n"), err
}

// read reads a regular file that is at most limit bytes long. No symlink leads out of
// root, and nothing is waited for.
func read(root *os.Root, name string, limit int64) ([]byte, error) {
	return documents.Read(documents.Of(root), name, limit)
}
