package agents

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

type codexLine struct {
	Type    string           `json:"type"`
	Time    string           `json:"timestamp"`
	Payload strictjson.Value `json:"payload"`
}

// codexItem is what is read of a payload: an item of the conversation, or an event.
type codexItem struct {
	Type      string           `json:"type"`
	ID        string           `json:"id"`
	Role      string           `json:"role"`
	Content   strictjson.Value `json:"content"`
	Summary   strictjson.Value `json:"summary"`
	CallID    string           `json:"call_id"`
	Name      string           `json:"name"`
	Arguments strictjson.Value `json:"arguments"` // JSON, as a string
	Input     strictjson.Value `json:"input"`
	Action    strictjson.Value `json:"action"`
	Output    strictjson.Value `json:"output"`
	Status    string           `json:"status"`

	// Of session_meta, turn_context and compacted.
	SessionID string `json:"session_id"`
	ForkOf    string `json:"forked_from_id"`
	Source    struct {
		Subagent struct {
			Spawn struct {
				Parent string `json:"parent_thread_id"`
			} `json:"thread_spawn"`
		} `json:"subagent"`
	} `json:"source"`
	// Of the events of a turn.
	TurnID string `json:"turn_id"`
	Error  struct {
		Message string `json:"message"`
	} `json:"error"`
	Cwd     string `json:"cwd"`
	Model   string `json:"model"`
	Message string `json:"message"`
	Git     struct {
		Remote string `json:"repository_url"`
	} `json:"git"`

	// Of token_count and thread_rolled_back.
	Info struct {
		Total *codexUsage `json:"total_token_usage"`
		Last  *codexUsage `json:"last_token_usage"`
	} `json:"info"`
	Turns int `json:"num_turns"`
}

type codexUsage struct {
	Input  int64 `json:"input_tokens"` // with Cached
	Cached int64 `json:"cached_input_tokens"`
	Output int64 `json:"output_tokens"`
}

func (u *codexUsage) usage() session.Usage {
	return session.Usage{InputTokens: max(u.Input-max(u.Cached, 0), 0), CachedTokens: max(u.Cached, 0), OutputTokens: max(u.Output, 0)}
}

// codexTypes are the types of records that are known. An item's type stands behind its record's.
var codexTypes = []string{
	"compacted", "event_msg", "response_item", "session_meta", "token_usage_record", "turn_context", "world_state",
	"response_item/message", "response_item/reasoning", "response_item/function_call", "response_item/function_call_output",
	"response_item/custom_tool_call", "response_item/custom_tool_call_output", "response_item/local_shell_call",
	"response_item/web_search_call", "response_item/ghost_snapshot", "response_item/compaction", "response_item/compaction_summary",
	"response_item/tool_search_call", "response_item/tool_search_output", "response_item/image_generation_call",
}

// codex turns a record of Codex into items. One that is none of its own is refused with an error.
func (r *record) codex() ([]Item, error) {
	if r.text[0] != '{' {
		return nil, errNoObject
	}
	var l codexLine
	if err := strictjson.UnmarshalLenient(r.text, &l); err != nil {
		return nil, err
	}
	kind, payload := l.content(r.text)
	var it codexItem
	if err := strictjson.UnmarshalLenient(payload, &it); err != nil {
		return nil, err
	}
	name := cmp.Or(kind, "none")
	if kind == "response_item" || kind == "event_msg" {
		name += "/" + it.Type
	}
	count(&r.report.Types, name)
	if kind != "event_msg" && !slices.Contains(codexTypes, name) { // events come and go with each version
		count(&r.report.Unknown, name)
	}
	m := session.Message{Time: timeOf(l.Time)}
	if r.at.Time.IsZero() {
		r.at.Time = m.Time // older versions note a time in the first line only
	}
	r.at.copied(kind, &it)
	switch kind {
	case "response_item":
		if it.fill(&m) && !r.at.told(&m, "item") {
			return r.codexMessage(m, it.ID), nil
		}
	case "compacted":
		m.Role, m.Kind, m.Content = session.RoleSystem, session.KindCompaction, session.Text(it.Message)
		return append(r.codexMessage(m, ""), r.event()...), nil // the record has what the history became
	case "event_msg":
		return r.codexEvent(m, &it), nil
	case "session_meta", "turn_context":
		r.report.Model = cmp.Or(it.Model, r.report.Model)
	}
	return r.event(), nil
}

// content returns the type of a record and what it has. Before it was wrapped, an item stood alone.
func (l *codexLine) content(text []byte) (kind string, payload strictjson.Value) {
	switch {
	case len(l.Payload) > 0:
		return l.Type, l.Payload
	case slices.Contains(codexTypes, "response_item/"+l.Type):
		return "response_item", text
	}
	return l.Type, text
}

// fill makes a message of an item. It returns false if the item is none.
func (it *codexItem) fill(m *session.Message) bool {
	switch it.Type {
	case "message":
		m.Role, m.Content = it.Role, it.Content
		if m.Role == "developer" {
			m.Role, m.Kind = session.RoleSystem, session.KindMeta
		}
		if m.Role == session.RoleUser && injected(it.Content) {
			m.Kind = session.KindMeta
		}
	case "reasoning":
		m.Role, m.Content = session.RoleAssistant, it.Summary
		return len(it.Summary) > len("[]")
	case "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call":
		m.Role = session.RoleAssistant
		m.ToolCalls = []session.ToolCall{{
			ID: bounded(cmp.Or(it.CallID, it.ID, it.Type)), Name: cmp.Or(it.Name, strings.TrimSuffix(it.Type, "_call")), Arguments: it.arguments(),
		}}
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		m.Role, m.ToolCallID, m.Content = session.RoleTool, bounded(it.CallID), it.Output
		if it.Status == "failed" {
			m.Kind = session.KindError
		}
	default:
		return false
	}
	return true
}

// prompt makes a message of an event that has what a person typed. It returns false of another one.
func (it *codexItem) prompt(m *session.Message) bool {
	if it.Type != "user_message" || strings.TrimSpace(it.Message) == "" {
		return false
	}
	return (&codexItem{Type: "message", Role: session.RoleUser, Content: session.Text(it.Message)}).fill(m)
}

// maxPrompts bounds the prompts that were told of once, and the texts of one.
const maxPrompts = 8

// told reports whether the record of the other kind, item or event, has told of a prompt: some versions write both for
// each, in either order, and some only one. Else it notes the prompt, until an answer follows.
func (p *FilePosition) told(m *session.Message, kind string) bool {
	if m.Role == session.RoleAssistant {
		p.Prompts = nil
	}
	if m.Role != session.RoleUser {
		return false
	}
	prints := promptPrints(m.Content)
	for i, known := range p.Prompts {
		of, has, _ := strings.Cut(known, " ")
		if of != kind && slices.ContainsFunc(prints, func(one string) bool { return strings.Contains(has, one) }) {
			p.Prompts = slices.Delete(p.Prompts, i, i+1)
			return true
		}
	}
	p.Prompts = append(p.Prompts, kind+" "+strings.Join(prints, " "))
	p.Prompts = p.Prompts[max(len(p.Prompts)-maxPrompts, 0):]
	return false
}

// promptPrints returns the prints of a content's texts, and of all of them together.
func promptPrints(content strictjson.Value) (prints []string) {
	texts := textsOf(content)
	for _, text := range append(texts[:min(len(texts), maxPrompts)], strings.Join(texts, "")) {
		sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
		prints = append(prints, hex.EncodeToString(sum[:8]))
	}
	return prints
}

// arguments returns what a call was given: JSON that stands in a string is taken out of it.
func (it *codexItem) arguments() strictjson.Value {
	for _, v := range []strictjson.Value{it.Arguments, it.Input, it.Action} {
		if len(v) == 0 {
			continue
		}
		var text string
		if v[0] == '"' && strictjson.UnmarshalLenient(v, &text) == nil && isObject([]byte(text)) {
			return strictjson.Value(text)
		}
		return v
	}
	return nil
}

// injected reports whether the content of a user's message was put in by Codex.
func injected(content strictjson.Value) bool {
	texts := textsOf(content)
	return len(texts) > 0 && slices.ContainsFunc(injections, func(begin string) bool { return strings.HasPrefix(strings.TrimSpace(texts[0]), begin) })
}

// injections are how the texts begin that Codex puts in as the user's.
var injections = []string{
	"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions instructions>", "<turn_aborted>", "<skill>",
}

// maxTurns bounds how many turns can be rolled back.
const maxTurns = 32

// rolled stands in front of the uuid that the next message follows, in FilePosition.Turns.
const rolled = "<"

func (r *record) codexMessage(m session.Message, id string) []Item {
	m.ID = r.id(id)
	if n := len(r.at.Turns); n > 0 && strings.HasPrefix(r.at.Turns[n-1], rolled) {
		m.Parent = strings.TrimPrefix(r.at.Turns[n-1], rolled)
		r.at.Turns = r.at.Turns[:n-1]
	}
	if m.Role == session.RoleUser && m.Kind == "" {
		r.at.Turns = append(r.at.Turns, r.at.Last)
		r.at.Turns = r.at.Turns[max(len(r.at.Turns)-maxTurns, 0):]
	}
	it := r.message(&m)
	if it.Message != nil {
		r.at.Last = m.ID
	}
	return []Item{it}
}

// codexEvent returns the item of an event, and in front of it the message of a prompt that no item has.
func (r *record) codexEvent(m session.Message, e *codexItem) []Item {
	items := r.event() // which has the images of a prompt
	items[0].Usage = r.codexSum(e)
	if e.prompt(&m) && !r.at.told(&m, "event") {
		items = append(r.codexMessage(m, ""), items...)
	}
	return items
}

// codexSum takes what an event says of turns that were taken back, and returns what it says was
// used.
func (r *record) codexSum(e *codexItem) *session.Usage {
	switch {
	case e.Type == "token_count" && e.Info.Total != nil:
		total := e.Info.Total.usage()
		had := e.before(total, r.at)
		r.at.Total = &total
		if r.at.Copied {
			return nil
		}
		return more(total, had)
	case e.Type == "thread_rolled_back" && e.Turns > 0 && len(r.at.Turns) > 0:
		to := r.at.Turns[max(len(r.at.Turns)-e.Turns, 0)]
		r.at.Turns = r.at.Turns[:max(len(r.at.Turns)-e.Turns, 0)]
		if to != "" {
			r.at.Turns = append(r.at.Turns, rolled+to)
		}
	}
	return nil
}

// copied notes whether what follows was copied from the session that a fork is from. Version 0.104 copies all
// records behind one that names that session, up to a turn whose ID is younger than the fork's own; 0.169
// copies none.
func (p *FilePosition) copied(kind string, it *codexItem) {
	switch {
	case kind == "session_meta" && it.ForkOf != "":
		p.Forked, p.ID = true, bounded(it.ID)
	case kind == "session_meta" && p.Forked && bounded(it.ID) != p.ID:
		p.Copied = true
	case it.TurnID > p.ID:
		p.Copied = false
	}
}

// before returns what was used before a sum: the sum that was read last, or what a fork has of the
// session that it is from.
func (it *codexItem) before(total session.Usage, at *FilePosition) (had session.Usage) {
	if at.Total != nil {
		had = *at.Total
	}
	anew := total.OutputTokens < had.OutputTokens || total.InputTokens+total.CachedTokens < had.InputTokens+had.CachedTokens
	if !anew && (at.Total != nil || !at.Forked) {
		return had
	}
	had = session.Usage{} // they count from 0 again
	if it.Info.Last != nil {
		had = *cmp.Or(more(total, it.Info.Last.usage()), &had)
	}
	return had
}
