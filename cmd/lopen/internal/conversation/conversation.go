package conversation

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

const (
	// heading begins each heading.
	heading = "## #"
	// maxLine bounds what of a tool is on its line, in bytes.
	maxLine = 160
	// maxOpen bounds the calls whose names are remembered until their answers.
	maxOpen = session.MaxOpenCalls
)

// A Writer renders messages. It belongs to one goroutine.
type Writer struct {
	to   io.Writer
	full bool
	n    int // messages so far

	speaker string // of the last heading
	listed  bool   // the last line is one of a list
	open    map[string]string
	err     error
}

// New returns a Writer to to. With full set nothing is folded.
func New(to io.Writer, full bool) *Writer {
	return &Writer{to: to, full: full, open: map[string]string{}}
}

// Message renders the next message. The error is that of the first write that failed.
func (w *Writer) Message(m *session.Message) error {
	w.n++
	speaker := who(m)
	if m.Role == session.RoleTool {
		speaker = w.speaker // the answer stands below the call
		if m.Thread != "" && !strings.HasSuffix(speaker, subagentOf(m)) || speaker == "" {
			speaker = session.RoleAssistant + subagentOf(m)
		}
	}
	if branch := m.Parent != "" && m.Role == session.RoleUser; speaker != w.speaker || branch || m.Kind == session.KindCompaction {
		w.heading(m, speaker, branch)
	}
	switch {
	case m.Role == session.RoleTool:
		w.answer(m)
	case m.Kind == session.KindMeta && !w.full:
		w.item("put in by the agent: %s", oneLine(text(m.Content)))
	default:
		w.content(m.Content)
	}
	for _, c := range m.ToolCalls {
		w.call(&c)
	}
	return w.err
}

// Gap says that messages are missing, and why.
func (w *Writer) Gap(why error) error {
	w.item("not readable: %s", plain.Line(why.Error()))
	return w.err
}

func who(m *session.Message) string {
	name := m.Role
	if m.Kind == session.KindCompaction {
		name = "compaction"
	}
	return name + subagentOf(m)
}

func subagentOf(m *session.Message) string {
	if m.Thread == "" {
		return ""
	}
	return ", subagent " + plain.Line(m.Thread)
}

func (w *Writer) heading(m *session.Message, speaker string, branch bool) {
	w.speaker = speaker
	after := ""
	if branch {
		after = ", a branch after " + plain.Line(m.Parent)
	}
	if w.listed {
		w.printf("\n")
	}
	w.printf("%s%d %s, %s%s\n\n", heading, w.n, speaker, m.Time.UTC().Format(time.DateTime), after)
	w.listed = false
}

// content renders a text, or the parts of one.
func (w *Writer) content(content strictjson.Value) {
	if len(content) == 0 {
		return
	}
	if content[0] != '[' {
		w.text(text(content))
		return
	}
	var parts []part
	if err := foreign(content, &parts); err != nil {
		w.text(asWritten(content))
		return
	}
	for _, p := range parts {
		switch said := p.said(); {
		case p.thought() && !w.full:
			w.item("thought: %s", oneLine(said))
		case p.thought():
			w.item("thought:")
			w.fenced("", said)
		case said != "":
			w.text(said)
		default:
			w.item("%s", oneLine(p.label()))
		}
	}
}

// text renders a text as it is.
func (w *Writer) text(s string) {
	if s = strings.TrimRight(s, "\n"); s == "" {
		return
	}
	if w.listed {
		w.printf("\n")
	}
	w.listed = false
	for line := range strings.Lines(s) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), heading) {
			w.printf("\\")
		}
		w.printf("%s", line)
	}
	w.printf("\n\n")
}

func (w *Writer) call(c *session.ToolCall) {
	if len(w.open) >= maxOpen {
		clear(w.open)
	}
	w.open[c.ID] = c.Name
	if !w.full {
		w.item("**%s** %s", plain.Line(c.Name), oneLine(asWritten(c.Arguments)))
		return
	}
	w.item("**%s**", plain.Line(c.Name))
	var b bytes.Buffer
	if len(c.Arguments) > 0 && strictjson.Indent(&b, c.Arguments) == nil {
		w.fenced("json", asWritten(b.Bytes()))
	}
}

func (w *Writer) answer(m *session.Message) {
	name := w.open[m.ToolCallID]
	delete(w.open, m.ToolCallID)
	if name == "" {
		name = "a tool"
	}
	said := "answered"
	if m.Kind == session.KindError {
		said = "failed"
	}
	out := text(m.Content)
	if !w.full {
		w.item("%s %s: %s", plain.Line(name), said, oneLine(out))
		return
	}
	w.item("%s %s:", plain.Line(name), said)
	w.fenced("", out)
}

// item renders a line of a list.
func (w *Writer) item(format string, args ...any) {
	w.printf("- "+strings.TrimRight(format, " ")+"\n", args...)
	w.listed = true
}

// fenced renders a text in a block that no line of it ends.
func (w *Writer) fenced(language, s string) {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	w.printf("\n%s%s\n%s\n%s\n\n", fence, language, strings.TrimRight(s, "\n"), fence)
	w.listed = false
}

func (w *Writer) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.to, format, args...)
	}
}

// oneLine is a text on one line, cut.
func oneLine(s string) string {
	whole := strings.TrimSpace(s)
	line := plain.Line(plain.Clip(strings.Join(strings.Fields(plain.Clip(whole, 8*maxLine)), " "), maxLine))
	if len(line) < len(whole) {
		line += fmt.Sprintf(" … (%d bytes)", len(whole))
	}
	return line
}
