package conversation

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
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
	seed    maphash.Seed
	numbers map[uint64]int // of the messages, by the hash of what identifies them
	err     error
}

// New returns a Writer to to. With full set nothing is folded.
func New(to io.Writer, full bool) *Writer {
	return &Writer{to: to, full: full, open: map[string]string{}, seed: maphash.MakeSeed(), numbers: map[uint64]int{}}
}

// Message renders the next message. The error is that of the first write that failed.
func (w *Writer) Message(m *session.Message) error {
	w.n++
	if m.ID != "" {
		w.numbers[w.key(m, m.ID)] = w.n
	}
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
		w.item("put in by the agent: %s", plain.Code(oneLine(text(m.Content))))
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
	w.item("not readable: %s", plain.Markdown(why.Error()))
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
	return ", subagent " + plain.Markdown(m.Thread)
}

func (w *Writer) heading(m *session.Message, speaker string, branch bool) {
	w.speaker = speaker
	after := ""
	if branch {
		after = ", a branch"
		if n := w.numbers[w.key(m, m.Parent)]; n > 0 { // else it follows what is no message
			after += fmt.Sprintf(" after #%d", n)
		}
	}
	if w.listed {
		w.printf("\n")
	}
	w.printf("%s%d %s, %s%s\n\n", heading, w.n, speaker, m.Time.Local().Format(time.DateTime), after)
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
	if err := strictjson.UnmarshalLenient(content, &parts); err != nil {
		w.text(plain.AsWritten(content))
		return
	}
	for _, p := range parts {
		switch said := p.said(); {
		case p.thought() && !w.full:
			w.item("thought: %s", plain.Markdown(oneLine(said)))
		case p.thought():
			w.item("thought:")
			w.fenced("", said)
		case said != "":
			w.text(said)
		default:
			w.item("%s", plain.Code(oneLine(p.label())))
		}
	}
}

// text renders a text as it is, or as a quotation where it could reach beyond itself.
func (w *Writer) text(s string) {
	if s = strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\r\n"); s == "" {
		return
	}
	if w.listed {
		w.printf("\n")
	}
	w.listed = false
	if !reaches(s) {
		w.printf("%s\n\n", s)
		return
	}
	for line := range strings.Lines(s) {
		if looksOurs().MatchString(line) {
			line = strings.Replace(line, "#", "\\#", 1)
		}
		w.printf("> %s", line)
	}
	w.printf("\n\n")
}

func (w *Writer) call(c *session.ToolCall) {
	if len(w.open) >= maxOpen {
		clear(w.open)
	}
	name := w.name(plain.Markdown(c.Name))
	w.open[c.ID] = name
	if !w.full {
		w.item("**%s** %s", name, plain.Code(oneLine(plain.AsWritten(c.Arguments))))
		return
	}
	w.item("**%s**", name)
	var b bytes.Buffer
	if len(c.Arguments) > 0 && strictjson.Indent(&b, c.Arguments) == nil {
		w.fenced("json", plain.AsWritten(b.Bytes()))
	}
}

// name returns the name of a tool, with a number while another call of it has no answer.
func (w *Writer) name(tool string) string {
	taken := map[string]bool{}
	for _, name := range w.open {
		taken[name] = true
	}
	name := tool
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s (%d)", tool, n)
	}
	return name
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
		w.item("%s %s: %s", name, said, plain.Code(oneLine(out)))
		return
	}
	w.item("%s %s:", name, said)
	w.fenced("", out)
}

func (w *Writer) key(m *session.Message, id string) uint64 {
	return maphash.String(w.seed, m.Thread+"\x00"+id)
}

// item renders a line of a list.
func (w *Writer) item(format string, args ...any) {
	w.printf("- "+strings.TrimRight(format, " ")+"\n", args...)
	w.listed = true
}

// fenced renders a text in a block that no line of it ends.
func (w *Writer) fenced(language, s string) {
	w.printf("\n%s\n\n", plain.Fence(language, strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\r\n")))
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
