package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newSessionLog(a *app) *cobra.Command {
	var task, cursor string
	cmd := a.reads(&cobra.Command{
		Use:   "log [ID]",
		Short: "Tell what happened in a session: when, what changed, why",
		Long: `Tell what happened in a session: when, what changed, why. With --task, tell of each
start of the command on that task: what it was given, how it ended, what it used, which
files it changed, how the check judged, and of one that failed the end of its output.

Where a session has more than journal_bytes of it, the oldest records are dropped but for
messages, events and attempts. With --cursor, tell what came since the last call with the
same name and remember how far that was; nothing is dropped that a cursor has not passed.
To give one up, remove cursors/NAME.json in the session's folder.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reading(args, func(store *lifecycle.Store, id session.ID) (err error) {
				rows := []recordRow{}
				attempts := []session.AttemptRecord{}
				teller := &teller{w: a.stdout}
				above := uint64(0)
				if cmd.Flags().Changed("cursor") {
					if above, err = store.Cursor(id, cursor); errors.Is(err, lifecycle.ErrInvalid) {
						return usagef("%w", err)
					} else if err != nil {
						return err
					}
				}
				began, err := store.Began(id)
				if err != nil {
					return err
				}
				if began > above+1 {
					fmt.Fprintf(a.stderr, "before #%d only messages, events and attempts are left, as journal_bytes asks for\n", began)
				}
				last := above
				err = store.Log(id, above, func(r session.Record) error {
					last = r.Seq
					if cmd.Flags().Changed("task") {
						attempts = append(attempts, attemptsOf(r, task)...)
						return nil
					}
					if a.out.machine() {
						rows = append(rows, newRecordRow(r))
						return nil
					}
					return teller.tell(r)
				})
				switch {
				case err != nil:
				case cmd.Flags().Changed("task"):
					err = a.showAttempts(id, task, attempts)
				case a.out.machine():
					err = a.printJSON(rows)
				}
				if err == nil && cmd.Flags().Changed("cursor") {
					err = store.MoveCursor(id, cursor, last)
				}
				return err
			})
		},
	})
	cmd.Flags().StringVar(&cursor, "cursor", "", "tell what came after the last call with the same `NAME`; what it has not told is not dropped")
	cmd.Flags().StringVar(&task, "task", "", "tell of the starts of the command on `TASK`, an ID or the end of one")
	return cmd
}

func (a *app) showAttempts(id session.ID, task string, all []session.AttemptRecord) error {
	if len(all) == 0 {
		return fmt.Errorf("no start of the command on task %q in session %s: %w", task, id, lifecycle.ErrNotFound)
	}
	if a.out.machine() {
		return a.printJSON(all)
	}
	recipes := a.recipes()
	for _, at := range all {
		tellAttempt(a.stdout, at, id, recipes)
	}
	return nil
}
