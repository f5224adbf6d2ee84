package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// printFormat prints JSON indented, or as YAML.
func (a *app) printFormat(data json.RawMessage, format string) error {
	var out []byte
	if format == "yaml" {
		var err error
		if out, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
	} else {
		var b bytes.Buffer
		if err := json.Indent(&b, data, "", "  "); err != nil {
			return err
		}
		b.WriteByte('\n')
		out = b.Bytes()
	}
	_, err := a.stdout.Write(out)
	return err
}

// showMarkdown prints a session for a report or a pull request.
func showMarkdown(w io.Writer, st *session.State, status session.Status, seq uint64) error {
	h, p, m := st.Header(), st.Progress(), st.Totals()
	fmt.Fprintf(w, "# %s\n\n", st.ID())
	fmt.Fprintf(w, "- status: %s%s\n- phase: %s, %s\n- progress: %d/%d done, %d failed, %d skipped\n- record: %d, %s\n", status, parenthesis(string(h.ExitReason)),
		h.Phase, h.Step, p.Done, p.Total, p.Failed, p.Skipped, seq, h.UpdatedAt.UTC().Format(time.RFC3339))
	if m.Iterations > 0 {
		fmt.Fprintf(w, "- the command ran %d times, %s in all\n", m.Iterations, m.Duration.Round(time.Second))
	}
	if t := m.InputTokens + m.OutputTokens; t > 0 {
		fmt.Fprintf(w, "- tokens: %d in, %d out\n", m.InputTokens, m.OutputTokens)
	}
	fmt.Fprint(w, "\n## Tasks\n\n")
	return markdownTasks(w, st, st.Roots(), 0)
}

func markdownTasks(w io.Writer, st *session.State, ids []string, depth int) error {
	for _, id := range ids {
		t, _ := st.Task(id)
		box := " "
		if t.State == session.TaskComplete {
			box = "x"
		}
		line := fmt.Sprintf("%s- [%s] %s", strings.Repeat("  ", depth), box, printable(t.Name))
		if t.State != session.TaskComplete && t.State != session.TaskPending {
			line += " (" + string(t.State) + ")"
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
		if err := markdownTasks(w, st, t.Children, depth+1); err != nil {
			return err
		}
	}
	return nil
}
