package repo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
)

// openPatience is the time limit of finding a repository.
const openPatience = 10 * time.Second

// ErrNone means that a folder is in no work tree of a repository that git accepts, or that
// there is no git.
var ErrNone = errors.New("no git repository can be used")

// A Repository is the work tree that a folder is in, with its git directories.
type Repository struct {
	Top    string // of the work tree
	Dir    string // git directory of this work tree, which has its HEAD and index
	Common string // git directory that all work trees share: Dir, except in a linked work tree
	// Prefix is the path of the folder that was opened, relative to Top, with slashes and
	// one at its end. It is "" for Top.
	Prefix string

	folder  string
	environ []string

	begin   *Begin               // nil is that of each moment
	changed func(names []string) // optional; see From
	hangs   *atomic.Bool         // git did not say in time what it runs, and is not asked again
	frozen  bool                 // environ is that of a Begin which is not that of this moment
}

// Open returns the repository whose work tree a folder is in, as git finds it. environ is the
// person's environment. An error that wraps ErrNone says what to do.
func Open(ctx context.Context, folder string, environ []string) (*Repository, error) {
	r := &Repository{folder: folder, environ: environment(environ)}
	out, err := r.Git(ctx, Command{Args: []string{"rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-prefix"}, Limit: openPatience})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, child.ErrNotStarted):
		return nil, fmt.Errorf("%w: %w; install git", ErrNone, err)
	case err != nil:
		return nil, fmt.Errorf("%w in %s: %w", ErrNone, folder, err)
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) != 5 || lines[0] == "" {
		return nil, fmt.Errorf("%w in %s: it has no work tree, or a line break in its path: git says %q", ErrNone, folder, out)
	}
	r.Top, r.Dir, r.Common, r.Prefix = filepath.FromSlash(lines[0]), filepath.FromSlash(lines[1]), filepath.FromSlash(lines[2]), lines[3]
	if !filepath.IsAbs(r.Common) {
		r.Common = filepath.Join(folder, r.Common)
	}
	if target, err := filepath.EvalSymlinks(r.Common); err == nil {
		r.Common = target
	}
	return r, nil
}
