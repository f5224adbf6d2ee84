package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/report"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// report prints one report of all modules.
func (w *workCall) report(ctx context.Context, all *roster) {
	var parts []report.Part
	var steps []report.Step
	for _, m := range all.members {
		part := report.Part{Module: m.module, Done: m.over && m.err == nil, How: oneLine(m.how())}
		if m.ran != (session.ID{}) {
			var err error
			m.branch = w.newest(m.module)
			part.Branch = m.branch + w.uncommitted(ctx, m)
			if part.Report, err = w.app.report(w.store, m.ran, time.Time{}); err != nil {
				fmt.Fprintf(w.stderr, "warning: no report of %s: %v\n", m.module, err)
			}
		}
		parts = append(parts, part)
		for line := range strings.Lines(hint(m.err)) { // a way, and most have a command
			way, command, found := strings.Cut(strings.TrimSpace(line), ": ")
			step := report.Step{What: m.module + ": " + way}
			if found {
				step.Commands = []string{strings.TrimSpace(command)}
			}
			steps = append(steps, step)
		}
	}
	merge, err := w.toMerge(ctx, all)
	if err != nil && child.Killed() { // meanwhile
		merge, err = w.toMerge(ctx, all)
	}
	if err != nil {
		fmt.Fprintf(w.stderr, "warning: what there is to merge is not known: %v\n", err)
	}
	steps = append(steps, merge...)
	fmt.Fprintln(w.stderr)
	if err := report.Several(w.stderr, time.Local, parts, steps); err != nil {
		fmt.Fprintf(w.stderr, "warning: no report: %v\n", err)
	}
	fmt.Fprintln(w.stderr)
}

// oneLine has the lines of a text after each other: the report fills its paragraphs itself.
func oneLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines[:len(lines)-1] {
		if lines[i] = strings.TrimSpace(lines[i]); !strings.HasSuffix(lines[i], ":") {
			lines[i] += ";"
		}
	}
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

// uncommitted says what of a module is in its work tree alone, "" for nothing.
// After a second signal it is not asked.
func (w *workCall) uncommitted(ctx context.Context, m *member) string {
	st, _, err := w.store.Read(m.ran)
	if err != nil || m.branch == "" || child.Killed() {
		return ""
	}
	tree, err := w.openRepository(ctx, st.Header().Worktree.Folder(w.project))
	if err != nil {
		if child.Killed() { // meanwhile
			return ""
		}
		return ", without its work tree"
	}
	paths, err := tree.Uncommitted(ctx)
	if err != nil || len(paths) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s not committed in its work tree (%s)", plain.Some(len(paths), "file"), firstOf(paths))
}
