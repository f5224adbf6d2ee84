package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
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
	Pinned    bool             `json:"pinned,omitempty"`
	Bytes     int64            `json:"bytes,omitempty"`
	HeldBy    string           `json:"heldBy,omitempty"`
	Error     string           `json:"error,omitempty"`
}

// listFlags choose what `session list` shows.
type listFlags struct {
	long                 bool
	status, module, sort string
}

func newSessionList(a *app) *cobra.Command {
	var lf listFlags
	cmd := a.reads(&cobra.Command{
		Use:   "list",
		Short: "List the sessions, the last active one first",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			defer release(store)
			infos, err := store.List()
			if err != nil {
				return err
			}
			if infos, err = lf.pick(infos); err != nil {
				return err
			}
			rows := make([]sessionRow, len(infos))
			for i, info := range infos {
				rows[i] = row(store, info, lf.long)
			}
			if a.out.machine() {
				return a.printJSON(rows)
			}
			return a.listSessions(rows, lf.long)
		},
	})
	f := cmd.Flags()
	f.BoolVarP(&lf.long, "long", "l", false, "also the size on the disk and who holds it")
	f.StringVar(&lf.status, "status", "", "only those that are `active|paused|complete`")
	f.StringVar(&lf.module, "module", "", "only those of `MODULE`")
	f.StringVar(&lf.sort, "sort", "activity", "`activity|created|id|progress`")
	return cmd
}

// pick keeps and sorts what the flags ask for.
func (lf listFlags) pick(infos []lifecycle.Info) ([]lifecycle.Info, error) {
	switch lf.status {
	case "", string(session.StatusActive), string(session.StatusPaused), string(session.StatusComplete):
	default:
		return nil, usagef("--status %q: give active, paused or complete", lf.status)
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
	if info.Err != nil {
		r.Error = info.Err.Error()
		return r
	}
	r.Status, r.Phase, r.Step, r.Component = string(info.Status), string(info.Phase), string(info.Step), info.Component
	r.CreatedAt, r.UpdatedAt, r.Progress = &info.CreatedAt, &info.UpdatedAt, info.Progress
	r.Tokens = info.InputTokens + info.OutputTokens
	return r
}

// listSessions prints a table on a terminal and tab-separated text elsewhere.
func (a *app) listSessions(rows []sessionRow, long bool) error {
	w := a.stdout
	if isTerminal(a.stdout) {
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
			fmt.Fprintf(w, "%s\t! unreadable\t%s\t%s\t\t\t\t%s\n", r.ID, r.Name, r.Module, r.Error)
			continue
		}
		fmt.Fprintf(w, "%s\t%s %s\t%s\t%s\t%s\t%d/%d\t%s\t%s", r.ID, statusGlyph(r.Status), r.Status, named(r), r.Module, r.Phase,
			r.Progress.Done, r.Progress.Total, ago(time.Since(*r.UpdatedAt)), count(r.Tokens))
		if long {
			fmt.Fprintf(w, "\t%s\t%s", bytesText(r.Bytes), r.HeldBy)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// named is a session's name, with a sign when it is pinned.
func named(r sessionRow) string {
	if r.Pinned {
		return strings.TrimSpace(r.Name + " (pinned)")
	}
	return r.Name
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

func newSessionShow(a *app) *cobra.Command {
	var format string
	var at uint64
	cmd := a.reads(&cobra.Command{
		Use:   "show [ID]",
		Short: "Show a session: its tasks, their states, what they cost",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			defer release(store)
			id, err := resolveArg(store, args)
			if err != nil {
				return err
			}
			st, seq, err := store.Read(id)
			if err == nil && cmd.Flags().Changed("at") {
				seq = at
				st, err = store.ReadAt(id, at)
			}
			if err != nil {
				return err
			}
			if a.out.machine() {
				return a.printJSON(a.stateJSON(store, st, seq))
			}
			switch format {
			case "":
				return a.showSession(store, st, seq)
			case "json", "yaml":
				return a.printFormat(a.stateJSON(store, st, seq), format)
			case "md":
				return showMarkdown(a.stdout, st, seq)
			}
			return usagef("--format %q: give md, json or yaml", format)
		},
	})
	cmd.Flags().StringVar(&format, "format", "", "`md|json|yaml` in place of the usual text")
	cmd.Flags().Uint64Var(&at, "at", 0, "as it was at record `SEQ` of its log")
	return cmd
}

func resolveArg(store *lifecycle.Store, args []string) (session.ID, error) {
	if len(args) == 0 {
		return store.Resolve("")
	}
	return store.Resolve(args[0])
}

// stateJSON is state.json with the session's name and without the checksum, which
// is of the file's bytes.
func (a *app) stateJSON(store *lifecycle.Store, st *session.State, seq uint64) json.RawMessage {
	data := session.EncodeState(st, session.Mark{Seq: seq})
	if i := bytes.LastIndex(data, []byte(`,"checksum":`)); i >= 0 {
		data = append(data[:i:i], '}')
	}
	m, err := store.Meta(st.ID())
	if err != nil || m.Name == "" {
		return data
	}
	name, err := json.Marshal(m.Name)
	if err != nil {
		return data
	}
	return fmt.Appendf(nil, `{"name":%s,%s`, name, data[1:])
}

func (a *app) showSession(store *lifecycle.Store, st *session.State, seq uint64) error {
	h, p, m := st.Header(), st.Progress(), st.Totals()
	w := a.stdout
	fmt.Fprintf(w, "session   %s\n", st.ID())
	if meta, err := store.Meta(st.ID()); err == nil && meta.Name != "" {
		fmt.Fprintf(w, "name      %s\n", meta.Name)
	}
	fmt.Fprintf(w, "status    %s%s\n", h.Status, parenthesis(string(h.ExitReason)))
	fmt.Fprintf(w, "phase     %s, %s\n", h.Phase, h.Step)
	fmt.Fprintf(w, "progress  %d/%d done", p.Done, p.Total)
	if p.Failed > 0 {
		fmt.Fprintf(w, ", %d failed", p.Failed)
	}
	if p.Skipped > 0 {
		fmt.Fprintf(w, ", %d skipped", p.Skipped)
	}
	fmt.Fprintf(w, "\ncreated   %s\nactive    %s\n", h.CreatedAt.Local().Format(time.DateTime), ago(time.Since(h.UpdatedAt)))
	if owner, err := store.Holder(st.ID()); err == nil && owner != nil {
		fmt.Fprintf(w, "held by   %s\n", owner)
	}
	fmt.Fprintf(w, "command   %s\n", quoted(h.Settings.Command))
	if h.Settings.Check != "" {
		fmt.Fprintf(w, "check     %s\n", h.Settings.Check)
	}
	if st.NumIterations() > 0 {
		fmt.Fprintf(w, "starts    %d, %s in all\n", st.NumIterations(), m.Duration.Round(time.Second))
	}
	if t := m.InputTokens + m.OutputTokens; t > 0 {
		fmt.Fprintf(w, "tokens    %s in, %s out\n", count(m.InputTokens), count(m.OutputTokens))
	}
	if h.TotalCostUSD > 0 {
		fmt.Fprintf(w, "cost      $%.2f\n", h.TotalCostUSD)
	}
	fmt.Fprintf(w, "state     %s (sequence number %d)\n\n", filepath.Join(store.Path(), "sessions", st.ID().String(), "state.json"), seq)
	a.printTree(w, st, st.Roots(), 0)
	return nil
}

func (a *app) printTree(w io.Writer, st *session.State, ids []string, depth int) {
	for _, id := range ids {
		t, _ := st.Task(id)
		line := fmt.Sprintf("%*s%s %s", 2*depth, "", glyph(t.State), t.Name)
		if t.LastError != "" && t.State != session.TaskComplete {
			line += fmt.Sprintf("  (%s)", t.LastError)
		}
		fmt.Fprintln(w, paint(line, t.State, a.colored(a.stdout)))
		a.printTree(w, st, t.Children, depth+1)
	}
}

func parenthesis(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func newSessionResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume [ID]",
		Short: "Go on with a session: lopen run, with what the session remembers",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			id, err := resolveArg(store, args)
			if err = errors.Join(err, closeStore(store)); err != nil {
				return err
			}
			r := runCall{app: a, runFlags: runFlags{resume: id.String()}, module: id.Module}
			return r.run(cmd.Context())
		},
	}
}

func newSessionPause(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pause [ID]",
		Short: "Pause a session after its current task, from another terminal",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			store, err := a.open()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeStore(store)) }()
			if err := a.refuseInside(store); err != nil {
				return err
			}
			id, err := resolveArg(store, args)
			if err != nil {
				return err
			}
			asked, err := store.RequestPause(cmd.Context(), id)
			if err != nil {
				return err
			}
			if asked {
				fmt.Fprintf(a.stderr, "session %s pauses after its current task\n", id)
			} else {
				fmt.Fprintf(a.stderr, "session %s is paused\n", id)
			}
			return nil
		},
	}
}
