package wire

import (
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// EncodeMessage returns a valid message as a JSON object, its content last. The error is
// that of content or arguments which are no JSON.
func EncodeMessage(m *session.Message) ([]byte, error) {
	head := *m
	head.Content = nil
	body, err := strictjson.Marshal(&head)
	if err == nil && len(m.Content) > 0 {
		const key = `,"content":`
		body = slices.Grow(body, len(key)+len(m.Content))
		body = append(body[:len(body)-1], key...)
		body, err = strictjson.AppendCompact(body, m.Content)
		body = append(body, '}')
	}
	if err != nil {
		return nil, fmt.Errorf("a message's content and the arguments of its tool calls are JSON: %w", err)
	}
	return body, nil
}

// DecodeMessage reads a message as it was encoded. The error wraps ErrCorrupt.
func DecodeMessage(line []byte) (session.Message, error) {
	var m session.Message
	read := struct {
		*session.Message
		ToolCalls toolCalls `json:"toolCalls"`
	}{Message: &m}
	err := strictjson.UnmarshalForeign(line, &read)
	if err == nil {
		m.ToolCalls = read.ToolCalls
		err = m.Validate()
	}
	if err != nil {
		return session.Message{}, fmt.Errorf("%w: message: %w", envelope.ErrCorrupt, err)
	}
	return m, nil
}

// toolCalls are bounded by what a message may have: three bytes, as in "{},", would
// become sixty in memory.
type toolCalls []session.ToolCall

// UnmarshalJSON is for package strictjson.
func (t *toolCalls) UnmarshalJSON(data []byte) error {
	if elements(data) > session.MaxOpenCalls {
		return fmt.Errorf("more than %d tool calls", session.MaxOpenCalls)
	}
	return strictjson.UnmarshalForeign(data, (*[]session.ToolCall)(t))
}

// elements counts those of an array, one for an empty one.
func elements(array []byte) int {
	n, depth := 1, 0
	for i := 0; i < len(array); i++ {
		switch array[i] {
		case '"':
			i = strictjson.TextEnd(array, i+1)
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 1 {
				n++
			}
		}
	}
	return n
}
