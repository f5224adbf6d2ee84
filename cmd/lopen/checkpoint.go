package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/plan"
)

func newCheckpoint(a *app) *cobra.Command {
	return group("checkpoint", "Keep the project's files, compare them, bring them back",
		newCheckpointCreate(a), newCheckpointList(a), newCheckpointShow(a), newCheckpointCat(a), newCheckpointDiff(a),
		newCheckpointRewind(a), newCheckpointRestore(a), newCheckpointPin(a, true), newCheckpointPin(a, false))
}

// editSession opens a session for a command that changes it. A rewind that was begun
// is finished first; with permitted as far as the system allows.
func (a *app) editSession(ctx context.Context, name string, permitted bool, fn func(*lifecycle.Store, *lifecycle.Session) error) error {
	_, values, err := a.here()
	if err != nil {
		return err
	}
	policy, err := storePolicy(values)
	if err != nil {
		return err
	}
	policy.RewindPermitted = permitted
	return a.editStoreWith(policy, func(store *lifecycle.Store) error {
		id, err := store.Resolve(name)
		if err != nil {
			return err
		}
		var sess *lifecycle.Session
		if err := afterHook(ctx, func() (err error) { sess, err = a.openSession(store, id); return err }); err != nil {
			return err
		}
		if o, oerr := store.Orphan(id); oerr == nil && o != nil && o.Alive {
			err := &loop.Exit{Code: loop.ExitBusy, Reason: fmt.Sprintf("a command of an earlier run still works on the files (%s): %s", o, repair.HowToEnd(o, id))}
			return errors.Join(err, sess.Close(ctx))
		}
		err = fn(store, sess)
		return errors.Join(err, sess.Close(ctx))
	})
}

// warnUnrecorded names what a checkpoint could not record.
func (a *app) warnUnrecorded(store *lifecycle.Store, e *checkpoint.Entry) error {
	cps, err := store.Checkpoints(nil)
	if err != nil {
		return err
	}
	defer cps.Close()
	skipped, err := cps.Tree(e.Root).Skipped()
	a.warnSkipped(skipped)
	return err
}

// checkpointRow is a checkpoint as --json prints it.
type checkpointRow struct {
	ID checkpoint.ID `json:"id"`
	*checkpoint.Entry
	Pinned bool `json:"pinned"`
	// Failed says that it has the tree of a failed task and stays until its session is pruned.
	Failed    bool `json:"failed,omitempty"`
	Contested bool `json:"contested"`
	// Line says that it is on the session's line: its own, or of the one that it comes from.
	Line bool `json:"line"`
	// Imported says that it is of another project's files: the name of its chain. Worktree is
	// that of a checkpoint of another work tree than the session's.
	Imported string          `json:"imported,omitempty"`
	Worktree string          `json:"worktree,omitempty"`
	Entries  []checkpointEnt `json:"entries,omitempty"`
}

type checkpointEnt struct {
	Path   string `json:"path"`
	Mode   string `json:"mode"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
	Target string `json:"target,omitempty"`
}

func (c *chain) row(e *checkpoint.Entry) checkpointRow {
	row := checkpointRow{ID: e.ID, Entry: e, Pinned: e.Pinned, Contested: e.Contested(), Line: c.line[e.ID]}
	if from := c.origin[e.ID]; from != nil {
		if row.Worktree = from.Name(); from.Imported() {
			row.Worktree, row.Imported = "", row.Worktree
		}
	}
	return row
}

// chain is the checkpoints of a session's work tree for a command that looks at them, and which of
// them are on the line of the session: its own, and those of the session that it comes from up
// to there.
type chain struct {
	*lifecycle.Checkpoints
	folder string                              // of the work tree
	all    []*checkpoint.Entry                 // those that were removed left out; the oldest first
	others []*checkpoint.Entry                 // those of other work trees and projects that are not among all
	origin map[checkpoint.ID]*checkpoint.Store // the chains of the others
	line   map[checkpoint.ID]bool              // nil where there is no session
	log    sessionLog                          // of the session; nil where there is none
	plan   *plan.Plan                          // of the session's module; nil where there is none
	made   session.Origin                      // of the session
	// removed and othersRemoved were removed from all and others.
	removed, othersRemoved []*checkpoint.Entry
}

// readCheckpoints opens the project's checkpoints, with the line of a session, for a command
// that only reads. Lines of the chain that cannot be read are warnings, and so is a
// session that cannot be: its checkpoints are the project's. Without any session fn gets no ID.
func (a *app) readCheckpoints(name string, fn func(store *lifecycle.Store, id session.ID, cps *chain) error) error {
	return a.readStore(func(store *lifecycle.Store) error {
		id, err := store.Resolve(name)
		if name == "" && errors.Is(err, lifecycle.ErrNotFound) {
			if cps, cerr := a.chain(store, nil); cerr == nil {
				return errors.Join(damagedData(fn(store, id, cps)), cps.Close())
			}
		}
		if err != nil {
			return err
		}
		var tree *session.Worktree
		var made session.Origin
		if st, _, _ := store.Read(id); st != nil { // of one that cannot be read the project's are shown
			tree, made = st.Header().Worktree, st.Header().Origin
		}
		log := sessionLog(func(fn func(record.Record) error) error { return store.Log(id, 0, fn) })
		cps, err := a.chain(store, tree)
		if err != nil {
			return log.allGone(err)
		}
		cps.log = log
		cps.plan, cps.made = lastPlan(store, id.Module), made
		if cps.line, err = store.CheckpointLine(cps.Checkpoints, id); err != nil {
			fmt.Fprintf(a.stderr, "warning: which checkpoints session %s goes on from is not known: %v\n", id, err)
		}
		return errors.Join(damagedData(fn(store, id, cps)), cps.Close())
	})
}

// chain opens the checkpoints of a work tree without a session's line.
func (a *app) chain(store *lifecycle.Store, tree *session.Worktree) (*chain, error) {
	cps, err := store.Checkpoints(tree)
	if err != nil {
		return nil, err
	}
	all, faults, err := cps.List()
	if err != nil {
		return nil, errors.Join(err, cps.Close())
	}
	for _, fault := range faults {
		fmt.Fprintf(a.stderr, "warning: %v\n", fault)
	}
	c := &chain{Checkpoints: cps, folder: tree.Folder(store.Project().Name())}
	for _, e := range all {
		if e.Removed == "" {
			c.all = append(c.all, e)
		} else {
			c.removed = append(c.removed, e)
		}
	}
	if err := c.addOthers(); err != nil {
		return nil, errors.Join(err, cps.Close())
	}
	return c, nil
}

// addOthers adds the checkpoints of other work trees and of other projects' files, each once.
func (c *chain) addOthers() error {
	c.origin = map[checkpoint.ID]*checkpoint.Store{}
	known := map[checkpoint.ID]bool{}
	for _, e := range c.all {
		known[e.ID] = true
	}
	chains, err := c.Others()
	if err != nil {
		return err
	}
	for _, from := range chains {
		all, _, err := from.List()
		if err != nil {
			return err
		}
		for _, e := range all {
			switch {
			case e.Removed != "":
				c.othersRemoved = append(c.othersRemoved, e)
			case !known[e.ID]:
				known[e.ID], c.origin[e.ID] = true, from
				c.others = append(c.others, e)
			}
		}
	}
	return nil
}

// sessionOf is the session that made a checkpoint, as a listing has it.
func sessionOf(e *checkpoint.Entry) string { return cmp.Or(e.Session, "no session") }

// numbered is a checkpoint as a message has it.
func numbered(e *checkpoint.Entry) string {
	if e.Number == 0 { // one of another chain
		return e.ID.Short()
	}
	return fmt.Sprintf("%d (%s)", e.Number, e.ID.Short())
}

// shortID is a checkpoint's ID as messages show it. Another text is returned as it is.
func shortID(text string) string {
	id, err := checkpoint.ParseID(text)
	if err != nil {
		return text
	}
	return id.Short()
}

// pathOf turns a path from where the command was called into one of the project or the work tree,
// "." for none. Nothing needs to be there.
func (a *app) pathOf(args []string) (string, error) {
	if len(args) == 0 {
		return ".", nil
	}
	_, here, err := a.places()
	if err != nil {
		return "", err
	}
	return a.within(here, args[0])
}
