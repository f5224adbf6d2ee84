package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
)

const (
	// maxListed bounds what git prints of an index, in bytes.
	maxListed = 512 << 20
	// racy is how young an index has to be for another change to leave it with the same times: it is asked again.
	racy = 2 * time.Second
)

// An index has the names that git's index had when git was asked last.
type index struct {
	mu         sync.Mutex
	info       fs.FileInfo     // Guarded by mu: of the index's file; nil if git has to be asked.
	path       string          // Guarded by mu.
	names      []byte          // Guarded by mu: nil if git was not asked with success yet.
	submodules map[string]bool // Guarded by mu: those of the names that are submodules.
}

// file returns the names that a repository's index has in a folder, or the last known ones if git cannot be
// asked. Git is started only if the index is another one than at the last call, and not again once it hung.
func (x *index) file(ctx context.Context, r *repository, folder string) (_ files.IgnoreFile, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	path, now := filepath.Join(at(r.dir), "index"), time.Now()
	info, err := r.dir.Lstat("index")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.info, x.names, x.submodules, err = nil, []byte{}, nil, nil
	case err != nil:
	case x.info == nil || x.path != path || !sameIndex(x.info, info):
		var names []byte
		var submodules map[string]bool
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if names, submodules, err = r.tracked(ctx, folder); err != nil {
			x.info = nil
			break
		}
		x.info, x.path, x.names, x.submodules = info, path, names, submodules
		if now.Sub(info.ModTime()) < racy {
			x.info = nil
		}
	}
	return files.IgnoreFile{Path: files.TrackedPath, Data: x.names}, err
}

func sameIndex(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (x *index) isSubmodule(path string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.submodules[path]
}

// tracked asks git for the names that its index has in a folder, and which of them are submodules.
func (r *repository) tracked(ctx context.Context, folder string) ([]byte, map[string]bool, error) {
	config, err := r.config(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !r.comparable(config) {
		return nil, nil, errors.New("git cannot read the index")
	}
	out, err := r.run(ctx, config, "", maxListed, "-C", folder, "ls-files", "-z", "--stage")
	if err != nil {
		return nil, nil, fmt.Errorf("git ls-files of %s: %w", folder, err)
	}
	if len(out) == maxListed {
		return nil, nil, fmt.Errorf("the index of %s has more than %d bytes", folder, maxListed)
	}
	var names []string
	submodules := map[string]bool{}
	for line := range bytes.SplitSeq(out, []byte{0}) {
		if stat, name, ok := bytes.Cut(line, []byte{'\t'}); ok { // mode, hash and stage
			names = append(names, string(name))
			if bytes.HasPrefix(stat, []byte("160000 ")) {
				submodules[string(name)] = true
			}
		}
	}
	data := files.TrackedNames(names)
	if len(data) > files.MaxTracked {
		return nil, nil, fmt.Errorf("the index of %s has names of %d bytes, more than %d", folder, len(data), files.MaxTracked)
	}
	return data, submodules, nil
}

// Tracked returns the paths, relative to a folder and at most a thousand of them, of the files that git tracks below a name in
// it: a checkout replaces them without a word. There are none where the folder is in no repository.
func Tracked(ctx context.Context, folder, name string, environ []string) ([]string, error) {
	r, err := find(ctx, folder, environ)
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	config, err := r.config(ctx)
	if err != nil {
		return nil, err
	}
	if !r.comparable(config) {
		return nil, errors.New("git cannot read the index")
	}
	out, err := r.run(ctx, config, "", maxListed, "-C", folder, "ls-files", "-z", "--", ":(literal)"+name)
	if err != nil {
		return nil, fmt.Errorf("git ls-files of %s: %w", filepath.Join(folder, name), err)
	}
	var paths []string
	for path := range bytes.SplitSeq(out, []byte{0}) {
		if len(path) > 0 && len(paths) < 1000 {
			paths = append(paths, string(path))
		}
	}
	return paths, nil
}
