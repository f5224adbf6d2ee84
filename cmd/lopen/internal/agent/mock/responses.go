package mock

import (
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// responses is the OpenAI Responses API.
type responses struct{}

// read looks at the conversation's items.
func (responses) read(body []byte) Request {
	var b struct {
		Input []struct {
			Type    string `json:"type"`
			Role    string `json:"role"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"input"`
	}
	var raw struct {
		Input strictjson.Value `json:"input"`
	}
	_ = strictjson.Unmarshal(body, &b)
	_ = strictjson.Unmarshal(body, &raw)
	req := Request{Said: string(raw.Input)}
	for _, item := range b.Input {
		switch {
		case strings.HasSuffix(item.Type, "_call_output"):
			req.Results++
		case item.Role == "user":
			for _, c := range item.Content {
				req.Prompt, req.Results = c.Text, 0
			}
		}
	}
	return req
}

func (responses) begin(model string, n int, a Answer) string {
	s := event(map[string]any{"type": "response.created", "response": map[string]any{"id": fmt.Sprintf("resp_mock_%d", n), "model": model}})
	if a.Text != "" {
		item := map[string]any{"type": "message", "id": fmt.Sprintf("item_mock_%d", n), "role": "assistant", "content": []any{}}
		s += event(map[string]any{"type": "response.output_item.added", "output_index": 0, "item": item})
	}
	return s
}

func (responses) delta(text string) string {
	return event(map[string]any{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text})
}

func (r responses) end(model string, n int, a Answer) string {
	var s string
	for i, item := range r.items(n, a) {
		s += event(map[string]any{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	return s + event(map[string]any{"type": "response.completed", "response": r.response(model, n, a)})
}

func (r responses) whole(model string, n int, a Answer) string {
	return encode(r.response(model, n, a))
}

func (r responses) response(model string, n int, a Answer) map[string]any {
	in := a.Usage.Input + a.Usage.Cached
	return map[string]any{
		"id": fmt.Sprintf("resp_mock_%d", n), "object": "response", "status": "completed", "model": model, "output": r.items(n, a),
		"usage": map[string]any{
			"input_tokens": in, "input_tokens_details": map[string]any{"cached_tokens": a.Usage.Cached},
			"output_tokens": a.Usage.Output, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
			"total_tokens": in + a.Usage.Output,
		},
	}
}

func (responses) items(n int, a Answer) (items []any) {
	if a.Text != "" {
		items = append(items, map[string]any{
			"type": "message", "id": fmt.Sprintf("item_mock_%d", n), "role": "assistant",
			"content": []any{map[string]any{"type": "output_text", "text": a.text(), "annotations": []any{}}},
		})
	}
	if a.Tool != nil && a.Tool.Script != "" {
		items = append(items, map[string]any{
			"type": "custom_tool_call", "id": fmt.Sprintf("ctc_mock_%d", n), "call_id": fmt.Sprintf("call_mock_%d", n),
			"name": a.Tool.Name, "input": a.Tool.Script,
		})
	} else if a.Tool != nil {
		call := map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_mock_%d", n), "call_id": fmt.Sprintf("call_mock_%d", n),
			"name": a.Tool.Name, "arguments": encode(a.Tool.Input),
		}
		if a.Tool.Server != "" {
			call["namespace"] = a.Tool.Server
		}
		items = append(items, call)
	}
	return items
}
