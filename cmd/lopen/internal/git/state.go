package git

import (
	"context"
	"errors"
	"time"
)

// State is what a repository says of its work tree.
type State struct {
	Head   string // the commit, in full; "" before the first one
	Branch string // as git names it: without refs/heads/, or "(detached)"
	Dirty  bool   // something differs from the commit, or is untracked and not ignored
}

// LookPatience bounds a [Look].
const LookPatience = 5 * time.Second

// Look returns the state of the repository that a folder is in: the zero value without
// one, and where nothing is known of it. Dirty is false where git is not installed or did
// not succeed. environ is the environment that git runs in. The error is that of the
// context, or [context.DeadlineExceeded] where git did not answer within [LookPatience],
// or hung before: the state lacks Dirty then.
func Look(ctx context.Context, folder string, environ []string) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, LookPatience)
	defer cancel()
	r, s := head(ctx, folder, environ)
	if r == nil {
		return s, nil
	}
	defer r.close()
	config, err := r.config(ctx)
	if err == nil && r.comparable(config) {
		var out []byte
		out, err = r.run(ctx, config, s.Head, 1, "status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all")
		s.Dirty = len(out) > 0
	}
	if errors.Is(err, errHangs) {
		return s, err
	}
	return s, ctx.Err()
}

// Head is Look without Dirty: what files say.
func Head(ctx context.Context, folder string, environ []string) State {
	r, s := head(ctx, folder, environ)
	if r != nil {
		r.close()
	}
	return s
}

// head opens the repository that a folder is in, nil where its HEAD is not known.
func head(ctx context.Context, folder string, environ []string) (*repository, State) {
	r, err := find(ctx, folder, environ)
	if err != nil {
		return nil, State{}
	}
	commit, branch, ok := r.headOf()
	if !ok {
		r.close()
		return nil, State{}
	}
	return r, State{Head: commit, Branch: branch}
}
