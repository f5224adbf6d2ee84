package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newMCP(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve what is stored to an agent, over the Model Context Protocol on stdin and stdout",
		Long: `Serve what is stored of this project to an agent, over the Model Context Protocol on
stdin and stdout. The agent starts it:

  claude mcp add lopen -- lopen mcp
  codex mcp add lopen -- lopen mcp

Its tools only read: search, session_log, changes_since, last_failure. It ends when
stdin is closed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if isTerminal(a.stdin) {
				return usagef("an agent starts this and talks to it over stdin: see lopen mcp --help")
			}
			return mcp.Serve(cmd.Context(), a.stdin, a.stdout.Unwrap(), versionText(), &mcpSource{a})
		},
	}
}

// An mcpSource reads the project for the tools, with what the commands read with.
type mcpSource struct{ app *app }

// answerData is the data of an answer, which embeds [noted].
type answerData interface{ warn(lines []string) }

// A toolAnswer is the text of an answer while it is made, and the warnings that a command would
// print.
type toolAnswer struct {
	*app
	text     bytes.Buffer
	warnings bytes.Buffer
	about    chosen
	which    string // the line that says what about is, where no session was named
}

// A noted is the part of all data that has the warnings: clients may pass on nothing but the data.
type noted struct {
	Warnings []string `json:"warnings,omitempty"`
}

func (n *noted) warn(lines []string) { n.Warnings = lines }

// maxWarnings bounds the warnings of an answer, in bytes of JSON.
const maxWarnings = 4 << 10

// warned are the lines of warnings that have room in an answer.
func warned(text string) (lines []string) {
	all := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	size := 0
	for i, line := range all {
		line = plain.Clip(line, 500)
		if size += sizeAsJSON(line); size > maxWarnings {
			return append(lines, fmt.Sprintf("... and %d more lines of warnings", len(all)-i))
		}
		lines = append(lines, line)
	}
	return lines
}

// answer makes the answer of one call. fn prints the text, as a command prints to stdout, and
// returns the data. The store is opened anew: the project may have none when the server starts.
func (m *mcpSource) answer(tool string, fn func(*toolAnswer) (answerData, error)) (mcp.Answer, error) {
	one := *m.app
	one.out = outputFlags{}
	t := &toolAnswer{app: &one}
	one.stdout, one.stderr = terminal.New(&t.text), terminal.New(&t.warnings)
	data, err := fn(t)
	m.app.logger.Debug().Str("tool", tool).Err(err).Msg("a tool was called")
	if errors.Is(err, lifecycle.ErrNoStore) {
		return mcp.Answer{}, errors.New("nothing is stored here: there is no .lopen; ask the person to type: lopen init")
	}
	if err != nil {
		fmt.Fprintf(t.stderr, "%v\n%s%s", err, hint(err), t.which)
	}
	if closed := errors.Join(t.stdout.Close(), t.stderr.Close()); err != nil || closed != nil {
		return mcp.Answer{}, errors.New(t.warnings.String())
	}
	lines := warned(t.warnings.String())
	data.warn(lines)
	return mcp.Answer{Text: strings.Join(append(lines, t.text.String()), "\n"), Data: data}, nil
}

// readLog is readSession for what is in a session's log, and sets about: of one that is damaged, which is warned of,
// that is what is intact. task is found among those that the log knows.
func (t *toolAnswer) readLog(name, task string, fn func(store *lifecycle.Store, id session.ID, task string) error) error {
	return t.readSession([]string{name}, func(store *lifecycle.Store, id session.ID) (err error) {
		if err := t.choose(store, id, name); err != nil {
			return err
		}
		if err := t.warnOfDamage(store, id); err != nil {
			return err
		}
		if task != "" {
			if task, err = loggedTask(store, id, task); err != nil {
				return err
			}
		}
		return fn(store, id, task)
	})
}

// warnOfDamage warns of what is missing in a session's log, and of a session that is damaged.
func (t *toolAnswer) warnOfDamage(store *lifecycle.Store, id session.ID) error {
	if st, _, err := store.Read(id); err != nil && readOnly(st, err) == "" {
		fmt.Fprintf(t.stderr, "warning: what is intact of session %s: %v\n%s", id, err, hint(err))
	}
	gaps, err := store.Gaps(id)
	for _, g := range gaps {
		fmt.Fprintf(t.stderr, "warning: of session %s %s: lopen session verify %s\n", id, g, id)
	}
	return err
}

// atMost bounds how many a tool was asked for.
func atMost(n, usual, most int) (int, error) {
	if n < 0 || n > most {
		return 0, usagef("limit %d: give 1 to %d", n, most)
	}
	if n == 0 {
		return usual, nil
	}
	return n, nil
}

// clippedBegin is the end of a text that is too long.
func clippedBegin(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return "... " + endOf(s, most)
}

// endOf is the end of a text that is longer, from the begin of a line where one is near.
func endOf(s string, most int) string {
	s = s[len(s)-most:]
	if _, rest, ok := strings.Cut(s, "\n"); ok && rest != "" {
		s = rest
	}
	return strings.ToValidUTF8(s, "")
}

// Search implements [mcp.Source].
func (m *mcpSource) Search(ctx context.Context, in mcp.Search) (mcp.Answer, error) {
	return m.answer("search", func(t *toolAnswer) (answerData, error) { return t.search(ctx, in) })
}

// SessionLog implements [mcp.Source].
func (m *mcpSource) SessionLog(_ context.Context, in mcp.SessionLog) (mcp.Answer, error) {
	return m.answer("session_log", func(t *toolAnswer) (answerData, error) { return t.sessionLog(in) })
}

// ChangesSince implements [mcp.Source].
func (m *mcpSource) ChangesSince(ctx context.Context, in mcp.ChangesSince) (mcp.Answer, error) {
	return m.answer("changes_since", func(t *toolAnswer) (answerData, error) { return t.changesSince(ctx, in) })
}

// LastFailure implements [mcp.Source].
func (m *mcpSource) LastFailure(ctx context.Context, in mcp.LastFailure) (mcp.Answer, error) {
	return m.answer("last_failure", func(t *toolAnswer) (answerData, error) { return t.lastFailure(ctx, in) })
}
