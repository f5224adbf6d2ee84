package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/lifecycle/session/strictjson"
)

// A Salvaged is what of a state.json can be read that is cut off or damaged.
type Salvaged struct {
	// State is a state.json of the header and of each task that is whole, for
	// [Replay.Load]: it has no checksum, so that its error is ErrChecksum.
	State []byte
	Total int      // tasks that run, as the header counts them
	Cut   []string // IDs of tasks that are not whole, or cannot be
	Err   error    // where and why the reading ended; nil where it came to the end
}

// Salvage reads a state.json up to where it is no JSON any more. The tree of the
// tasks is its last part, so the header must be whole. A task that is open at the
// end is taken when all it says of itself stands before its children, with those of
// them that are whole. One that is whole and breaks a rule is left out, with what is
// beneath it. The error wraps ErrCorrupt where nothing comes of it.
func Salvage(state []byte) (Salvaged, error) {
	s := salvager{Reader: strictjson.NewReader(state[:textEnd(state)]), seen: map[string]bool{}}
	e := encoder{b: []byte{'{'}}
	reached := false
	s.Object(func(key string) {
		switch key {
		case "tasks":
			reached = true
			e.field(key, s.children(1))
		case "checksum":
			_ = s.Text()
		default:
			v := s.Value()
			if s.Err() == nil {
				e.field(key, json.RawMessage(v))
			}
			if key == "progress" {
				s.out.Total = newDecoder(strictjson.NewReader([]byte(v))).readProgress().Total
			}
		}
	})
	s.End()
	if s.out.Err = s.Err(); !reached {
		return Salvaged{}, fmt.Errorf("%w: %w", ErrCorrupt, errors.Join(errors.New("its tasks are not reached"), s.out.Err))
	}
	e.b = append(e.b, '}', '\n')
	s.out.State = e.b
	return s.out, nil
}

// A salvager reads tasks as text.
type salvager struct {
	*strictjson.Reader
	seen map[string]bool // IDs
	kept []string        // likewise, in the order in which they ended
	out  Salvaged
}

func (s *salvager) children(depth int) json.RawMessage {
	e := encoder{b: []byte{'['}}
	s.Array(func() {
		if task := s.task(depth); task != nil {
			if e.b[len(e.b)-1] != '[' {
				e.b = append(e.b, ',')
			}
			e.b = append(e.b, task...)
		}
	})
	return append(e.b, ']')
}

// task is one that can be read, with its children; nil otherwise.
func (s *salvager) task(depth int) []byte {
	var children json.RawMessage
	beneath := len(s.kept)
	e := encoder{b: []byte{'{'}}
	s.Object(func(key string) {
		if key == "children" {
			children = s.children(depth + 1)
			return
		}
		if v := s.Value(); s.Err() == nil {
			e.field(key, json.RawMessage(v))
		}
	})
	t, err := ownMembers(append(e.b, '}'))
	whole := s.Err() == nil || children != nil
	if !whole || err != nil || depth > MaxTaskDepth || s.seen[t.ID] {
		if t.ID != "" && !s.seen[t.ID] {
			s.out.Cut = append(s.out.Cut, t.ID)
		}
		s.out.Cut = append(s.out.Cut, s.kept[beneath:]...)
		s.kept = s.kept[:beneath]
		return nil
	}
	s.seen[t.ID], s.kept = true, append(s.kept, t.ID)
	if children != nil {
		e.field("children", children)
	}
	return append(e.b, '}')
}

// ownMembers are what a task says of itself; with an error, as far as it can be read.
func ownMembers(text []byte) (Task, error) {
	var t Task
	d := newDecoder(strictjson.NewReader(text))
	d.Object(func(key string) {
		if !d.taskMember(&t, key) {
			d.Raw()
		}
	})
	if err := d.Reader.Err(); err != nil {
		return t, err
	}
	return t, t.validate()
}

// textEnd is where bytes stop being UTF-8.
func textEnd(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}
