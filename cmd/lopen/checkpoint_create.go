package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// sessionFlag is which session's checkpoints a command is about.
func sessionFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "session", "", "of this session `ID` in place of the newest")
}

// withSession opens a session for a command that changes it. A rewind that was begun
// is finished first; with permitted as far as the system allows.
func (a *app) withSession(ctx context.Context, name string, permitted bool, fn func(*lifecycle.Store, *lifecycle.Session) error) error {
	project, err := a.project()
	if err != nil {
		return err
	}
	values, err := a.projectSettings(project, nil)
	if err != nil {
		return err
	}
	policy, err := storePolicy(values)
	if err != nil {
		return err
	}
	policy.RewindPermitted = permitted
	return a.changing(policy, func(store *lifecycle.Store) error {
		id, err := store.Resolve(name)
		if err != nil {
			return err
		}
		sess, err := store.Open(id)
		if err != nil {
			return err
		}
		if o, oerr := store.Orphan(id); oerr == nil && o != nil && o.Alive {
			err := &loop.Exit{Code: loop.ExitBusy, Reason: fmt.Sprintf("a command of an earlier run still works on the files (%s): %s", o, lifecycle.HowToEnd(o, id))}
			return errors.Join(err, sess.Close(ctx))
		}
		err = fn(store, sess)
		return errors.Join(err, sess.Close(ctx))
	})
}

func newCheckpointCreate(a *app) *cobra.Command {
	var name string
	var pin bool
	cmd := a.reads(&cobra.Command{
		Use:   "create",
		Short: "Keep the project's files as they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), name, false, func(store *lifecycle.Store, sess *lifecycle.Session) error {
				e, _, err := sess.Checkpoint(cmd.Context(), checkpoint.Manual, "")
				if err == nil && pin {
					err = sess.PinCheckpoint(cmd.Context(), e.ID, true)
				}
				if err != nil {
					return err
				}
				row := newCheckpointRow(e, nil)
				row.Pinned = pin
				if err := a.sayUnknown(store, e); err != nil {
					return err
				}
				if a.out.machine() {
					return a.printJSON(row)
				}
				fmt.Fprintf(a.stderr, "checkpoint %s\n", numbered(e))
				_, err = fmt.Fprintln(a.stdout, e.Number)
				return err
			})
		},
	})
	sessionFlag(cmd, &name)
	cmd.Flags().BoolVar(&pin, "pin", false, "keep it when checkpoints beyond the limit are removed")
	return cmd
}

// sayUnknown names what a checkpoint could not record.
func (a *app) sayUnknown(store *lifecycle.Store, e *checkpoint.Entry) error {
	cps, err := store.Checkpoints()
	if err != nil {
		return err
	}
	defer cps.Close()
	skipped, err := cps.Tree(e.Root).Skipped()
	a.saySkipped(skipped)
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
	Line    bool            `json:"line"`
	Entries []checkpointEnt `json:"entries,omitempty"`
}

type checkpointEnt struct {
	Path   string `json:"path"`
	Mode   string `json:"mode"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
	Target string `json:"target,omitempty"`
}

func newCheckpointRow(e *checkpoint.Entry, line map[uint64]bool) checkpointRow {
	return checkpointRow{ID: e.ID, Entry: e, Pinned: e.Pinned, Contested: e.Contested(), Line: line[e.Number]}
}

func newCheckpointList(a *app) *cobra.Command {
	var name string
	cmd := a.reads(&cobra.Command{
		Use:   "list",
		Short: "List the project's checkpoints, the oldest first",
		Long: `List the project's checkpoints, the oldest first: number, the begin of the ID, age,
reason, session, task, progress, what changed since the one before, the size of the files,
and whether it is pinned or contested: more than one task, or one that was cut off, was at
work since the one before. With --session those of that session, and those of the one that
it comes from up to there.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rows := []checkpointRow{}
			list := func(store *lifecycle.Store, _ session.ID, cps *chain) error {
				failed, err := store.FailedTrees(cps.all)
				for _, e := range cps.all {
					if name == "" || cps.line[e.Number] {
						row := newCheckpointRow(e, cps.line)
						row.Failed = failed[e.Number]
						rows = append(rows, row)
					}
				}
				return err
			}
			err := a.lookingAt(name, list)
			if err != nil && (!errors.Is(err, lifecycle.ErrNotFound) || name != "") {
				return err
			}
			if a.out.machine() {
				return a.printJSON(rows)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
			for _, r := range rows {
				var marks []string
				if r.Pinned {
					marks = append(marks, "pinned")
				}
				if r.Failed {
					marks = append(marks, "pinned as failed:"+r.Task)
				}
				if r.Contested {
					marks = append(marks, "contested")
				}
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d/%d done\tfiles changed: %d\t%s\t%s\n", r.Number, r.ID.Short(), ago(time.Since(r.At)), r.Reason, r.Session, r.Task,
					r.Tasks.Completed, r.Tasks.Total, r.Changed, bytesText(r.Bytes), strings.Join(marks, ", "))
			}
			return w.Flush()
		},
	})
	sessionFlag(cmd, &name)
	return cmd
}

func newCheckpointPin(a *app, pinned bool) *cobra.Command {
	var name string
	cmd := &cobra.Command{Use: "pin CP", Short: "Keep a checkpoint when those beyond the limit are removed", Args: cobra.ExactArgs(1)}
	if !pinned {
		cmd.Use, cmd.Short = "unpin CP", "Let a checkpoint be removed again"
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var id checkpoint.ID
		err := a.lookingAt(name, func(store *lifecycle.Store, _ session.ID, cps *chain) error {
			e, err := cps.find(args[0])
			if err != nil {
				return err
			}
			id = e.ID
			failed, err := store.FailedTrees(cps.all)
			if failed[e.Number] && !pinned && !e.Pinned {
				return usagef("checkpoint %s has the tree of a failed task and stays until session %s is pruned or deleted", numbered(e), e.Session)
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.changes(func(store *lifecycle.Store) error {
			cps, err := store.Checkpoints()
			if err != nil {
				return err
			}
			return errors.Join(cps.Pin(cmd.Context(), id, pinned), cps.Close())
		})
	}
	sessionFlag(cmd, &name)
	return cmd
}
