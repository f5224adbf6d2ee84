package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// recoveryRow is what `session recover --json` prints.
type recoveryRow struct {
	From         string            `json:"from"`
	Folder       string            `json:"folder"`
	ID           string            `json:"id,omitempty"` // of the new session
	Strategy     string            `json:"strategy"`
	Base         string            `json:"base"`
	Seq          uint64            `json:"seq"`
	Found        []string          `json:"found"`
	Recovered    []string          `json:"recovered"`
	NotRecovered []string          `json:"notRecovered"`
	Rules        []session.Finding `json:"rules"`
	Advice       []string          `json:"advice"`
	Others       []string          `json:"others"` // what the other strategies come to
}

func newSessionRecover(a *app) *cobra.Command {
	var strategy string
	var dryRun, accept, discard, yes bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "recover ID",
		Short: "Build a new session out of a damaged one, which stays as it is",
		Long: `Build a new session out of a damaged one, which stays as it is. ID is that of a session,
or of what lies in .lopen/corrupted. What comes of it is shown first; as nothing is changed or
removed by it, only a terminal is asked. The new session has the old one's name and pin.

latest-checkpoint  the newest whole State (history/, state.json), and the records after it
checkpoint=CP      the State of a snapshot's number, or of a checkpoint
journal            the records alone, from the first on
partial            what can be read, whatever is missing between

Without --strategy it is the one that saves most: the newest record; of two that reach the same
one, the first in this list. What partial leaves out is named. lopen run asks before it goes on
with the new session until you have looked at it: session verify ID --accept.

--accept-edit takes a session's files as somebody edited them, in place; --discard-edit sets
them aside in .lopen/corrupted and makes them again as they were.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editStore(func(store *lifecycle.Store) error {
				if accept || discard {
					return a.endEdit(store, args[0], dryRun, discard)
				}
				return a.recover(cmd.Context(), store, args[0], strategy, dryRun, yes)
			})
		},
	})
	f := cmd.Flags()
	f.StringVar(&strategy, "strategy", "", "`latest-checkpoint|checkpoint=CP|journal|partial`")
	f.BoolVar(&dryRun, "dry-run", false, "only say what is damaged, and what would come of it")
	f.BoolVarP(&yes, "yes", "y", false, "do not ask")
	f.BoolVar(&accept, "accept-edit", false, "take what somebody edited outside as it is")
	f.BoolVar(&discard, "discard-edit", false, "set aside what somebody edited outside")
	cmd.MarkFlagsMutuallyExclusive("strategy", "accept-edit", "discard-edit")
	return cmd
}

// recover shows what would come of it, asks where there is a person, and does it.
func (a *app) recover(ctx context.Context, store *lifecycle.Store, name, strategy string, dryRun, yes bool) error {
	r, err := store.Recover(ctx, name, strategy, true)
	if r != nil && !a.out.machine() {
		a.showRecovery(r, err == nil)
	}
	if err != nil {
		return usageIf(err, lifecycle.ErrInvalid)
	}
	if !dryRun {
		if !yes && a.interactive() {
			if agreed, err := a.agreed(ctx, "Make a new session of that?"); err != nil || !agreed {
				return cmp.Or(err, errors.New("nothing was made"))
			}
		}
		if r, err = store.Recover(ctx, name, strategy, false); err != nil {
			return err
		}
	}
	if a.out.machine() {
		return a.printJSON(newRecoveryRow(r))
	}
	if !dryRun {
		fmt.Fprintf(a.stdout, "%s\n", r.ID)
		fmt.Fprintf(a.stderr, "session %s was made of %s\nlook at it: lopen session show %s\naccept it:  lopen session verify %s --accept\n", r.ID, r.Where, r.ID, r.ID)
	}
	return nil
}

// showRecovery prints it for a person. The new session's ID alone is a result; all
// else goes to stderr.
func (a *app) showRecovery(r *repair.Recovery, rebuilt bool) {
	w := a.stderr
	fmt.Fprintf(w, "session %s in %s\n", r.From, r.Where)
	list := func(title string, all []string) {
		for _, s := range all {
			fmt.Fprintf(w, "  %-14s %s\n", title, plain.Line(s))
			title = ""
		}
	}
	list("found", r.Leftovers)
	if rebuilt {
		strategy := r.Strategy
		if strategy == repair.Partial {
			strategy += ", which leaves out what is not recovered"
		}
		list("strategy", []string{strategy})
		list("recovered", r.Recovered)
		list("not recovered", r.Lost)
	}
	var rules []string
	for _, f := range r.Rules {
		rules = append(rules, f.String())
	}
	list("rules", rules)
	list("others", r.Others)
	list("advice", r.Advice)
}

func newRecoveryRow(r *repair.Recovery) recoveryRow {
	list := func(all []string) []string { return append([]string{}, all...) }
	row := recoveryRow{From: r.From.String(), Folder: r.Where, Strategy: r.Strategy, Base: r.Base, Seq: r.Seq, Found: list(r.Leftovers),
		Recovered: list(r.Recovered), NotRecovered: list(r.Lost), Rules: append([]session.Finding{}, r.Rules...), Advice: list(r.Advice), Others: list(r.Others)}
	if !r.ID.IsZero() {
		row.ID = r.ID.String()
	}
	return row
}

// endEdit reports what was edited, and accepts or discards it.
func (a *app) endEdit(store *lifecycle.Store, name string, dryRun, discard bool) error {
	id, err := store.Resolve(name)
	if err != nil {
		return err
	}
	end := store.AcceptEdit
	if discard {
		end = store.DiscardEdit
	}
	edit, err := end(id, dryRun)
	if err != nil {
		return usageIf(err, lifecycle.ErrInvalid)
	}
	if a.out.machine() {
		return a.printJSON(struct {
			ID        string            `json:"id"`
			Accepted  bool              `json:"accepted"`
			Discarded bool              `json:"discarded"`
			Changes   []string          `json:"changes"`
			Rules     []session.Finding `json:"rules"`
		}{id.String(), !dryRun && !discard, !dryRun && discard, append([]string{}, edit.Changes...), append([]session.Finding{}, edit.Rules...)})
	}
	what := strings.Join(edit.Changes, ", ")
	if what == "" {
		what = "nothing that means anything: spaces, or the order of members"
	}
	fmt.Fprintf(a.stdout, "%s  edited: %s\n", id, plain.Line(what))
	for _, f := range edit.Rules {
		fmt.Fprintf(a.stdout, "  %s\n", plain.Line(f.String()))
	}
	done := "accepted"
	if discard {
		done = "discarded"
	}
	if !dryRun {
		fmt.Fprintf(a.stderr, "%s: session %s can be resumed\n", done, id)
	}
	return nil
}
