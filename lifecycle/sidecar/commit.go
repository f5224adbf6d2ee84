package sidecar

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/plain"
)

// errNothing means that no task was completed in a transaction.
var errNothing = errors.New("nothing to commit: no task was completed in it")

// conflict is the error of a commit that main contradicts.
func conflict(id string, paths []string) error {
	names, more := slices.Clone(paths), ""
	if n := len(names) - 5; n > 0 {
		names, more = names[:5], fmt.Sprintf(" and %d more", n)
	}
	for i := range names {
		names[i] = quoted(names[i])
	}
	return fmt.Errorf("commit transaction %[1]s: main of the side-car has other changes of %[2]s%[3]s since: nothing was changed\n"+
		"  give main all files as the transaction has them: lopen transaction commit %[4]s --force\n"+
		"  or give it up:                                   lopen transaction rollback %[4]s", id, strings.Join(names, ", "), more, plain.Quote(id))
}

// Commit squashes the branch of a transaction into one commit on main, which has the session's
// ID in its message, and returns its ID. Changes of main since the begin stay; where they
// contradict, the error names the files, or main gets all files of the branch by force. When
// Commit returns nil, all is durable; after an error main is as it was, unless the error says
// that only the manifest could not be written.
func (s *Store) Commit(ctx context.Context, t *Transaction, src Source, subject string, force bool) (string, error) {
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
	if err := s.record(ctx, t, src); err != nil {
		return "", err
	}
	all, err := s.Log(ctx, t)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", fmt.Errorf("commit transaction %s: %w; lopen transaction rollback %s ends it", t.ID, errNothing, plain.Quote(t.ID))
	}
	tip, err := s.ref(mainRef)
	if err == nil && tip == "" {
		err = damaged(s.repo, mainRef, "the branch is missing; lopen transaction commit "+plain.Quote(t.ID)+" --remake makes it again from the checkpoints")
	}
	if err != nil {
		return "", err
	}
	// Nothing may be missing of what main will name.
	if _, err := s.git(ctx, "rev-list", "--objects", "--quiet", all[0].ID, "^"+tip); err != nil {
		return "", err
	}
	id, err := s.squash(ctx, t, src.Chain, tip, all, subject, force)
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

// squash writes the commit for main. all are the commits of the branch, the newest first.
func (s *Store) squash(ctx context.Context, t *Transaction, chain *checkpoint.Store, tip string, all []Commit, subject string, force bool) (string, error) {
	main, err := s.commit(ctx, tip)
	if err != nil {
		return "", err
	}
	base, err := s.commit(ctx, t.Base)
	if err != nil {
		return "", err
	}
	tree := all[0].tree
	if main.tree != base.tree && !force {
		if tree, err = s.merge(ctx, chain, t.ID, main, base, all[0].ID); err != nil {
			return "", err
		}
	}
	var list []string
	for _, c := range slices.Backward(all) {
		list = append(list, c.Subject)
	}
	var as *checkpoint.Entry
	if tree == all[0].tree && all[0].root != (blob.Hash{}) {
		as = &checkpoint.Entry{ID: all[0].Checkpoint, Root: all[0].root}
	}
	return s.write(ctx, chain, draft{parent: main, tree: tree, at: s.opts.Now(), message: t.message(squashed+t.ID+": "+subject, list, as, all[0].Record)})
}

// merge returns the tree of a merge of main and a branch from the commit that the branch begins
// at. Git takes that for what both come from, since main's tree gets a commit on top of it.
func (s *Store) merge(ctx context.Context, chain *checkpoint.Store, id string, main, base *Commit, tip string) (string, error) {
	ours, err := s.write(ctx, chain, draft{parent: base, tree: main.tree, at: main.At})
	if err != nil {
		return "", err
	}
	out, err := s.add(ctx, 0, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, tip)
	tree, paths, _ := strings.Cut(strings.TrimRight(string(out), "\x00"), "\x00")
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 && paths != "" {
		return "", conflict(id, strings.Split(paths, "\x00"))
	}
	if err != nil {
		return "", err
	}
	return s.oid("merge-tree", []byte(tree))
}
