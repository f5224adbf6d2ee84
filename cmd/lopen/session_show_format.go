package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/report"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// maxYAML bounds the JSON that is turned into YAML, in bytes: that takes two hundred times
// the memory.
const maxYAML = 512 << 10

// printFormat prints JSON indented, or as YAML.
func (a *app) printFormat(data strictjson.Value, format string) error {
	if format != "yaml" {
		return strictjson.Indent(a.stdout.JSON(), data)
	}
	if len(data) > maxYAML {
		return usagef("--format yaml takes a session of %d bytes of JSON at most, and this one has %d: give --format json", maxYAML, len(data))
	}
	var tree any
	err := yaml.UnmarshalWithOptions(data, &tree, yaml.UseOrderedMap())
	if err != nil {
		return fmt.Errorf("write yaml: %w", err)
	}
	out, err := yaml.MarshalWithOptions(tree, yaml.CustomMarshaler(yamlString))
	if err != nil {
		return fmt.Errorf("write yaml: %w", err)
	}
	_, err = a.stdout.Write(out)
	return err
}

// yamlString writes a string between quotation marks where a rune of it is to be seen as
// an escape sequence: elsewhere YAML has none.
func yamlString(s string) ([]byte, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return !plain.Visible(r) && r != '\n' && r != '\t' }) {
		return strconv.AppendQuote(nil, s), nil
	}
	return yaml.Marshal(s)
}

// showMarkdown prints a session for a report or a pull request.
func showMarkdown(w io.Writer, st *session.State, status session.Status, seq uint64) error {
	h, p, m := st.Header(), st.Progress(), st.Totals()
	fmt.Fprintf(w, "# %s\n\n", st.ID())
	fmt.Fprintf(w, "- status: %s%s\n- phase: %s, %s\n- progress: %d/%d done, %d failed, %d %s\n- record: %d, %s\n", status, parenthesis(string(h.ExitReason)),
		h.Phase, h.Step, p.Done, p.Total, p.Failed, p.Skipped, report.Skipped(h.Origin), seq, h.UpdatedAt.UTC().Format(time.RFC3339))
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
		line := fmt.Sprintf("%s- [%s] %s", strings.Repeat("  ", depth), tick(t.State == session.TaskComplete), plain.Markdown(t.Name))
		switch t.State {
		case session.TaskComplete, session.TaskPending:
		case session.TaskSkipped:
			line += " (" + report.Skipped(st.Header().Origin) + ")"
		default:
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
