package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// errNothing means that no task was completed in a transaction.
var errNothing = errors.New("nothing to commit: no task was completed in it")

// A conflictError is the error of a commit that main contradicts. It has changed nothing.
type conflictError struct {
	Transaction, Repository string
	Paths                   []string
}

func (e *conflictError) Error() string {
	names, more := slices.Clone(e.Paths), ""
	if n := len(names) - 5; n > 0 {
		names, more = names[:5], fmt.Sprintf(" and %d more", n)
	}
	for i := range names {
		names[i] = quoted(names[i])
	}
	return fmt.Sprintf(`commit transaction %s: main of the side-car has other changes of %s%s since: nothing was changed
  merge main into the branch with git, then commit again:
    git --git-dir=%s worktree add DIR %s && git -C DIR merge main
  or give it up: lopen transaction rollback %s`, e.Transaction, strings.Join(names, ", "), more, e.Repository, branchOf(e.Transaction), e.Transaction)
}

// Commit squashes the branch of a transaction into one commit on main, which has the session's
// ID in its message, and returns its ID. Changes of main since the begin stay; where they
// contradict, the error names the files. When Commit returns nil, all is durable; after an
// error main is as it was, unless the error says that only the manifest could not be written.
func (s *Store) Commit(ctx context.Context, t *Transaction, src Source, subject string) (string, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	merged, err := s.onMain(ctx)
	if err != nil {
		return "", err
	}
	if id := merged[t.ID]; id != "" { // and the manifest could not be written
		return id, s.committed(t, id)
	}
	if _, err := s.record(ctx, t, src); err != nil {
		return "", err
	}
	tip, err := s.tip(t)
	if err != nil {
		return "", err
	}
	all, err := s.commits(ctx, tip, t.Base)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", fmt.Errorf("commit transaction %s: %w; lopen transaction rollback %s ends it", t.ID, errNothing, t.ID)
	}
	if err := s.unlocked(mainRef); err != nil {
		return "", err
	}
	main, err := s.mainTip(ctx, t)
	if err != nil {
		return "", err
	}
	// Nothing may be missing of what main will name.
	if _, err := s.git(ctx, 0, nil, "rev-list", "--objects", "--quiet", tip, "^"+main.ID); err != nil {
		return "", s.failed(err)
	}
	id, err := s.squash(ctx, t, src.Chain, main, all, subject)
	if err != nil {
		return "", err
	}
	if err := s.setRef(mainRef, id); err != nil {
		return "", err
	}
	return id, s.committed(t, id)
}

// committed notes in the manifest what main has already.
func (s *Store) committed(t *Transaction, id string) error {
	t.State, t.Ended, t.Commit = Committed, s.opts.Now().UTC(), id
	if err := s.save(t); err != nil {
		return fmt.Errorf("transaction %s is committed, and its manifest does not say so: %w", t.ID, err)
	}
	return nil
}

// mainTip returns the newest commit of main.
func (s *Store) mainTip(ctx context.Context, t *Transaction) (*Commit, error) {
	id, err := s.ref(mainRef)
	if err == nil && id == "" {
		err = &writer.Error{Op: "commit transaction", Path: s.repo.Name(), Class: writer.ClassCorrupt,
			Err: fmt.Errorf("the branch main is missing; lopen transaction commit %s --remake makes it again from the checkpoints", t.ID)}
	}
	if err != nil {
		return nil, err
	}
	return s.commit(ctx, id)
}

// squash writes the commit for main. all are the commits of the branch, the newest first.
func (s *Store) squash(ctx context.Context, t *Transaction, chain *checkpoint.Store, main *Commit, all []Commit, subject string) (string, error) {
	base, err := s.commit(ctx, t.Base)
	if err != nil {
		return "", err
	}
	tree, err := s.merge(ctx, t, main, base, &all[0])
	if err != nil {
		return "", err
	}
	var list []string
	for _, c := range slices.Backward(all) {
		list = append(list, c.Subject)
	}
	var as *checkpoint.Entry
	if tree == all[0].tree && all[0].root != (blob.Hash{}) {
		as = &checkpoint.Entry{ID: all[0].Checkpoint, Root: all[0].root}
	}
	message := t.message(squashed+t.ID+": "+subject, list, as, all[0].Record)
	return s.write(ctx, chain, draft{parent: main, tree: tree, at: s.opts.Now(), message: message})
}

// merge returns the tree that main gets: that of the branch if main is as it was at the begin,
// or if a person merged it into the branch, else that of a merge of the two from the begin.
func (s *Store) merge(ctx context.Context, t *Transaction, main, base, tip *Commit) (string, error) {
	if main.tree == base.tree {
		return tip.tree, nil
	}
	moved, err := s.lacks(ctx, base, main)
	if err != nil {
		return "", err
	}
	ahead, err := s.lacks(ctx, tip, main)
	if err != nil || moved && !ahead {
		return tip.tree, err
	}
	// A commit with main's tree on top of the begin: git takes the begin as what both come from.
	ours, err := s.git(ctx, 0, func(io.Writer) error { return nil }, "commit-tree", main.tree, "-p", base.ID)
	if err != nil {
		return "", s.failed(err)
	}
	out, err := s.git(ctx, 0, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", strings.TrimSpace(string(ours)), tip.ID)
	parts := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	var g *gitError
	switch {
	case errors.As(err, &g) && g.exit() == 1:
		return "", &conflictError{t.ID, s.repo.Name(), parts[1:]}
	case err != nil:
		return "", s.failed(err)
	}
	return parts[0], s.syncObjects()
}

// lacks reports whether a commit has another one neither as itself nor before it.
func (s *Store) lacks(ctx context.Context, c, other *Commit) (bool, error) {
	out, err := s.git(ctx, 0, nil, "rev-list", "--max-count=1", other.ID, "^"+c.ID)
	if err != nil {
		return false, s.failed(err)
	}
	return len(out) > 0, nil
}

// syncObjects makes the names of loose objects durable; git syncs their contents alone.
func (s *Store) syncObjects() error {
	folders, err := s.repo.ReadDir("objects")
	for _, f := range folders {
		if err == nil {
			err = s.repo.SyncDir("objects/" + f.Name())
		}
	}
	if err == nil {
		err = s.repo.SyncDir("objects")
	}
	return err
}
