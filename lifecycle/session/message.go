package session

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Message is one message of the conversation between a loop and its model.
type Message struct {
	ID         string           `json:"uuid"`
	Time       time.Time        `json:"timestamp"`
	Role       string           `json:"role"`              // one of the Role constants
	Content    strictjson.Value `json:"content,omitempty"` // a string, or what the model's API uses instead
	ToolCalls  []ToolCall       `json:"toolCalls,omitempty"`
	ToolCallID string           `json:"toolCallId,omitempty"` // the call that a message of RoleTool answers
	Usage      *Usage           `json:"usage,omitempty"`
	// Thread is the subagent whose conversation the message is a part of; "" is the session's own.
	Thread string `json:"thread,omitempty"`
	// Parent is what the message follows, where that is not the one before it in its thread: the
	// conversation branches there. It is the uuid of a message or of an event.
	Parent string `json:"parent,omitempty"`
	Kind   string `json:"kind,omitempty"` // one of the Kind constants, or ""
}

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// The kinds of messages that are not what their role alone says.
const (
	KindCompaction = "compaction" // a summary that takes the place of all that was said before it
	KindError      = "error"      // the answer of a tool that failed, or an error of the model's API
	KindMeta       = "meta"       // put in by the agent: neither a person nor the model said it
)

// maxName bounds the ID of a message, of its thread and parent, and of a tool call, in bytes. MaxOpenCalls bounds the
// tool calls of one message, and the open calls that a record names, so that they fit into a
// record even if every character of their IDs has to be escaped.
const (
	maxName      = 128
	MaxOpenCalls = 1024
)

// A ToolCall is what a model asks the loop to do.
type ToolCall struct {
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Arguments strictjson.Value `json:"arguments,omitempty"`
}

// Usage is what a message cost, in tokens.
type Usage struct {
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	CachedTokens int64 `json:"cachedTokens,omitempty"`
}

// Text returns a plain text as the content of a Message.
func Text(s string) strictjson.Value {
	data, err := strictjson.Marshal(s)
	if err != nil { // does not happen for a string
		return nil
	}
	return data
}

// Validate returns an error if a Message lacks an ID, a time, a known role, the call that a
// tool answers, or an ID of a tool call, or if one of these is too long. It does not check
// that content and arguments are JSON; encoding the Message does.
func (m *Message) Validate() error {
	switch {
	case m.ID == "" || len(m.ID) > maxName:
		return fmt.Errorf("a message's uuid has 1 to %d bytes", maxName)
	case !utf8.ValidString(m.ID): // the replacement of invalid bytes would make it longer
		return errors.New("a message's uuid is UTF-8")
	case m.Time.IsZero():
		return errors.New("a message has a timestamp")
	case !slices.Contains([]string{RoleSystem, RoleUser, RoleAssistant, RoleTool}, m.Role):
		return fmt.Errorf("the role %q is none of system, user, assistant and tool", m.Role)
	case m.Role == RoleTool && m.ToolCallID == "":
		return errors.New("a message of the role tool names the call that it answers")
	case len(m.ToolCallID) > maxName:
		return fmt.Errorf("the ID of the call that a message answers has %d bytes, more than %d", len(m.ToolCallID), maxName)
	case len(m.ToolCalls) > MaxOpenCalls:
		return fmt.Errorf("a message has %d tool calls, more than %d", len(m.ToolCalls), MaxOpenCalls)
	}
	for i, c := range m.ToolCalls {
		if c.ID == "" || len(c.ID) > maxName {
			return fmt.Errorf("the ID of tool call %d has %d bytes; it has 1 to %d", i+1, len(c.ID), maxName)
		}
	}
	return m.validPlace()
}

// validPlace checks what says where in the conversation the message stands.
func (m *Message) validPlace() error {
	if len(m.Thread) > maxName || len(m.Parent) > maxName {
		return fmt.Errorf("a message's thread and parent have at most %d bytes each", maxName)
	}
	if !utf8.ValidString(m.Thread) || !utf8.ValidString(m.Parent) {
		return errors.New("a message's thread and parent are UTF-8")
	}
	if !slices.Contains([]string{"", KindCompaction, KindError, KindMeta}, m.Kind) {
		return fmt.Errorf("the kind %q of a message is none of compaction, error and meta", m.Kind)
	}
	return nil
}

// Answered returns the IDs of the open tool calls after message m, given those before it. It
// returns at most the newest MaxOpenCalls.
func Answered(open []string, m *Message) []string {
	now := slices.DeleteFunc(slices.Clone(open), func(id string) bool { return id == m.ToolCallID })
	for _, c := range m.ToolCalls {
		if !slices.Contains(now, c.ID) { // one answer closes all calls with an ID
			now = append(now, c.ID)
		}
	}
	return now[max(len(now)-MaxOpenCalls, 0):]
}
