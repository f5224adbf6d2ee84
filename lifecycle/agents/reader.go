package agents

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Reader yields the items of a history. It belongs to one goroutine.
type Reader struct {
	history *History
	at      Position
	report  Report

	next int  // the file after the one that is open, in at.Files
	open feed // nil if none is

	requests map[string]bool // of Claude Code, in the first files of at.Files
	looked   int             // how many files that are
}

// A feed reads one file of a history, or one session of a database.
type feed interface {
	// take returns the items of the next record and moves the position. It returns nothing at the
	// end, and for a record that is none.
	take(r *Reader, p *FilePosition) (items []Item, more bool)
	Close() error
}

// A record is one of a file, and what may be read and changed when it is turned into items.
type record struct {
	text   []byte // one JSON object, compact or not, valid until the next record
	at     *FilePosition
	thread string
	line
	nth    int // of the records of its line, from 0
	report *Report
	asked  func(request string) bool // by a file that is read before this one
}

// Open begins or resumes a pass at a Position that a Reader of the same history returned. The
// caller closes the Reader.
func (h *History) Open(from Position) (*Reader, error) {
	r := &Reader{history: h, at: from.clone()}
	if r.at.Begun {
		return r, nil
	}
	for _, f := range h.files {
		if err := r.begin(f); err != nil {
			return nil, err
		}
	}
	r.at.anew()
	r.at.Begun = true
	return r, nil
}

// begin notes how far the pass reads a file.
func (r *Reader) begin(f file) error {
	p := r.at.file(f.name)
	if p == nil {
		r.at.Files = append(r.at.Files, FilePosition{Name: f.name})
		p = &r.at.Files[len(r.at.Files)-1]
	}
	if f.db != nil {
		if err := f.db.begin(p); err != nil {
			return fmt.Errorf("%s: %w", f.path, damaged(err))
		}
		return nil
	}
	src, err := openSource(f.path)
	if err != nil {
		r.report.bad(Place{Path: f.path, Why: err.Error()})
		p.Until = p.Offset
		return nil
	}
	defer src.Close()
	if src.begin(p) {
		r.report.Rewritten = append(r.report.Rewritten, f.path)
	}
	return nil
}

// Position returns how far the history was read: behind the record of the last items.
func (r *Reader) Position() Position { return r.at.clone() }

// Report returns what was found so far. It is the Reader's own.
func (r *Reader) Report() *Report { return &r.report }

// Close lets go of the open file.
func (r *Reader) Close() error {
	if r.open == nil {
		return nil
	}
	err := r.open.Close()
	r.open = nil
	return err
}

// Next returns the items of the next record, at least one. They are valid until the next call. The
// error is io.EOF at the end of the pass, and else that of ctx: what cannot be read is an item.
func (r *Reader) Next(ctx context.Context) ([]Item, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if r.open == nil && !r.openNext() {
			r.end()
			return nil, io.EOF
		}
		p := &r.at.Files[r.next-1]
		items, more := r.open.take(r, p)
		if !more {
			_ = r.Close() // of a file that was only read
		}
		if len(items) == 0 {
			continue
		}
		for i := range items {
			items[i].Again = p.Again
			r.report.item(&items[i])
		}
		return items, nil
	}
}

// end ends the pass.
func (r *Reader) end() {
	r.at.Begun = false
	for i := range r.at.Files {
		p := &r.at.Files[i]
		if f := r.history.file(p.Name); f != nil && f.db == nil {
			p.settle(f.thread != "")
		}
	}
}

// file returns the file that has a name in Positions, or nil.
func (h *History) file(name string) *file {
	if i := slices.IndexFunc(h.files, func(f file) bool { return f.name == name }); i >= 0 {
		return &h.files[i]
	}
	return nil
}

// openNext opens the next file that has something to read. It returns false behind the last one.
func (r *Reader) openNext() bool {
	for r.next < len(r.at.Files) {
		p := &r.at.Files[r.next]
		r.next++
		f := r.history.file(p.Name)
		if f == nil {
			continue
		}
		if p.Offset >= p.Until && (f.db == nil || p.Last == p.End) {
			continue
		}
		if f.db != nil {
			r.open = &rows{db: f.db, thread: f.thread}
			return true
		}
		from, err := openLines(*f, p, r.history.Agent)
		if err != nil {
			r.report.bad(Place{Path: f.path, Offset: p.Offset, Why: err.Error()})
			continue
		}
		r.open = from
		return true
	}
	return false
}

// event returns the item of a record that is no message.
func (r *record) event() []Item { return []Item{{Event: slices.Clone(r.text)}} }

// message returns the item of a message, or of the record if the message cannot be stored.
func (r *record) message(m *session.Message) Item {
	if m.Time.IsZero() {
		m.Time = r.at.Time
	}
	if m.Time.IsZero() {
		m.Time = unknownTime
	}
	if m.Time.Before(r.at.Time) {
		r.report.Backwards++
	}
	r.at.Time = m.Time
	m.Thread = r.thread
	if err := m.Validate(); err != nil {
		return Item{Event: slices.Clone(r.text), Usage: m.Usage}
	}
	return Item{Message: m, Usage: m.Usage}
}
