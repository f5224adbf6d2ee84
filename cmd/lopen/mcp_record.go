package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/find"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/plain"
)

// maxRecord bounds one record of an answer as JSON, in bytes: its text has about as many, and has to fit
// as well.
const maxRecord = mcp.MaxText - 1<<10

// oneRecord returns one record of session_log, as `session log --seq` does.
func (t *toolAnswer) oneRecord(in mcp.SessionLog) (answerData, error) {
	if in.Task != "" || in.Before > 0 {
		return nil, usagef("seq %d is one record: give it without task and before", in.Seq)
	}
	page := &logPage{}
	return page, t.readLog(in.Session, "", func(store *lifecycle.Store, id session.ID, _ string) error {
		found, err := recordAt(store, id, in.Seq)
		if err != nil {
			return err
		}
		r, cut, err := wholeRecord(found)
		if err != nil {
			return err
		}
		page.chosen, page.Records = t.about, []oneRow{{newRecordRow(*r), r.Message}}
		if err := t.printRecord(store, id, r); err != nil {
			return err
		}
		if cut > 0 {
			page.Cut = fmt.Sprintf("%d bytes of this record are left out: lopen session log %s --seq %d --json prints all", cut, id, r.Seq)
			fmt.Fprintln(t.stdout, page.Cut)
		}
		return nil
	})
}

// wholeRecord returns a record as it is or, if it has no room in an answer, with less of each text and
// list. cut is how many bytes of it as JSON are left out.
func wholeRecord(whole *record.Record) (r *record.Record, cut int, err error) {
	var m session.Message
	if whole.Message != nil {
		if m, err = wire.DecodeMessage(whole.Message); err != nil {
			return nil, 0, err
		}
	}
	all, err := mcp.Encode(oneRow{newRecordRow(*whole), whole.Message})
	if err != nil || len(all) <= maxRecord {
		return whole, 0, err
	}
	var encodeErr error
	size, err := fits(func(items, bytes int) any {
		bounded := boundedRecord(*whole, items, bytes)
		if r = &bounded; whole.Message != nil {
			said := boundedMessage(m, items, bytes)
			r.Message, encodeErr = wire.EncodeMessage(&said)
		}
		return oneRow{newRecordRow(*r), r.Message}
	}, maxRecord, bound{200, 20 << 10}, bound{200, 16 << 10}, bound{200, 12 << 10}, bound{100, 8 << 10}, bound{50, 3 << 10}, bound{20, 1 << 10}, bound{5, 400}, bound{2, 80})
	if err == nil {
		err = encodeErr
	}
	return r, len(all) - size, err
}

// boundedMessage is a message with at most so many calls, and about so many bytes in each text.
func boundedMessage(m session.Message, items, bytes int) session.Message {
	m.Content = session.Text(withoutMiddle(strings.TrimSpace(find.Text(m.Content)), bytes))
	m.ToolCalls = slices.Clone(m.ToolCalls[:min(len(m.ToolCalls), items)])
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		call.Name = plain.Clip(call.Name, 200)
		if len(call.Arguments) > bytes {
			call.Arguments = session.Text(withoutMiddle(plain.AsWritten(call.Arguments), bytes))
		}
	}
	return m
}

// withoutMiddle is the begin and the end of a text that is too long. What a program printed tells most
// at its end, and what somebody wrote at its begin.
func withoutMiddle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	begin, end := plain.Clip(s, most/2), endOf(s, most/2)
	return fmt.Sprintf("%s\n... %d bytes are left out\n%s", begin, len(s)-len(begin)-len(end), end)
}
