package mock

import (
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// messages is the Anthropic Messages API.
type messages struct{}

// reminder begins what an agent tells the model beside what a person says.
const reminder = "<system-reminder>"

// read looks at the conversation's messages.
func (messages) read(body []byte) Request {
	var b struct {
		Messages []struct {
			Role    string           `json:"role"`
			Content strictjson.Value `json:"content"`
		} `json:"messages"`
	}
	_ = strictjson.Unmarshal(body, &b)
	var req Request
	for _, m := range b.Messages {
		if m.Role != "user" {
			continue
		}
		var text string
		if strictjson.Unmarshal(m.Content, &text) == nil {
			req.Prompt, req.Results = text, 0
			continue
		}
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		_ = strictjson.Unmarshal(m.Content, &parts)
		for _, p := range parts {
			switch {
			case p.Type == "tool_result":
				req.Results++
			case p.Type == "text" && !strings.HasPrefix(p.Text, reminder): // claude puts a prompt behind a result as well
				req.Prompt, req.Results = p.Text, 0
			}
		}
	}
	said, _ := strictjson.Marshal(b.Messages)
	req.Said = string(said)
	return req
}

func (messages) usage(a Answer) map[string]any {
	return map[string]any{
		"input_tokens": a.Usage.Input, "cache_read_input_tokens": a.Usage.Cached,
		"cache_creation_input_tokens": 0, "output_tokens": a.Usage.Output,
	}
}

func (m messages) message(model string, n int, a Answer) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_mock_%d", n), "type": "message", "role": "assistant", "model": model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": m.usage(a),
	}
}

func (m messages) begin(model string, n int, a Answer) string {
	s := event(map[string]any{"type": "message_start", "message": m.message(model, n, a)})
	if a.Text != "" {
		s += event(map[string]any{"type": "content_block_start", "index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	}
	return s
}

func (messages) delta(text string) string {
	return event(map[string]any{"type": "content_block_delta", "index": 0, "delta": map[string]any{"type": "text_delta", "text": text}})
}

func (m messages) end(_ string, n int, a Answer) string {
	var s string
	index := 0
	if a.Text != "" {
		s += event(map[string]any{"type": "content_block_stop", "index": 0})
		index++
	}
	if a.Tool != nil {
		s += event(map[string]any{"type": "content_block_start", "index": index, "content_block": m.call(n, a.Tool.Name, map[string]any{})})
		s += event(map[string]any{"type": "content_block_delta", "index": index, "delta": map[string]any{"type": "input_json_delta", "partial_json": encode(a.Tool.Input)}})
		s += event(map[string]any{"type": "content_block_stop", "index": index})
	}
	s += event(map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": m.why(a), "stop_sequence": nil}, "usage": m.usage(a)})
	return s + event(map[string]any{"type": "message_stop"})
}

func (m messages) whole(model string, n int, a Answer) string {
	msg := m.message(model, n, a)
	content := []any{map[string]any{"type": "text", "text": a.text()}}
	if a.Tool != nil {
		content = append(content, m.call(n, a.Tool.Name, a.Tool.Input))
	}
	msg["content"], msg["stop_reason"] = content, m.why(a)
	return encode(msg)
}

func (messages) call(n int, name string, input map[string]any) map[string]any {
	return map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_mock_%d", n), "name": name, "input": input}
}

func (messages) why(a Answer) string {
	if a.Tool != nil {
		return "tool_use"
	}
	return "end_turn"
}
