package find

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A historyReader reads the documents of an agent's session.
type historyReader struct {
	h    *agents.History
	hide *redact.Redactor
}

// A historyTail is what has to be known to read on.
type historyTail struct {
	tail
	Number   uint64          `json:"number"` // of the last message
	Position agents.Position `json:"position,omitzero"`
}

func (r *historyReader) read(above uint64, was string, fn func(*search.Document) error) (uint64, string, error) {
	var t historyTail
	if above > 0 && strictjson.Unmarshal([]byte(was), &t) != nil {
		return 0, "", search.ErrChanged
	}
	if t.Open == nil {
		t.Open = map[string]openUse{}
	}
	at, err := r.items(t.Position, func(item *agents.Item) error {
		if item.Again && above > 0 {
			return search.ErrChanged
		}
		return t.item(r.hide, item.Message, fn)
	})
	if err != nil {
		return 0, "", err
	}
	t.Position = at
	next, err := strictjson.Marshal(t)
	return 0, string(next), err
}

// reread reads a history whose messages may change or go: opencode writes an answer while it comes, and removes
// what is undone. It reads from the beginning, and compares what was read before by its hash.
func (r *historyReader) reread(above uint64, was string, fn func(*search.Document) error) (uint64, string, error) {
	var t historyTail
	if above > 0 && strictjson.Unmarshal([]byte(was), &t) != nil {
		return 0, "", search.ErrChanged
	}
	if t.Open == nil {
		t.Open = map[string]openUse{}
	}
	sum := sha256.New()
	digest := func() string { return hex.EncodeToString(sum.Sum(nil)) }
	n, known := uint64(0), t.Number
	_, err := r.items(agents.Position{}, func(item *agents.Item) error {
		if item.Message == nil {
			return nil
		}
		data, err := strictjson.Marshal(item.Message)
		if err != nil {
			return err
		}
		_, _ = sum.Write(data)
		switch n++; {
		case n == known && digest() != t.Print:
			return search.ErrChanged
		case n <= known:
			return nil
		}
		return t.item(r.hide, item.Message, fn)
	})
	if err == nil && n < known {
		err = search.ErrChanged
	}
	if err != nil {
		return 0, "", err
	}
	t.Print = digest()
	next, err := strictjson.Marshal(t)
	return 0, string(next), err
}

// items calls fn with what a history has behind a position, and returns how far that goes.
func (r *historyReader) items(from agents.Position, fn func(*agents.Item) error) (agents.Position, error) {
	reader, err := r.h.Open(from)
	if err != nil {
		return from, err
	}
	defer reader.Close()
	for {
		items, err := reader.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return reader.Position(), nil
		}
		if err != nil {
			return from, err
		}
		for i := range items {
			if err := fn(&items[i]); err != nil {
				return from, err
			}
		}
	}
}

// item is a message, with its credentials hidden before the JSON around them is taken off, which says
// what they are.
func (t *historyTail) item(hide *redact.Redactor, m *session.Message, fn func(*search.Document) error) error {
	if m == nil {
		return nil
	}
	t.Number++
	clean := *m
	clean.Content = hidden(hide, m.Content)
	clean.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range clean.ToolCalls {
		clean.ToolCalls[i].Name, _ = hide.String(clean.ToolCalls[i].Name)
		clean.ToolCalls[i].Arguments = hidden(hide, clean.ToolCalls[i].Arguments)
	}
	return t.message(t.Number, &clean, fn)
}

func hidden(hide *redact.Redactor, v strictjson.Value) strictjson.Value {
	if len(v) == 0 {
		return v
	}
	clean, _, err := hide.JSON(v)
	if err != nil {
		return nil // it is no JSON
	}
	return clean
}
