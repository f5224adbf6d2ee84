package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/find"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// oneRow is what `session log --seq --json` prints: the record, with its message.
type oneRow struct {
	recordRow
	Message strictjson.Value `json:"message,omitempty"`
}

// errOne ends the reading behind the record.
var errOne = errors.New("found")

// recordAt returns one record of a session's log. The error says whether it is damaged, or is not there.
func recordAt(store *lifecycle.Store, id session.ID, seq uint64) (found *record.Record, err error) {
	err = store.Log(id, seq-1, func(r record.Record) error {
		if r.Seq == seq {
			found = &r
		}
		return errOne
	})
	if found != nil {
		return found, nil
	}
	if err != nil && !errors.Is(err, errOne) {
		return nil, err
	}
	gaps, err := store.Gaps(id)
	if err != nil {
		return nil, err
	}
	for _, g := range gaps {
		if g.Has(seq) {
			return nil, fmt.Errorf("record %d of session %s: %w: %s: lopen session verify %s", seq, id, lifecycle.ErrCorrupt, g, id)
		}
	}
	return nil, fmt.Errorf("record %d of session %s: %w", seq, id, lifecycle.ErrNotFound)
}

// one prints all of one record.
func (l *logCall) one(store *lifecycle.Store, id session.ID) error {
	found, err := recordAt(store, id, l.seq)
	if err != nil {
		return err
	}
	if l.out.machine() {
		return l.printJSON(oneRow{newRecordRow(*found), found.Message})
	}
	return l.printRecord(store, id, found)
}

// printRecord prints what one record is about: its message, its attempts, or what it changed.
func (a *app) printRecord(store *lifecycle.Store, id session.ID, r *record.Record) error {
	switch {
	case r.Message != nil:
		m, err := wire.DecodeMessage(r.Message)
		if err == nil {
			a.printMessage(r.Seq, &m)
		}
		return err
	case len(r.Attempts) > 0:
		a.printAttempts(store, id, r.Attempts)
		return nil
	}
	return (&recordPrinter{w: a.stdout, of: readTurns(store, id)}).print(*r)
}

// printMessage prints a message: who said it, what, and which tools it calls with what.
func (a *app) printMessage(seq uint64, m *session.Message) {
	fmt.Fprintf(a.stdout, "%s  #%d  %s\n", m.Time.Local().Format(time.DateTime), seq, plain.Line(m.Role))
	if text := strings.TrimSpace(find.Text(m.Content)); text != "" {
		fmt.Fprintf(a.stdout, "\n%s\n", text)
	}
	for _, call := range m.ToolCalls {
		fmt.Fprintf(a.stdout, "\n%s %s\n", plain.Line(call.Name), plain.AsWritten(call.Arguments))
	}
}
