package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newSessionLog(a *app) *cobra.Command {
	l := logCall{app: a}
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "log [ID]",
		Short: "Tell what happened in a session: when, what changed, why",
		Long: `Tell what happened in a session: when, what changed, why. With --task, tell of each
start of the command on that task: what it was given, how it ended, what it used, which
files it changed, how the check judged, and of one that failed the end of its output.

Where a session has more than journal_bytes of it, the oldest records are dropped but for
messages, events and attempts. With --cursor, tell what came since the last call with the
same name and remember how far that was; nothing is dropped that a cursor has not passed.
To give one up, remove cursors/NAME.json in the session's folder.

` + taskHelp + "\nOne that the plan has no more is found by its ID; '' is every task.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.byTask, l.byCursor = cmd.Flags().Changed("task"), cmd.Flags().Changed("cursor")
			return a.readSessionIn(cmd.Context(), l.inFleet, args, l.run)
		},
	})
	fleetFlag(cmd, &l.inFleet)
	cmd.Flags().StringVar(&l.cursor, "cursor", "", "tell what came after the last call with the same `NAME`; what it has not told is not dropped")
	cmd.Flags().Uint64Var(&l.seq, "seq", 0, "tell all of record `N`: the message, or the start of the command")
	cmd.Flags().StringVar(&l.task, "task", "", "tell of the starts of the command on `TASK`")
	for _, other := range []string{"cursor", "task"} {
		cmd.MarkFlagsMutuallyExclusive("seq", other)
	}
	cmd.MarkFlagsMutuallyExclusive("fleet", "cursor")
	return cmd
}

// logCall is one call of `session log`.
type logCall struct {
	*app
	task, cursor     string
	byTask, byCursor bool // the flags were given
	inFleet          bool
	seq              uint64
}

func (l *logCall) run(store *lifecycle.Store, id session.ID) (err error) {
	if l.seq > 0 {
		return l.one(store, id)
	}
	above := uint64(0)
	if l.byCursor {
		if above, err = store.Cursor(id, l.cursor); err != nil {
			return usageIf(err, lifecycle.ErrInvalid)
		}
	}
	if l.task != "" {
		if l.task, err = loggedTask(store, id, l.task); err != nil {
			return err
		}
	}
	began, err := store.Began(id)
	if err != nil {
		return err
	}
	if began > above+1 {
		fmt.Fprintf(l.stderr, "before #%d only messages, events and attempts are left, as journal_bytes asks for\n", began)
	}
	last, err := l.print(store, id, above, began)
	if err == nil && last == 0 {
		_, _, err = store.Read(id) // there is at least one record: the error says why it cannot be read
	}
	if err == nil && l.byCursor {
		err = store.MoveCursor(id, l.cursor, last)
	}
	return err
}

// print prints the records above a number, or the attempts in them, and returns the last number. None is
// missing from began on.
func (l *logCall) print(store *lifecycle.Store, id session.ID, above, began uint64) (last uint64, err error) {
	rows, attempts := []recordRow{}, []record.Attempt{}
	lines := recordPrinter{w: l.stdout, of: readTurns(store, id)}
	last = above
	err = store.Log(id, above, func(r record.Record) error {
		if first := max(last+1, began); r.Seq > first {
			fmt.Fprintf(l.stderr, "%s before #%d cannot be read: lopen session verify %s\n", plain.Some(int(r.Seq-first), "record"), r.Seq, id)
		}
		last = r.Seq
		switch {
		case l.byTask:
			attempts = append(attempts, attemptsOf(r, l.task)...)
		case l.out.machine():
			rows = append(rows, newRecordRow(r))
		default:
			return lines.add(r)
		}
		return nil
	})
	switch {
	case err != nil:
		_ = lines.flush() // the error comes first
	case l.byTask:
		err = l.showAttempts(store, id, l.task, attempts)
	case l.out.machine():
		err = l.printJSON(rows)
	default:
		err = lines.flush()
	}
	return last, err
}

// loggedTask finds the task that is meant: one of the plan, one that the log has attempts at, or a
// prompt of an agent's own session, which has none before its turn ends.
func loggedTask(store *lifecycle.Store, id session.ID, query string) (string, error) {
	query = turns.Named(query)
	p := lastPlan(store, id.Module)
	if p != nil {
		if _, exact := p.Task(query); exact {
			return query, nil
		}
	}
	known := map[string]bool{}
	if err := store.Log(id, 0, func(r record.Record) error {
		for _, a := range r.Attempts {
			for _, id := range append([]string{a.Task}, a.Leaves...) {
				known[id] = true
			}
		}
		return nil
	}); err != nil {
		return "", err
	}
	if st, _, _ := store.Read(id); st != nil && st.Header().Origin == session.OriginHook {
		for t := range st.All() {
			known[t.ID] = true
		}
	}
	return findKnownTask(p, query, slices.Values(slices.Sorted(maps.Keys(known))))
}

// showAttempts prints the attempts at a task, or all for "", and the turn that has not ended.
func (a *app) showAttempts(store *lifecycle.Store, id session.ID, task string, all []record.Attempt) error {
	turn := openTurn(store, id, task)
	if len(all) == 0 && turn == "" {
		return fmt.Errorf("no start of the command on task %q in session %s: %w", task, id, lifecycle.ErrNotFound)
	}
	if a.out.machine() {
		return a.printJSON(append([]record.Attempt{}, all...))
	}
	a.printAttempts(store, id, all)
	if turn != "" {
		fmt.Fprintln(a.stdout, turn)
	}
	return nil
}

func (a *app) printAttempts(store *lifecycle.Store, id session.ID, all []record.Attempt) {
	of := readTurns(store, id)
	recipes, _ := a.recipes() // a run reports what is malformed
	for _, at := range all {
		printAttempt(a.stdout, at, id, of, recipes)
	}
}
