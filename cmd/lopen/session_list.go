package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/sidecar"
	"github.com/lopen-dev/lopen/writer/plain"
)

// sessionRow is a session as `session list --json` prints it; the names are
// those of state.json.
type sessionRow struct {
	ID        string           `json:"id"`
	Name      string           `json:"name,omitempty"`
	Module    string           `json:"module"`
	Status    string           `json:"status,omitempty"`
	Phase     string           `json:"phase,omitempty"`
	Step      string           `json:"step,omitempty"`
	Component string           `json:"component,omitempty"`
	CreatedAt *time.Time       `json:"createdAt,omitempty"`
	UpdatedAt *time.Time       `json:"updatedAt,omitempty"`
	Progress  session.Progress `json:"progress"`
	Tokens    int64            `json:"tokens"`
	Messages  uint64           `json:"messages,omitempty"`
	Lineage   *lineageRow      `json:"lineage,omitempty"`
	Pinned    bool             `json:"pinned,omitempty"`
	Origin    session.Origin   `json:"origin,omitempty"`

	Transaction *sidecar.Status `json:"transaction,omitempty"`

	// Incarnation is another one after the session was made again during a run.
	Incarnation string `json:"incarnation,omitempty"`

	Bytes  int64  `json:"bytes,omitempty"`
	HeldBy string `json:"heldBy,omitempty"`
	Host   string `json:"host,omitempty"`   // in a fleet: where it runs, or ran last
	Orphan string `json:"orphan,omitempty"` // the command of a run that was killed, while it works
	Error  string `json:"error,omitempty"`

	// Rewinding is the rewind that was cut off and is not finished.
	Rewinding *session.Rewinding `json:"rewinding,omitempty"`

	branch string // drawn before the ID in a tree
	advice string // what to type about an orphan or an error
	newer  bool   // the error is that a newer lopen wrote it
}

// lineageRow is where a session comes from.
type lineageRow struct {
	Kind string `json:"kind"`
	From string `json:"from"`
	Seq  uint64 `json:"seq"`
}

// listFlags choose what `session list` shows.
type listFlags struct {
	long, tree, fleet    bool
	status, module, sort string
}

func newSessionList(a *app) *cobra.Command {
	var lf listFlags
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "list",
		Short: "List the sessions, the last active one first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lf.fleet {
				return a.listFleet(cmd.Context(), lf)
			}
			return a.readStore(func(store *lifecycle.Store) error {
				infos, err := everySession(store)
				if err != nil {
					return err
				}
				if infos, err = lf.pick(infos); err != nil {
					return err
				}
				rows := make([]sessionRow, len(infos))
				begun, err := store.UnfinishedRewinds()
				if err != nil {
					fmt.Fprintf(a.stderr, "which rewinds were cut off is not known: %s\n", plain.Line(err.Error()))
				}
				view := transactionView{app: a, store: store}
				defer view.close()
				for i, info := range infos {
					rows[i] = row(store, info, lf.long)
					if r := begun[info.ID]; r != nil {
						rows[i].Rewinding = r
						rows[i].advice = strings.TrimPrefix(rows[i].advice+"\n", "\n") + rows[i].ID + ": " + rewind.Unfinished(r) + "; " + rewind.HowToFinish(info.ID, r)
					}
					rows[i].Transaction = view.of(cmd.Context(), info.ID.String(), info.TransactionID)
				}
				return a.printSessions(rows, lf)
			})
		},
	})
	f := cmd.Flags()
	f.BoolVarP(&lf.long, "long", "l", false, "also the size on the disk and who holds it")
	f.BoolVar(&lf.tree, "tree", false, "forks below the session that they come from")
	fleetFlag(cmd, &lf.fleet)
	f.StringVar(&lf.status, "status", "", "only those that are `active|interrupted|paused|complete`")
	f.StringVar(&lf.module, "module", "", "only those of `MODULE`")
	f.StringVar(&lf.sort, "sort", "activity", "`activity|created|id|progress`")
	return cmd
}

// printSessions prints the rows as the flags ask for.
func (a *app) printSessions(rows []sessionRow, lf listFlags) error {
	if a.out.machine() {
		return a.printJSON(rows)
	}
	if lf.tree {
		rows = treeOf(rows)
	}
	if err := a.listSessions(rows, lf.long); err != nil {
		return err
	}
	for _, r := range rows {
		if r.advice != "" {
			fmt.Fprintln(a.stderr, r.advice)
		}
	}
	return nil
}

// listFleet lists the sessions of the fleet. One that nobody runs and that is active there is
// interrupted, as one whose process died is here.
func (a *app) listFleet(ctx context.Context, lf listFlags) error {
	return a.inFleet(func(_ string, f *fleet.Fleet) error {
		all, err := f.List(ctx, lf.module)
		if err != nil {
			return err
		}
		found := map[string]fleet.Found{}
		infos := make([]lifecycle.Info, 0, len(all))
		for _, x := range all {
			x.Status = x.Status.Seen(x.Held)
			found[x.ID.String()+x.Incarnation] = x
			infos = append(infos, x.Info)
		}
		if infos, err = lf.pick(infos); err != nil {
			return err
		}
		rows := make([]sessionRow, len(infos))
		for i, info := range infos {
			x := found[info.ID.String()+info.Incarnation]
			rows[i] = summaryRow(info)
			rows[i].Name, rows[i].Pinned, rows[i].Bytes, rows[i].Host = x.Name, x.Pinned, x.Bytes, x.Host
			if x.Held {
				rows[i].HeldBy = x.Host
			}
		}
		return a.printSessions(rows, lf)
	})
}

// pick keeps and sorts what the flags ask for.
func (lf listFlags) pick(infos []lifecycle.Info) ([]lifecycle.Info, error) {
	switch lf.status {
	case "", string(session.StatusActive), string(session.StatusInterrupted), string(session.StatusPaused), string(session.StatusComplete):
	default:
		return nil, usagef("--status %q: give active, interrupted, paused or complete", lf.status)
	}
	infos = slices.DeleteFunc(infos, func(i lifecycle.Info) bool {
		return lf.status != "" && string(i.Status) != lf.status || lf.module != "" && i.ID.Module != lf.module
	})
	switch lf.sort {
	case "activity":
	case "created":
		slices.SortStableFunc(infos, func(a, b lifecycle.Info) int { return b.CreatedAt.Compare(a.CreatedAt) })
	case "id":
		slices.SortStableFunc(infos, func(a, b lifecycle.Info) int { return a.ID.Compare(b.ID) })
	case "progress":
		slices.SortStableFunc(infos, func(a, b lifecycle.Info) int { return cmp.Compare(share(b.Progress), share(a.Progress)) })
	default:
		return nil, usagef("--sort %q: give activity, created, id or progress", lf.sort)
	}
	return infos, nil
}

func share(p session.Progress) float64 { return float64(p.Done) / float64(max(p.Total, 1)) }

func row(store *lifecycle.Store, info lifecycle.Info, long bool) sessionRow {
	r := sessionRow{ID: info.ID.String(), Module: info.ID.Module}
	if m, err := store.Meta(info.ID); err == nil {
		r.Name, r.Pinned = m.Name, m.Pinned
	}
	if long {
		r.Bytes = store.Bytes(info.ID)
		if owner, err := store.Holder(info.ID); err == nil && owner != nil {
			r.HeldBy = owner.String()
		}
	}
	if info.Status != session.StatusComplete {
		if o, err := store.Abandoned(info.ID); err == nil && o != nil {
			r.Orphan, r.advice = o.String(), r.ID+" left behind "+o.String()+": "+repair.HowToEnd(o, info.ID)
		}
	}
	if info.Err != nil {
		r.Error, r.newer = info.Err.Error(), errors.Is(info.Err, lifecycle.ErrFutureVersion)
		if !r.newer {
			r.advice = "session " + r.ID + " cannot be read: lopen session recover " + plain.Quote(r.ID)
		}
		return r
	}
	of := summaryRow(info)
	of.Name, of.Pinned, of.Bytes, of.HeldBy, of.Orphan, of.advice = r.Name, r.Pinned, r.Bytes, r.HeldBy, r.Orphan, r.advice
	return of
}

// summaryRow is what a row has of a session's summary.
func summaryRow(info lifecycle.Info) sessionRow {
	r := sessionRow{ID: info.ID.String(), Module: info.ID.Module}
	if info.Err != nil {
		r.Error = info.Err.Error()
		return r
	}
	r.Status, r.Phase, r.Step, r.Component = string(info.Status), string(info.Phase), string(info.Step), info.Component
	r.CreatedAt, r.UpdatedAt, r.Progress = &info.CreatedAt, &info.UpdatedAt, info.Progress
	r.Messages, r.Incarnation, r.Origin = info.Messages, info.Incarnation, info.Origin
	if l := info.Lineage; l != nil {
		r.Lineage = &lineageRow{l.Kind, l.From.String(), l.Seq}
	}
	r.Tokens = info.InputTokens + info.OutputTokens
	return r
}

// listSessions prints a table on a terminal and tab-separated text elsewhere.
func (a *app) listSessions(rows []sessionRow, long bool) error {
	w := io.Writer(a.stdout)
	if a.stdout.Terminal() {
		if len(rows) == 0 {
			_, err := fmt.Fprintln(a.stderr, "no sessions here: lopen run MODULE -- CMD makes one")
			return err
		}
		tw := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
		defer tw.Flush()
		w = tw
	}
	for _, r := range rows {
		if r.Error != "" {
			what := "damaged"
			if r.newer {
				what = "newer lopen"
			}
			fmt.Fprintf(w, "%s\t! %s\t%s\t%s\t\t\t\t%s\n", r.ID, what, plain.Line(r.Name), r.Module, plain.Line(r.Error))
			continue
		}
		where := ""
		if r.Host != "" {
			where = "\t" + plain.Line(r.Host)
		}
		fmt.Fprintf(w, "%s%s\t%s %s\t%s\t%s\t%s\t%d/%d\t%s\t%s%s", r.branch, r.ID, statusGlyph(r.Status), r.Status, named(r), r.Module, r.Phase,
			r.Progress.Done, r.Progress.Total, ago(time.Since(*r.UpdatedAt)), plain.Count(r.Tokens), where)
		if long {
			fmt.Fprintf(w, "\t%s\t%s", bytesText(r.Bytes), plain.Line(r.HeldBy))
		}
		fmt.Fprintln(w)
	}
	return nil
}

// named is a session's name, with a sign when it is pinned, and what became of its transaction.
func named(r sessionRow) string {
	name := plain.Line(r.Name)
	if r.Pinned {
		name += " (pinned)"
	}
	if r.Origin != session.OriginRun {
		name += " (" + string(r.Origin) + ")"
	}
	if r.Transaction != nil {
		name += " (" + plain.Line(string(r.Transaction.State)) + ")"
	}
	return strings.TrimSpace(name)
}

func statusGlyph(status string) string {
	switch session.Status(status) {
	case session.StatusActive:
		return "▸"
	case session.StatusComplete:
		return "✓"
	}
	return "‖"
}

// treeOf puts each session below the one that it comes from, where that is listed,
// and otherwise keeps the order.
func treeOf(rows []sessionRow) []sessionRow {
	listed, below := map[string]bool{}, map[string][]sessionRow{}
	for _, r := range rows {
		listed[r.ID] = true
	}
	for _, r := range rows {
		from := ""
		if r.Lineage != nil && listed[r.Lineage.From] {
			from = r.Lineage.From
		}
		below[from] = append(below[from], r)
	}
	tree := make([]sessionRow, 0, len(rows))
	var put func(from, indent string)
	put = func(from, indent string) {
		for i, r := range below[from] {
			more := ""
			if from != "" {
				r.branch, more = indent+"├─ ", indent+"│  "
				if i == len(below[from])-1 {
					r.branch, more = indent+"└─ ", indent+"   "
				}
			}
			tree = append(tree, r)
			put(r.ID, more)
		}
	}
	put("", "")
	return tree
}
