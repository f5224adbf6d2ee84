package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/report"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

func newSessionShow(a *app) *cobra.Command {
	var format string
	var at uint64
	var messages, full, inFleet bool
	var last string
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "show [ID]",
		Short: "Show a session: its tasks, their states, what they cost",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readSessionIn(cmd.Context(), inFleet, args, func(store *lifecycle.Store, id session.ID) (err error) {
				if messages || full || last != "" {
					return a.showMessages(store, id, last, full)
				}
				owner, holderErr := store.Holder(id) // before the State: a run that ends in between has paused it
				st, seq, err := a.readState(store, id)
				past := cmd.Flags().Changed("at")
				if err == nil && past {
					seq = at
					st, err = store.ReadAt(id, at)
				}
				if err != nil {
					return err
				}
				status := st.Status().Seen(owner != nil || holderErr != nil || past)
				if a.out.machine() {
					return a.printJSON(a.stateJSON(cmd.Context(), store, st, status, seq))
				}
				switch format {
				case "":
					return a.showSession(cmd.Context(), store, st, status, seq)
				case "json", "yaml":
					return a.printFormat(a.stateJSON(cmd.Context(), store, st, status, seq), format)
				case "md":
					return showMarkdown(a.stdout, st, status, seq)
				}
				return usagef("--format %q: give md, json or yaml", format)
			})
		},
	})
	fleetFlag(cmd, &inFleet)
	cmd.Flags().StringVar(&format, "format", "", "`md|json|yaml` in place of the usual text")
	cmd.Flags().BoolVar(&messages, "messages", false, "the conversation instead, as Markdown; each call of a tool is a line")
	cmd.Flags().BoolVar(&full, "full", false, "with --messages: all of what tools were given and answered")
	cmd.Flags().StringVar(&last, "message", "", "with --messages: up to the one with this `UUID`")
	cmd.Flags().Uint64Var(&at, "at", 0, "as it was at record `SEQ` of its log")
	cmd.MarkFlagsMutuallyExclusive("messages", "at")
	cmd.MarkFlagsMutuallyExclusive("messages", "format")
	cmd.MarkFlagsMutuallyExclusive("message", "at")
	cmd.MarkFlagsMutuallyExclusive("message", "format")
	return cmd
}

// stateJSON is state.json with the session's name, its agents' sessions, the status as
// people are shown it, and without the checksum, which is of the file's bytes.
func (a *app) stateJSON(ctx context.Context, store *lifecycle.Store, st *session.State, status session.Status, seq uint64) strictjson.Value {
	data := wire.EncodeState(st, session.Mark{Seq: seq, Incarnation: store.Incarnation(st.ID())})
	if status != st.Status() { // before it there are numbers and the ID only
		data = bytes.Replace(data, fmt.Appendf(nil, `"status":"%s"`, st.Status()), fmt.Appendf(nil, `"status":"%s"`, status), 1)
	}
	if i := bytes.LastIndex(data, []byte(`,"checksum":`)); i >= 0 {
		data = append(data[:i:i], '}')
	}
	data = withMember(data, "agentSessions", a.agentSessions(store, st, seq))
	data = withMember(data, "rateLimits", report.Limits(st))
	data = withMember(data, "contextWindows", report.Windows(st))
	if m, err := store.Meta(st.ID()); err == nil {
		data = withMember(data, "name", m.Name)
	}
	view := transactionView{app: a, store: store}
	defer view.close()
	return withMember(data, "transaction", view.of(ctx, st.ID().String(), st.Header().TransactionID))
}

func (a *app) showSession(ctx context.Context, store *lifecycle.Store, st *session.State, status session.Status, seq uint64) error {
	h, m := st.Header(), st.Totals()
	w := a.stdout
	fmt.Fprintf(w, "session   %s%s\n", st.ID(), parenthesis(store.Incarnation(st.ID())))
	if meta, err := store.Meta(st.ID()); err == nil && meta.Name != "" {
		fmt.Fprintf(w, "name      %s\n", plain.Line(meta.Name))
	}
	fmt.Fprintf(w, "status    %s%s\n", status, parenthesis(string(h.ExitReason)))
	if h.Origin == session.OriginRun {
		fmt.Fprintf(w, "phase     %s, %s\n", h.Phase, h.Step)
	}
	if h.Lineage != nil {
		fmt.Fprintf(w, "from      %s, %s at record %d\n", h.Lineage.From, h.Lineage.Kind, h.Lineage.Seq)
	}
	if h.TransactionID != "" {
		a.showTransactionOf(ctx, store, st.ID().String(), h.TransactionID)
	}
	if h.RequiresValidation {
		fmt.Fprintf(w, "accepted  not yet: lopen session verify %s --accept\n", st.ID())
	}
	showProgress(w, st)
	fmt.Fprintf(w, "created   %s\nupdated   %s\n", h.CreatedAt.Local().Format(time.DateTime), ago(time.Since(h.UpdatedAt)))
	if owner, err := store.Holder(st.ID()); err == nil && owner != nil {
		fmt.Fprintf(w, "held by   %s\n", plain.Line(owner.String()))
	}
	showFolder(w, store, h.Worktree)
	a.showCommand(&h)
	switch {
	case h.Origin == session.OriginHook:
		fmt.Fprintf(w, "prompts   %d\n", h.TurnCount)
	case h.Origin == session.OriginRun && st.NumIterations() > 0:
		fmt.Fprintf(w, "starts    %d, %s in all\n", st.NumIterations(), m.Duration.Round(time.Second))
	}
	showUse(w, &h, m)
	showLimits(w, st)
	if where := a.fetchedFrom; where != "" {
		fmt.Fprintf(w, "fleet     %s (record %d)\n\n", plain.Line(where), seq)
	} else {
		fmt.Fprintf(w, "state     %s (sequence number %d)\n\n", filepath.Join(store.Path(), "sessions", st.ID().String(), "state.json"), seq)
	}
	a.printTree(st, st.Roots(), 0)
	printAgentSessions(w, a.agentSessions(store, st, seq))
	return nil
}

// showProgress prints how far a session is, what was skipped, and what differs from its plan.
func showProgress(w io.Writer, st *session.State) {
	p, made := st.Progress(), st.Header().Origin
	fmt.Fprintf(w, "progress  %d/%d done", p.Done, p.Total)
	if p.Failed > 0 {
		fmt.Fprintf(w, ", %d failed", p.Failed)
	}
	if p.Skipped > 0 {
		fmt.Fprintf(w, ", %d %s", p.Skipped, report.Skipped(made))
	}
	fmt.Fprintln(w)
	if p.Skipped > 0 && made == session.OriginRun {
		fmt.Fprintf(w, "skipped   %s\n", loop.Skipped(st, loop.Selection{}))
	}
	if differs := loop.Differs(st); differs != "" {
		fmt.Fprintf(w, "differs   %s\n", differs)
	}
}

// showUse prints what the agent used.
func showUse(w io.Writer, h *session.Header, m session.Totals) {
	if t := m.InputTokens + m.OutputTokens; t > 0 {
		fmt.Fprintf(w, "tokens    %s in, %s out\n", plain.Count(m.InputTokens), plain.Count(m.OutputTokens))
	}
	if h.TotalCostUSD > 0 {
		fmt.Fprintf(w, "cost      $%.2f\n", h.TotalCostUSD)
	}
}

// shownLimits is how many limits are printed; --json has the others.
const shownLimits = 3

// showLimits prints the newest limits of the agent's provider, and what was used of the model's context.
func showLimits(w io.Writer, st *session.State) {
	all := report.Limits(st)
	for i, l := range all[max(len(all)-shownLimits, 0):] {
		text := l.Text(time.Local)
		if more := len(all) - shownLimits; i == 0 && more > 0 {
			text += fmt.Sprintf(" (and %d before it: --json)", more)
		}
		fmt.Fprintf(w, "limit     %s\n", text)
	}
	if all := report.Windows(st); len(all) > 0 {
		fmt.Fprintf(w, "context   %s\n", report.ContextText(all))
	}
}

// showCommand prints what a run starts, or the agent's own session that a session stands for.
func (a *app) showCommand(h *session.Header) {
	w := a.stdout
	if h.Origin == session.OriginRun {
		fmt.Fprintf(w, "command   %s\n", quoted(h.Settings.Command))
	} else {
		recipes, _ := a.recipes() // a run reports what is malformed
		own := record.Attempt{Agent: h.AgentName, AgentSession: h.AgentSession}
		fmt.Fprintf(w, "agent     %s (%s)\n", opened(own.Agent, own.AgentSession, openSession(own, recipes)), h.Origin)
	}
	if h.Settings.Check != "" {
		fmt.Fprintf(w, "check     %s\n", plain.Shell(h.Settings.Check))
	}
}

// showFolder prints the work tree of a session that has one.
func showFolder(w io.Writer, store *lifecycle.Store, t *session.Worktree) {
	if t != nil {
		fmt.Fprintf(w, "work tree %s\n", plain.Line(t.Folder(store.Project().Name())))
	}
}

// showTransactionOf prints the transaction of a session.
func (a *app) showTransactionOf(ctx context.Context, store *lifecycle.Store, session, id string) {
	view := transactionView{app: a, store: store}
	defer view.close()
	state, problem := "not known here", ""
	if t := view.of(ctx, session, id); t != nil {
		state, problem = string(t.State), t.Problem
	}
	fmt.Fprintf(a.stdout, "in        %s%s\n", plain.Line(id), parenthesis(plain.Line(state)))
	if problem != "" {
		fmt.Fprintf(a.stderr, "warning: transaction %s: %s\n", plain.Line(id), plain.Line(problem))
	}
}

func (a *app) printTree(st *session.State, ids []string, depth int) {
	for _, id := range ids {
		t, _ := st.Task(id)
		name := t.Name
		if n, ok := turns.Prompt(id); ok && st.Header().Origin == session.OriginHook {
			name = fmt.Sprintf("%d  %s", n, name)
		}
		line := fmt.Sprintf("%*s%s %s", 2*depth, "", glyph(t.State), name)
		if text, _ := loop.CommitsOf(t); text != "" {
			line += "  [" + plain.Line(plain.Clip(text, 300)) + "]"
		}
		if t.LastError != "" && t.State != session.TaskComplete {
			line += fmt.Sprintf("  (%s)", t.LastError)
		}
		result, failed := loop.CheckOf(t)
		if result != "" {
			line += "  [check: exit " + plain.Line(result) + "]"
		}
		fmt.Fprintln(a.stdout.Colored(), paint(line, t.State, a.colored(a.stdout)))
		for _, text := range failed {
			fmt.Fprintf(a.stdout, "%*s  | %s\n", 2*depth, "", plain.Line(text))
		}
		a.printTree(st, t.Children, depth+1)
	}
}
