package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// maxVersions bounds the checkpoints in which a file's content is looked for, the newest first.
const maxVersions = 100

// Files are the project's files as a session's newest checkpoint has them, and what bringing them here
// would change.
type Files struct {
	Plan   *checkpoint.Plan
	Target *checkpoint.Entry
	Git    checkpoint.Git // of the project's folder now

	cps *lifecycle.Checkpoints
}

// LookAtFiles compares the files of the work tree in which a session works with its newest
// checkpoint. It returns nil if the session has none. Nothing is overwritten or deleted that a
// person may have made: with clean, what the repository has as it is; else only what some checkpoint
// here has at its place, which is what a session left there. Plan.Retained names the rest. Close it
// after use.
func LookAtFiles(ctx context.Context, store *lifecycle.Store, id session.ID, clean bool, git checkpoint.Git) (*Files, error) {
	at, st, err := markOf(store, id)
	if err != nil || at.Checkpoint == "" {
		return nil, err
	}
	f := &Files{Git: git}
	if f.cps, err = store.Checkpoints(st.Header().Worktree); err != nil {
		return nil, err
	}
	if f.cps.Gone != nil {
		return nil, errors.Join(f.cps.Gone, f.Close())
	}
	if f.Target, err = f.cps.Lookup(at.Checkpoint); errors.Is(err, checkpoint.ErrNotFound) {
		f.Target, err = f.cps.FindOther(at.Checkpoint)
	}
	if err == nil && (f.Target == nil || f.Target.Removed != "") {
		return nil, f.Close()
	}
	if err == nil {
		err = f.plan(ctx, id, clean)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compare the files with session %s: %w", id, err), f.Close())
	}
	return f, nil
}

// markOf reads a session's Mark and State.
func markOf(store *lifecycle.Store, id session.ID) (at session.Mark, st *session.State, err error) {
	root, err := writer.OpenFS(store.Path())
	if err != nil {
		return at, nil, err
	}
	defer root.Close()
	dir, err := writer.OpenDir(root, folder.Path(id))
	if err != nil {
		return at, nil, err
	}
	defer dir.Close()
	ld, err := folder.Load(dir, id)
	if err != nil {
		return at, nil, err
	}
	return ld.At, ld.State, nil
}

func (f *Files) plan(ctx context.Context, id session.ID, clean bool) error {
	now, tree, err := f.cps.Look(ctx, checkpoint.Meta{Session: id.String(), Reason: checkpoint.Manual, Git: f.Git})
	if err != nil {
		return err
	}
	seen, err := f.versions()
	if err != nil {
		return err
	}
	f.Plan, err = f.cps.Plan(ctx, f.Target, now, tree, 0, checkpoint.RewindOptions{Take: func(path string, now, _ *files.Fingerprint) (checkpoint.Why, error) {
		if clean || now == nil || now.Mode.IsDir() {
			return "", nil
		}
		for _, t := range seen {
			if was, _, err := t.Find(path); err == nil && was != nil && was.Hash == now.Hash && was.Mode.Type() == now.Mode.Type() {
				return "", nil
			}
		}
		return checkpoint.Unsaved, nil
	}})
	return err
}

// versions returns the trees of the newest checkpoints here.
func (f *Files) versions() (all []*checkpoint.Tree, err error) {
	chains, err := f.cps.Others()
	if err != nil {
		return nil, err
	}
	for _, c := range append(chains, f.cps.Store) {
		entries, _, err := c.List()
		if err != nil {
			return nil, err
		}
		for i := len(entries) - 1; i >= 0 && len(all) < maxVersions; i-- {
			if entries[i].Removed == "" {
				all = append(all, c.Tree(entries[i].Root))
			}
		}
	}
	return all, nil
}

// Moved reports whether the repository here is at another commit than it was at the checkpoint.
func (f *Files) Moved() bool { return f.Target.Git.Head != f.Git.Head }

// Bring makes the changes of the Plan, durably. What was changed since the Plan was made stays. It may be
// called again after a crash, with a new Plan.
func (f *Files) Bring(ctx context.Context) (checkpoint.Applied, error) {
	return f.cps.Apply(ctx, f.Plan)
}

// Close closes the folders.
func (f *Files) Close() error { return f.cps.Close() }
