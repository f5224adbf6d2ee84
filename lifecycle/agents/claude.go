package agents

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// claudeLine is what is read of a line. Lines differ: most members are in some of them only.
type claudeLine struct {
	Type      string       `json:"type"`
	UUID      string       `json:"uuid"`
	Parent    string       `json:"parentUuid"`
	SessionID string       `json:"sessionId"`
	Cwd       string       `json:"cwd"`
	Time      string       `json:"timestamp"`
	RequestID string       `json:"requestId"`
	Meta      bool         `json:"isMeta"`
	Compact   bool         `json:"isCompactSummary"`
	APIError  bool         `json:"isApiErrorMessage"`
	Sidechain bool         `json:"isSidechain"`
	Message   claudeAnswer `json:"message"`
	// AskedBy is the session that a request is of, where the line is a copy: a fork has those of its origin.
	AskedBy string `json:"requestSessionId"`
	// Of an attachment. What a person types while the agent works is one.
	Attachment struct {
		Type   string           `json:"type"`
		Prompt strictjson.Value `json:"prompt"`
		Mode   string           `json:"commandMode"`
	} `json:"attachment"`
}

type claudeAnswer struct {
	ID      string           `json:"id"`
	Role    string           `json:"role"`
	Model   string           `json:"model"`
	Content strictjson.Value `json:"content"`
	Usage   *struct {
		Input  int64 `json:"input_tokens"`
		Made   int64 `json:"cache_creation_input_tokens"`
		Cached int64 `json:"cache_read_input_tokens"`
		Output int64 `json:"output_tokens"`
	} `json:"usage"`
}

// claudePart is a part of the content of a message.
type claudePart struct {
	Type    string           `json:"type"`
	ID      string           `json:"id"`
	Name    string           `json:"name"`
	Input   strictjson.Value `json:"input"`
	Answers string           `json:"tool_use_id"`
	Content strictjson.Value `json:"content"`
	Failed  bool             `json:"is_error"`
}

// claudeTypes are the types of records that are known and no messages.
var claudeTypes = []string{
	"agent-name", "ai-title", "api-request", "api-request-blob", "api-request-shape", "atis-latch", "attachment", "attribution-snapshot",
	"content-replacement", "cost-state", "custom-title", "file-history-delta", "file-history-snapshot", "last-prompt", "mode",
	"permission-mode", "pr-link", "progress", "queue-operation", "speculation-accept", "summary", "system", "tag", "task-summary",
	"tools-used", "worktree-state",
}

// synthetic is the model of messages that Claude Code makes up itself.
const synthetic = "<synthetic>"

var errNoObject = errors.New("it is no JSON object")

// claude turns a record of Claude Code into items. One that is none of its own is refused with an error.
func (r *record) claude() ([]Item, error) {
	if r.text[0] != '{' {
		return nil, errNoObject
	}
	var l claudeLine
	if err := strictjson.UnmarshalLenient(r.text, &l); err != nil {
		return nil, err
	}
	count(&r.report.Types, cmp.Or(l.Type, "none"))
	l.queued()
	branch := l.branch(r)
	if l.Type != session.RoleUser && l.Type != session.RoleAssistant || len(l.Message.Content) == 0 {
		if !slices.Contains(claudeTypes, l.Type) {
			count(&r.report.Unknown, cmp.Or(l.Type, "none"))
		}
		return r.event(), nil
	}
	m := session.Message{ID: r.id(l.UUID), Time: timeOf(l.Time), Role: l.Type, Parent: branch, Content: l.Message.Content, Kind: l.kind()}
	if l.Type == session.RoleAssistant {
		m.Usage = l.used(r)
		if l.Message.Model != synthetic {
			r.report.Model = cmp.Or(l.Message.Model, r.report.Model)
		}
	}
	return r.split(m)
}

// queued makes a message of a prompt that was typed while the agent worked. No other line has it.
func (l *claudeLine) queued() {
	if a := &l.Attachment; l.Type == "attachment" && a.Type == "queued_command" && (a.Mode == "" || a.Mode == "prompt") {
		l.Type, l.Message.Content = session.RoleUser, a.Prompt
	}
}

// branch returns the uuid that a line follows, if that is not the line before it. A line of a subagent
// among those of the session, as older versions write them, gets its thread.
func (l *claudeLine) branch(r *record) (parent string) {
	if l.UUID == "" {
		return ""
	}
	if l.Sidechain && r.thread == "" {
		r.thread = r.at.sidechain(bounded(l.UUID), bounded(l.Parent))
		return ""
	}
	if follows := bounded(l.Parent); r.at.Last != "" && l.Parent != "" && follows != r.at.Last {
		parent = follows
	}
	r.at.Last = bounded(l.UUID)
	return parent
}

func (l *claudeLine) kind() string {
	switch {
	case l.Compact:
		return session.KindCompaction
	case l.APIError:
		return session.KindError
	case l.Meta:
		return session.KindMeta
	}
	return ""
}

// id returns the ID of a message: what the record says, or its place.
func (r *record) id(uuid string) string {
	if uuid == "" {
		uuid = "at-" + strconv.FormatInt(r.offset, 16)
		if r.nth > 0 {
			uuid += "-" + strconv.Itoa(r.nth+1)
		}
	}
	return bounded(uuid)
}

// request returns the ID of the request that a line is of, or "".
func (l *claudeLine) request() string { return bounded(cmp.Or(l.RequestID, l.Message.ID)) }

// used returns what a line adds to the usage of its request: each of its lines has all that was
// known by then.
func (l *claudeLine) used(r *record) *session.Usage {
	u, id := l.Message.Usage, l.request()
	if u == nil || id == "" || l.AskedBy != "" && l.AskedBy != l.SessionID {
		return nil
	}
	if r.at.Copied = r.at.Copied && r.asked(id); r.at.Copied {
		return nil
	}
	now := session.Usage{InputTokens: max(u.Input, 0) + max(u.Made, 0), OutputTokens: max(u.Output, 0), CachedTokens: max(u.Cached, 0)}
	var had session.Usage
	if i := slices.IndexFunc(r.at.Asked, func(a requestUsage) bool { return a.ID == id }); i >= 0 {
		had = r.at.Asked[i].Usage
		r.at.Asked = slices.Delete(r.at.Asked, i, i+1)
	}
	sum := session.Usage{
		InputTokens: max(now.InputTokens, had.InputTokens), OutputTokens: max(now.OutputTokens, had.OutputTokens),
		CachedTokens: max(now.CachedTokens, had.CachedTokens),
	}
	r.at.Asked = append(r.at.Asked, requestUsage{id, sum})
	most := maxAsked
	if len(r.at.Aside) > 0 {
		most = maxAside
	}
	r.at.Asked = r.at.Asked[max(len(r.at.Asked)-most, 0):]
	return more(sum, had)
}

// more returns by how much a usage is above another, or nil if it is not.
func more(now, had session.Usage) *session.Usage {
	d := session.Usage{
		InputTokens: max(now.InputTokens-had.InputTokens, 0), OutputTokens: max(now.OutputTokens-had.OutputTokens, 0),
		CachedTokens: max(now.CachedTokens-had.CachedTokens, 0),
	}
	if d == (session.Usage{}) {
		return nil
	}
	return &d
}

// split moves the tool calls of a message's content to where they belong, and makes a message of
// each answer of a tool.
func (r *record) split(m session.Message) ([]Item, error) {
	content := m.Content
	if content[0] != '[' || !bytes.Contains(content, []byte(`"tool_`)) {
		return []Item{r.message(&m)}, nil
	}
	var parts []strictjson.Value
	if err := strictjson.UnmarshalLenient(content, &parts); err != nil {
		return nil, err
	}
	var answers []*session.Message
	var rest [][]byte
	for _, raw := range parts {
		var p claudePart
		_ = strictjson.UnmarshalLenient(raw, &p) // a part of another kind stays as it is
		switch a := p.answer(&m); {
		case a != nil:
			answers = append(answers, a)
		case p.Type == "tool_use" && m.Role == session.RoleAssistant && p.ID != "":
			m.ToolCalls = append(m.ToolCalls, session.ToolCall{ID: bounded(p.ID), Name: p.Name, Arguments: p.Input})
		default:
			rest = append(rest, raw)
		}
	}
	if m.Content = nil; len(rest) > 0 {
		m.Content = slices.Concat([]byte{'['}, bytes.Join(rest, []byte{','}), []byte{']'})
	}
	if len(answers) == 0 || len(rest) > 0 {
		answers = append(answers, &m)
	}
	return r.numbered(answers, m.ID, m.Parent), nil
}

// numbered returns the messages of one record. The first has the record's ID, and follows what the
// record does.
func (r *record) numbered(all []*session.Message, id, parent string) []Item {
	items := make([]Item, len(all))
	for i, m := range all {
		if m.ID, m.Parent = id, parent; i > 0 {
			m.ID, m.Parent = fmt.Sprintf("%s.%d", bounded(id), i+1), ""
		}
		items[i] = r.message(m)
	}
	return items
}

// answer returns the answer of a tool that a part of a message is, or nil.
func (p *claudePart) answer(of *session.Message) *session.Message {
	if p.Type != "tool_result" || of.Role != session.RoleUser || p.Answers == "" {
		return nil
	}
	a := &session.Message{Time: of.Time, Role: session.RoleTool, ToolCallID: bounded(p.Answers), Content: p.Content}
	if p.Failed {
		a.Kind = session.KindError
	}
	return a
}

// unknownTime is that of a message in a history without times.
var unknownTime = time.Unix(0, 0).UTC()

// timeOf reads a time, which is zero if there is none.
func timeOf(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t.UTC()
}
