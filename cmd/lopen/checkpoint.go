package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/files"
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

// lookingAt opens the checkpoints of a session for a command that only reads.
func (a *app) lookingAt(name string, fn func(store *lifecycle.Store, id session.ID, cps *lifecycle.Checkpoints) error) error {
	return a.reading([]string{name}, func(store *lifecycle.Store, id session.ID) error {
		cps, err := store.Checkpoints(id)
		if err != nil {
			return err
		}
		return errors.Join(fn(store, id, cps), cps.Close())
	})
}

// findCheckpoint turns a name into an ID: cp-000012, 12, last, before:TASK or
// after:TASK, where TASK is an ID or the end of one. Of a task with others beneath it
// that is before the first of them and after the last.
func findCheckpoint(cps *lifecycle.Checkpoints, name string) (checkpoint.ID, error) {
	all, err := cps.List()
	if err != nil {
		return 0, err
	}
	when, task, named := strings.Cut(name, ":")
	if named && when != "before" && when != "after" {
		return 0, usagef("%q names no checkpoint: give an ID, last, before:TASK or after:TASK", name)
	}
	var beneath checkpoint.ID
	for _, info := range slices.Backward(all) {
		switch {
		case named && string(info.Reason) != when+"-task":
		case named && strings.HasSuffix("/"+info.Task, "/"+task):
			return info.ID, nil
		case named && strings.Contains("/"+info.Task, "/"+task+"/"):
			if beneath == 0 || when == "before" {
				beneath = info.ID
			}
		case named:
		case name == "last", name == info.ID.String(), strings.TrimLeft(strings.TrimPrefix(info.ID.String(), "cp-"), "0") == name:
			return info.ID, nil
		}
	}
	if beneath == 0 {
		return 0, fmt.Errorf("%q: %w: lopen checkpoint list shows them", name, checkpoint.ErrNotFound)
	}
	return beneath, nil
}

func newCheckpointCreate(a *app) *cobra.Command {
	var name string
	var pin bool
	cmd := a.reads(&cobra.Command{
		Use:   "create [PATH...]",
		Short: "Keep the project's files as they are, or the named ones",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd.Context(), name, false, func(store *lifecycle.Store, sess *lifecycle.Session) error {
				paths, err := a.inProject(store, args)
				if err != nil {
					return err
				}
				m, _, err := sess.Checkpoint(cmd.Context(), checkpoint.Manual, "", paths...)
				if err == nil && pin {
					err = sess.PinCheckpoint(m.ID, true)
				}
				if err != nil {
					return err
				}
				a.saySkipped(m.Files)
				if a.out.machine() {
					return a.printJSON(newCheckpointRow(checkpoint.Info{Header: m.Header, Pinned: pin}))
				}
				_, err = fmt.Fprintln(a.stdout, m.ID)
				return err
			})
		},
	})
	sessionFlag(cmd, &name)
	cmd.Flags().BoolVar(&pin, "pin", false, "keep it when checkpoints beyond the limits are removed")
	return cmd
}

// checkpointRow is a checkpoint as --json prints it.
type checkpointRow struct {
	checkpoint.Header
	Pinned bool `json:"pinned"`
	// Inherited: made in the session that this one comes from.
	Inherited bool            `json:"inherited"`
	Error     string          `json:"error,omitempty"`
	Files     []checkpointEnt `json:"files,omitempty"`
}

type checkpointEnt struct {
	Path   string `json:"path"`
	Mode   string `json:"mode"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
	Target string `json:"target,omitempty"`
}

func newCheckpointRow(info checkpoint.Info) checkpointRow {
	row := checkpointRow{Header: info.Header, Pinned: info.Pinned, Inherited: info.Inherited}
	if row.Tasks.Active == nil {
		row.Tasks.Active = []string{}
	}
	if info.Err != nil {
		row.Error = info.Err.Error()
	}
	return row
}

func newCheckpointList(a *app) *cobra.Command {
	var name string
	cmd := a.reads(&cobra.Command{
		Use:   "list",
		Short: "List the checkpoints of a session, the oldest first",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rows := []checkpointRow{}
			err := a.lookingAt(name, func(_ *lifecycle.Store, _ session.ID, cps *lifecycle.Checkpoints) error {
				all, err := cps.List()
				for _, info := range all {
					rows = append(rows, newCheckpointRow(info))
				}
				return err
			})
			if err != nil && (!errors.Is(err, lifecycle.ErrNotFound) || name != "") {
				return err
			}
			if a.out.machine() {
				return a.printJSON(rows)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
			for _, r := range rows {
				if r.Error != "" {
					fmt.Fprintf(w, "%s\t! unreadable\t%s\n", r.ID, r.Error)
					continue
				}
				var marks []string
				if r.Inherited {
					marks = append(marks, "inherited")
				}
				if r.Pinned {
					marks = append(marks, "pinned")
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d/%d done\tfiles changed: %d\t%s\t%s\n", r.ID, ago(time.Since(r.At)), r.Reason, r.Task, r.Tasks.Completed, r.Tasks.Total, r.FilesModified, bytesText(r.Bytes), strings.Join(marks, ", "))
			}
			return w.Flush()
		},
	})
	sessionFlag(cmd, &name)
	return cmd
}

func newCheckpointShow(a *app) *cobra.Command {
	var name string
	cmd := a.reads(&cobra.Command{
		Use:   "show CP",
		Short: "Show what a checkpoint holds",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.lookingAt(name, func(_ *lifecycle.Store, _ session.ID, cps *lifecycle.Checkpoints) error {
				id, err := findCheckpoint(cps, args[0])
				if err != nil {
					return err
				}
				m, err := cps.Load(id)
				if err != nil {
					return err
				}
				row := newCheckpointRow(checkpoint.Info{Header: m.Header})
				for i := range m.Files.Files {
					f := &m.Files.Files[i]
					ent := checkpointEnt{Path: f.Path, Mode: f.Mode.String(), Size: f.Size, Target: f.Target}
					if f.Mode.IsRegular() {
						ent.SHA256 = f.Hash.String()
					}
					row.Files = append(row.Files, ent)
				}
				if a.out.machine() {
					return a.printJSON(row)
				}
				fmt.Fprintf(a.stdout, "%s  %s  %s %s, record %d, %d/%d tasks done, %s\n", m.ID, m.At.Local().Format(time.DateTime), m.Reason, m.Task, m.Seq, m.Tasks.Completed, m.Tasks.Total, bytesText(m.Bytes))
				for _, f := range row.Files {
					fmt.Fprintf(a.stdout, "%s %10d %s\n", f.Mode, f.Size, shown(f.Path))
				}
				a.saySkipped(m.Files)
				return nil
			})
		},
	})
	sessionFlag(cmd, &name)
	return cmd
}

func newCheckpointDiff(a *app) *cobra.Command {
	var name string
	var stat, nameOnly bool
	cmd := a.reads(&cobra.Command{
		Use:   "diff A [B]",
		Short: "Show what differs between two checkpoints, or between one and the files now",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.lookingAt(name, func(_ *lifecycle.Store, _ session.ID, cps *lifecycle.Checkpoints) error {
				id, err := findCheckpoint(cps, args[0])
				if err != nil {
					return err
				}
				from, err := cps.Load(id)
				if err != nil {
					return err
				}
				var to *files.Snapshot
				if len(args) == 1 {
					to, err = cps.Look(cmd.Context(), from, from.Files.Paths)
				} else if id, err = findCheckpoint(cps, args[1]); err == nil {
					var m *checkpoint.Manifest
					if m, err = cps.Load(id); err == nil {
						to = m.Files
					}
				}
				if err != nil {
					return err
				}
				changes := checkpoint.Diff(from.Files, to)
				if a.out.machine() || nameOnly {
					if !nameOnly {
						return a.printDiffJSON(cps, changes)
					}
					return a.printChanges(changes)
				}
				if stat {
					return a.printStat(cps, changes)
				}
				return a.printPatches(cps, changes)
			})
		},
	})
	sessionFlag(cmd, &name)
	cmd.Flags().BoolVar(&stat, "stat", false, "how many lines, not which")
	cmd.Flags().BoolVar(&nameOnly, "name-only", false, "a line a file: A created, M modified, D deleted, R moved, m mode")
	return cmd
}

// diffRow is a change as `checkpoint diff --json` prints it.
type diffRow struct {
	Kind files.Kind `json:"kind"`
	Path string     `json:"path"`
	From string     `json:"from,omitempty"`
	checkpoint.Lines
}

func (a *app) printDiffJSON(cps *lifecycle.Checkpoints, changes []files.Change) error {
	rows := []diffRow{}
	for _, c := range changes {
		lines, err := cps.Lines(c.Old, c.New)
		if err != nil {
			return err
		}
		rows = append(rows, diffRow{c.Kind, c.Path, c.From, lines})
	}
	return a.printJSON(rows)
}

func (a *app) printStat(cps *lifecycle.Checkpoints, changes []files.Change) error {
	added, deleted := 0, 0
	for _, c := range changes {
		lines, err := cps.Lines(c.Old, c.New)
		if err != nil {
			return err
		}
		numbers := fmt.Sprintf("+%d -%d", lines.Added, lines.Deleted)
		if lines.Binary {
			numbers = "binary"
		}
		fmt.Fprintf(a.stdout, "%s %s  %s\n", letters[c.Kind], shown(c.Path), numbers)
		added, deleted = added+lines.Added, deleted+lines.Deleted
	}
	_, err := fmt.Fprintf(a.stdout, "files: %d, lines: +%d -%d\n", len(changes), added, deleted)
	return err
}

func (a *app) printPatches(cps *lifecycle.Checkpoints, changes []files.Change) error {
	for _, c := range changes {
		patch, err := cps.Patch(c.Old, c.New)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(a.stdout.Content(), patch); err != nil {
			return err
		}
	}
	return nil
}
