package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// reportRow is a session as `session verify --json` prints it.
type reportRow struct {
	ID        string         `json:"id"`
	Condition string         `json:"condition"`
	Error     string         `json:"error,omitempty"`
	Seq       uint64         `json:"seq"`
	StateSeq  uint64         `json:"stateSeq"`
	Records   int            `json:"records"`
	Bytes     int64          `json:"bytes"`
	Status    string         `json:"status,omitempty"`
	HeldBy    string         `json:"heldBy,omitempty"`
	Orphan    string         `json:"orphan,omitempty"` // it is among the leftovers
	Faults    []repair.Fault `json:"faults"`

	Rules              []session.Finding `json:"rules"`
	Leftovers          []string          `json:"leftovers"`
	Blobs              int               `json:"blobs,omitempty"`  // that were read
	Unread             int               `json:"unread,omitempty"` // contents of files that were not
	RequiresValidation bool              `json:"requiresValidation,omitempty"`
}

// verifyFlags are the flags of verify.
type verifyFlags struct{ readData, accept bool }

func newSessionVerify(a *app) *cobra.Command {
	var vf verifyFlags
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "verify [ID]",
		Short: "Read all of one session, or of every one, and say what is damaged",
		Long: `Read all of one session, or of every one, run the rules, and say what is wrong. The contents
of its checkpoints' files are read with --read-data only; without it the end says so.

intact           every record and both readable files
torn             the journal ends in bytes that were never acknowledged, or a readable file is
                 not whole; nothing is lost
flawed           usable; a rule is broken, or a file beside the session's own is damaged
history-damaged  the session is whole, its log or a snapshot is not
edited           edited outside: read-only until session recover ID --accept-edit or --discard-edit
unreadable       reading failed, or a newer lopen wrote it
corrupt          the session cannot be opened: session recover ID

Nothing is changed, unless --accept says that you have looked at a recovered session.
The exit code is 3 unless all are intact; warnings alone are no problem.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if vf.accept && len(args) == 0 {
				return usagef("--accept takes the ID of the session that you have looked at")
			}
			with := a.readStore
			if vf.accept {
				with = a.editStore
			}
			return with(func(store *lifecycle.Store) error { return a.verify(cmd.Context(), store, args, vf) })
		},
	})
	cmd.Flags().BoolVar(&vf.readData, "read-data", false, "read every blob as well")
	cmd.Flags().BoolVar(&vf.accept, "accept", false, "you have looked at this recovered session: run goes on with it without asking")
	return cmd
}

func (a *app) verify(ctx context.Context, store *lifecycle.Store, args []string, vf verifyFlags) error {
	reports, err := verifyAll(ctx, store, args, vf)
	if err != nil {
		return err
	}
	bad := 0
	rows := make([]reportRow, len(reports))
	for i, r := range reports {
		rows[i] = newReportRow(r)
		if r.Condition != repair.Intact {
			bad++
		}
	}
	err = a.printReports(rows)
	a.sayUnread(rows, args)
	if len(args) == 0 {
		if n := a.warnQuarantined(store); n > 0 && bad == 0 && err == nil {
			return &problemsError{fmt.Sprintf("%d damaged sessions lie in corrupted/", n)}
		}
	}
	if err == nil && vf.readData && len(args) == 0 {
		err = a.verifyBlobs(ctx, store)
	}
	switch {
	case err != nil:
	case vf.accept: // as it is: a person looked at what is shown above
		if err = store.Accept(ctx, reports[0].ID); err == nil {
			fmt.Fprintf(a.stderr, "session %s is accepted\n", reports[0].ID)
		}
	case bad > 0:
		err = &problemsError{fmt.Sprintf("%d of %d sessions are not intact", bad, len(rows))}
	}
	return err
}

// sayUnread says that contents of checkpoints were not read, and what reads them.
func (a *app) sayUnread(rows []reportRow, args []string) {
	if !slices.ContainsFunc(rows, func(r reportRow) bool { return r.Unread > 0 }) {
		return
	}
	command := "lopen session verify"
	if len(args) > 0 {
		command += " " + rows[0].ID
	}
	fmt.Fprintf(a.stderr, "the contents of the checkpoints' files were not read: %s --read-data reads them\n", command)
}

func (a *app) printReports(rows []reportRow) error {
	if a.out.machine() {
		return a.printJSON(rows)
	}
	for _, r := range rows {
		fmt.Fprint(a.stdout, r)
	}
	return nil
}

// warnQuarantined warns of each session in quarantine, and returns how many there are.
func (a *app) warnQuarantined(store *lifecycle.Store) int {
	all, err := store.Quarantined()
	if err != nil {
		return 0
	}
	for _, i := range all {
		fmt.Fprintf(a.stderr, "%v\n%s", i.Err, hint(i.Err))
	}
	return len(all)
}

// verifyBlobs reads the blobs that no session names as well.
func (a *app) verifyBlobs(ctx context.Context, store *lifecycle.Store) error {
	n, damaged, err := store.VerifyBlobs(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "%d blobs were read\n", n)
	for _, f := range damaged {
		fmt.Fprintf(a.stderr, "  %s\n", f)
	}
	if len(damaged) > 0 {
		return &problemsError{fmt.Sprintf("%d of %d blobs are damaged", len(damaged), n)}
	}
	return nil
}

func verifyAll(ctx context.Context, store *lifecycle.Store, args []string, vf verifyFlags) (all []repair.Report, err error) {
	var ids []session.ID
	if len(args) > 0 {
		id, err := resolveArg(store, args)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	} else {
		infos, err := store.List()
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			ids = append(ids, info.ID)
		}
	}
	for _, id := range ids {
		r, err := store.Verify(id)
		if err == nil && vf.readData {
			err = store.VerifyData(ctx, &r)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func newReportRow(r repair.Report) reportRow {
	row := reportRow{ID: r.ID.String(), Condition: string(r.Condition), Seq: r.Seq, StateSeq: r.Shown, Records: r.Records, Bytes: r.Bytes, Faults: append([]repair.Fault{}, r.Faults...),
		Rules: append([]session.Finding{}, r.Rules...), Leftovers: append([]string{}, r.Leftovers...), Blobs: r.Blobs, Unread: r.Unread, RequiresValidation: r.RequiresValidation}
	for i := range row.Rules {
		row.Rules[i].Repair = strings.ReplaceAll(row.Rules[i].Repair, " recover ID", " recover "+row.ID)
	}
	if r.Err != nil {
		row.Error = r.Err.Error()
	}
	row.Status = string(r.Status)
	if r.Holder != nil {
		row.HeldBy = r.Holder.String()
	}
	if r.Orphan != nil {
		row.Orphan = r.Orphan.String()
	}
	return row
}

// String is the row for a person.
func (r reportRow) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s: %d records kept", r.ID, r.Condition, r.Records)
	if r.Seq > 0 {
		fmt.Fprintf(&b, ", to number %d", r.Seq)
	}
	if r.HeldBy != "" {
		fmt.Fprintf(&b, ", held by %s", plain.Line(r.HeldBy))
	}
	if r.Status == string(session.StatusInterrupted) {
		fmt.Fprintf(&b, ", %s", r.Status)
	}
	b.WriteByte('\n')
	if r.Error != "" {
		fmt.Fprintf(&b, "  %s\n", r.Error)
	}
	if r.RequiresValidation {
		fmt.Fprintf(&b, "  it was recovered and is not accepted: lopen session verify %s --accept\n", plain.Quote(r.ID))
	}
	for _, f := range r.Faults {
		if f.Length == 0 && f.Kind == "torn" {
			fmt.Fprintf(&b, "  %s is made again by the next run: %s\n", shown(f.File), plain.Line(f.Problem))
			continue
		}
		if f.Length == 0 {
			fmt.Fprintf(&b, "  %s is damaged: %s\n", shown(f.File), plain.Line(f.Problem))
			continue
		}
		what := map[string]string{
			"torn":    "were never acknowledged and are not applied",
			"settled": "were given up by the writer and are not applied",
			"damaged": "are damaged",
		}[f.Kind]
		fmt.Fprintf(&b, "  %s: %d bytes from %d on %s (record %d)", f.File, f.Length, f.Offset, what, f.Seq)
		if f.Problem != "" {
			fmt.Fprintf(&b, ": %s", plain.Line(f.Problem))
		}
		b.WriteByte('\n')
	}
	b.WriteString(rulesText(r.Rules))
	for _, s := range r.Leftovers {
		fmt.Fprintf(&b, "  %s\n", plain.Line(s))
	}
	return b.String()
}
