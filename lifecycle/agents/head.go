package agents

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

const (
	// headLines and headBytes bound what Head reads of a history.
	headLines = 64
	headBytes = 4 << 20
	// maxTitle bounds a title, in runes.
	maxTitle = 200
)

// headLine is what Open and Head read of a line of either agent.
type headLine struct {
	claudeLine
	Payload codexItem `json:"payload"`
	// Of a rollout, before its records had a payload.
	ID      string           `json:"id"` // in the first line
	Role    string           `json:"role"`
	Content strictjson.Value `json:"content"`
}

// own returns the ID of a rollout, and that of the session that it belongs to.
func (l *headLine) own() (id, session string) {
	if l.Type == "session_meta" {
		return l.Payload.ID, cmp.Or(l.Payload.SessionID, l.Payload.Source.Subagent.Spawn.Parent)
	}
	return l.ID, ""
}

// beginsRollout reports whether a line is the first one of a rollout.
func (l *headLine) beginsRollout() bool {
	return l.Type == "session_meta" || l.Type == "" && l.ID != "" && l.Time != ""
}

// firstLine reads the first line of a file.
func firstLine(path string) (headLine, error) {
	var first headLine
	err := headOf(path, func(l *headLine) bool {
		first = *l
		return false
	})
	return first, err
}

// headOf calls fn with the first lines of a file that can be read, until it returns false.
func headOf(path string, fn func(l *headLine) bool) error {
	from, err := openLines(file{path: path}, &FilePosition{Until: headBytes}, Claude)
	if err != nil {
		return err
	}
	defer from.Close()
	for all := from.lines; all.number < headLines; {
		l, err := all.next()
		if err != nil && !errors.Is(err, io.EOF) && all.number == 0 {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err != nil {
			return nil //nolint:nilerr // a damaged file has a head, as far as it can be read
		}
		if !each(l.text, fn) {
			return nil
		}
	}
	return nil
}

// Head reads the first lines of a history. The error is one of the file, or says that none of these
// lines is of the agent.
func (h *History) Head() (Head, error) {
	var head Head
	if h.head != nil {
		return *h.head, nil
	}
	ours, others := false, false
	err := headOf(h.Path, func(l *headLine) bool {
		ours, others = ours || l.of(h.Agent), true
		m := l.message()
		head.Cwd = cmp.Or(head.Cwd, l.Payload.Cwd, l.Cwd)
		head.Remote = cmp.Or(head.Remote, l.Payload.Git.Remote)
		if head.Title == "" && m.Role == session.RoleUser && m.Kind == "" && !l.Meta && !l.Compact {
			head.Title = title(m.Content)
		}
		return !ours || head.Cwd == "" || head.Title == ""
	})
	if err == nil && !ours && (others || h.Bytes <= headBytes) {
		return Head{}, fmt.Errorf("not a history of %s: %s", h.Agent, h.Path)
	}
	if err == nil {
		h.head = &head
	}
	return head, err
}

// of reports whether a line has a type that an agent gives its records.
func (l *headLine) of(agent string) bool {
	if agent == Codex {
		return slices.Contains(codexTypes, l.Type) || slices.Contains(codexTypes, "response_item/"+l.Type) || l.ID != "" && l.Type == ""
	}
	return l.Type == session.RoleUser || l.Type == session.RoleAssistant || slices.Contains(claudeTypes, l.Type)
}

// message returns what a line of the head says, as far as Head needs it.
func (l *headLine) message() (m session.Message) {
	switch l.Type {
	case session.RoleUser:
		return session.Message{Role: session.RoleUser, Content: l.Message.Content}
	case "response_item":
		l.Payload.fill(&m)
	case "message":
		(&codexItem{Type: l.Type, Role: l.Role, Content: l.Content}).fill(&m)
	case "event_msg":
		l.Payload.prompt(&m)
	}
	return m
}

// title returns the first words of a content that a person wrote, on one line. What the agent or an editor puts
// in front of them stands in tags.
func title(content strictjson.Value) string {
	for _, text := range textsOf(content) {
		if words := oneLine(untagged(text)); words != "" {
			return words
		}
	}
	return ""
}

// textsOf returns the texts of a content: of its parts, or the one that it is.
func textsOf(content strictjson.Value) (texts []string) {
	var text string
	var parts []struct {
		Text string `json:"text"`
	}
	if strictjson.UnmarshalLenient(content, &text) == nil && text != "" {
		return []string{text}
	}
	_ = strictjson.UnmarshalLenient(content, &parts) // else there are none
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return texts
}

// untagged returns a text without the tags at its beginning and what is in them.
func untagged(text string) string {
	for {
		text = strings.TrimSpace(text)
		end := strings.IndexByte(text, '>')
		if end < 2 || text[0] != '<' || strings.ContainsFunc(text[1:end], func(r rune) bool { return !(r >= 'a' && r <= 'z' || r == '-' || r == '_') }) {
			return text
		}
		_, behind, ok := strings.Cut(text, "</"+text[1:end]+">")
		if !ok {
			return text
		}
		text = behind
	}
}

// oneLine returns the first words of a text.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 8*maxTitle)]), " ")
	if runes := []rune(text); len(runes) > maxTitle {
		text = string(runes[:maxTitle-1]) + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
