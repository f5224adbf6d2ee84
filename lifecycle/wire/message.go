package wire

import (
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// EncodeMessage returns a valid message as a JSON object with its content last. It returns an
// error if the content or an argument is not JSON.
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

// DecodeMessage decodes and validates a message. The error wraps ErrCorrupt.
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

// toolCalls are decoded only up to MaxOpenCalls, because the three bytes of "{}," would take
// sixty in memory.
type toolCalls []session.ToolCall

// UnmarshalJSON implements the interface that strictjson uses. It refuses too many calls before
// it decodes any.
func (t *toolCalls) UnmarshalJSON(data []byte) error {
	if elements(data) > session.MaxOpenCalls {
		return fmt.Errorf("more than %d tool calls", session.MaxOpenCalls)
	}
	return strictjson.UnmarshalForeign(data, (*[]session.ToolCall)(t))
}

// elements returns the number of elements of an array, or 1 for an empty array.
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
