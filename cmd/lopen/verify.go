package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
)

// reportRow is a session as `session verify --json` prints it.
type reportRow struct {
	ID        string     `json:"id"`
	Condition string     `json:"condition"`
	Error     string     `json:"error,omitempty"`
	Seq       uint64     `json:"seq"`
	StateSeq  uint64     `json:"stateSeq"`
	Records   int        `json:"records"`
	Bytes     int64      `json:"bytes"`
	HeldBy    string     `json:"heldBy,omitempty"`
	Faults    []faultRow `json:"faults"`
}

type faultRow struct {
	File    string `json:"file"`
	Offset  int64  `json:"offset"`
	Length  int64  `json:"length"`
	Seq     uint64 `json:"seq"`
	Kind    string `json:"kind"`
	Problem string `json:"problem,omitempty"`
}

func newSessionVerify(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "verify [ID]",
		Short: "Read everything of one session, or of all, and say what is damaged",
		Long: `Read everything of one session, or of all, and say what is damaged.

intact           every record and both readable files
torn             the journal ends in bytes that were never acknowledged; nothing is lost
history-damaged  the session is whole, its log has a hole
unreadable       reading failed, or a newer lopen wrote it
corrupt          the session cannot be opened

Nothing is changed. The exit code is 3 unless all are intact.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			defer release(store)
			reports, err := verifyAll(store, args)
			if err != nil {
				return err
			}
			bad := 0
			rows := make([]reportRow, len(reports))
			for i, r := range reports {
				rows[i] = newReportRow(r)
				if r.Condition != lifecycle.Intact {
					bad++
				}
			}
			if a.out.machine() {
				err = a.printJSON(rows)
			} else {
				for _, r := range rows {
					fmt.Fprint(a.stdout, r)
				}
			}
			if err == nil && bad > 0 {
				err = &problemsError{fmt.Sprintf("%d of %d sessions are not intact", bad, len(rows))}
			}
			return err
		},
	})
}

func verifyAll(store *lifecycle.Store, args []string) (all []lifecycle.Report, err error) {
	if len(args) > 0 {
		id, err := resolveArg(store, args)
		if err != nil {
			return nil, err
		}
		r, err := store.Verify(id)
		return []lifecycle.Report{r}, err
	}
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		r, err := store.Verify(info.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func newReportRow(r lifecycle.Report) reportRow {
	row := reportRow{ID: r.ID.String(), Condition: string(r.Condition), Seq: r.Seq, StateSeq: r.Shown, Records: r.Records, Bytes: r.Bytes, Faults: []faultRow{}}
	if r.Err != nil {
		row.Error = r.Err.Error()
	}
	if r.Holder != nil {
		row.HeldBy = r.Holder.String()
	}
	for _, f := range r.Faults {
		row.Faults = append(row.Faults, faultRow(f))
	}
	return row
}

// String is the row for a person.
func (r reportRow) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s: %d records kept, to number %d", r.ID, r.Condition, r.Records, r.Seq)
	if r.HeldBy != "" {
		fmt.Fprintf(&b, ", held by %s", r.HeldBy)
	}
	b.WriteByte('\n')
	if r.Error != "" {
		fmt.Fprintf(&b, "  %s\n", r.Error)
	}
	for _, f := range r.Faults {
		what := map[string]string{
			"torn":    "were never acknowledged and are not applied",
			"settled": "were given up by the writer and are not applied",
			"damaged": "are damaged",
		}[f.Kind]
		fmt.Fprintf(&b, "  %s: %d bytes from %d on %s (record %d)", f.File, f.Length, f.Offset, what, f.Seq)
		if f.Problem != "" {
			fmt.Fprintf(&b, ": %s", f.Problem)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
