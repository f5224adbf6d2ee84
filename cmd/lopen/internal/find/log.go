package find

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// textVersion is of what a document's text is made of, and of the built-in rules that hide credentials. Another one has
// everything indexed anew.
const textVersion = 2

// A logReader reads the documents of a session's log.
type logReader struct {
	store    *lifecycle.Store
	id       session.ID
	inherits bool // the messages of the sessions that it continues as well
}

// A tail is what has to be known to read on.
type tail struct {
	Print string             `json:"print"` // of the last record
	Open  map[string]openUse `json:"open,omitempty"`
	Held  *heldFiles         `json:"held,omitempty"`
}

// An openUse is a call of a tool that has no answer yet.
type openUse struct {
	Tool  string   `json:"tool"`
	Files []string `json:"files,omitempty"`
}

// maxOpen bounds the calls that are remembered.
const maxOpen = 256

// printOf returns what a record of another history does not share: when it was made, and a hash of it.
func printOf(r *record.Record) string {
	data, err := strictjson.Marshal(r)
	if err != nil { // does not happen for a record that was read
		return ""
	}
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%d %d %x", r.Seq, r.Epoch, sum[:8])
}

func (l *logReader) read(above uint64, was string, fn func(*search.Document) error) (uint64, string, error) {
	var t tail
	if above > 0 && strictjson.Unmarshal([]byte(was), &t) != nil {
		return 0, "", search.ErrChanged
	}
	if t.Open == nil {
		t.Open = map[string]openUse{}
	}
	last, checked := record.Record{Seq: above}, above == 0
	err := l.store.Log(l.id, max(above, 1)-1, func(r record.Record) error {
		switch {
		case !checked:
			// After a power cut a log may go on in another way than was read.
			if checked = r.Seq == above && printOf(&r) == t.Print; !checked {
				return search.ErrChanged
			}
			return nil
		case above == 0 && last.Seq == 0 && l.inherits:
			if err := l.others(&r, &t, fn); err != nil {
				return err
			}
		}
		last = r
		return t.record(&r, fn)
	})
	if err == nil && !checked {
		err = search.ErrChanged
	}
	if err != nil {
		return 0, "", err
	}
	if last.Seq != above {
		t.Print = printOf(&last)
	}
	next, err := strictjson.Marshal(t)
	return last.Seq, string(next), err
}

// others reads the messages that a fork has of other sessions' logs. first is the first record
// of its own.
func (l *logReader) others(first *record.Record, t *tail, fn func(*search.Document) error) error {
	n, end := uint64(0), first.Messages
	if first.Message != nil {
		end--
	}
	for m, err := range l.store.Messages(l.id) {
		if n++; n > end {
			return nil
		}
		if errors.Is(err, folder.ErrDamaged) {
			continue // the numbers of those behind it are lower, and stay the same
		}
		if err != nil {
			return err
		}
		if err := t.message(inherited+n, &m, fn); err != nil {
			return err
		}
	}
	return nil
}

func (t *tail) record(r *record.Record, fn func(*search.Document) error) error {
	if err := t.release(r, fn); err != nil {
		return err
	}
	if r.Message != nil {
		m, err := wire.DecodeMessage(r.Message)
		if err != nil {
			return nil // session verify reports it
		}
		return t.message(r.Seq, &m, fn)
	}
	for i := range r.Attempts {
		if err := fn(attempt(r.Seq, &r.Attempts[i])); err != nil {
			return err
		}
	}
	if len(r.Attempts) > 0 {
		return nil // which name the files
	}
	return t.changed(r, fn)
}

func (t *tail) message(number uint64, m *session.Message, fn func(*search.Document) error) error {
	var text strings.Builder
	var p paths
	addContent(&text, m.Content)
	d := &search.Document{Number: number, Time: m.Time, Kind: "message", Role: m.Role}
	var tools []string
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		before := len(p.all)
		text.WriteString("\n" + call.Name + " ")
		addArguments(&text, &p, call.Arguments)
		tools = append(tools, call.Name)
		if len(t.Open) < maxOpen {
			t.Open[call.ID] = openUse{call.Name, slices.Clone(p.all[before:])}
		}
	}
	if m.ToolCallID != "" {
		use := t.Open[m.ToolCallID]
		delete(t.Open, m.ToolCallID)
		tools, p.all = append(tools, use.Tool), append(p.all, use.Files...)
	}
	d.Tool, d.Files, d.Text = strings.Join(tools, " "), p.all, strings.TrimSpace(text.String())
	if d.Text == "" && len(d.Files) == 0 {
		return nil
	}
	return fn(d)
}

// attempt is the text of a start of the command.
func attempt(seq uint64, a *record.Attempt) *search.Document {
	d := &search.Document{Number: seq, Time: a.EndedAt, Kind: "attempt", Role: a.Then}
	if d.Time.IsZero() {
		d.Time = a.StartedAt
	}
	for _, f := range a.Files {
		d.Files = append(d.Files, f.Path)
		if f.From != "" {
			d.Files = append(d.Files, f.From)
		}
	}
	d.Files = possible(d.Files)
	check := ""
	if a.Check != nil {
		check = a.Check.Command
	}
	for _, part := range [...]string{a.Task, strings.Join(a.Leaves, " "), a.Failure, a.Problem, a.AgentError, strings.Join(a.Denied, "\n"), check, a.CheckTail, a.Tail, strings.Join(d.Files, "\n")} {
		if part != "" {
			d.Text += part + "\n"
		}
	}
	return d
}
