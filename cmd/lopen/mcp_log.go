package main

import (
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A logPage is the data of session_log.
type logPage struct {
	noted
	chosen
	Records []oneRow `json:"records"`          // the newest last; the message only of one that is asked for
	Before  uint64   `json:"before,omitempty"` // the cursor for older ones; 0 where there are none
	Cut     string   `json:"cut,omitempty"`
}

func (t *toolAnswer) sessionLog(in mcp.SessionLog) (answerData, error) {
	if in.Seq > 0 {
		return t.oneRecord(in)
	}
	limit, err := atMost(in.Limit, 20, 200)
	if err != nil {
		return nil, err
	}
	var page *logPage
	err = t.readLog(in.Session, in.Task, func(store *lifecycle.Store, id session.ID, task string) error {
		records, older, err := newestRecords(store, id, limit, func(r record.Record) bool {
			return (in.Before == 0 || r.Seq < in.Before) && (in.Task == "" || len(attemptsOf(r, task)) > 0)
		})
		if err != nil {
			return err
		}
		page, err = t.logPage(store, id, records, older, in.Task != "", task)
		return err
	})
	return page, err
}

// newestRecords returns the newest records that fn accepts, and whether there are older ones.
// Each is bounded, so that memory does not follow what is in them.
func newestRecords(store *lifecycle.Store, id session.ID, limit int, fn func(record.Record) bool) (all []record.Record, older bool, err error) {
	err = store.Log(id, 0, func(r record.Record) error {
		if !fn(r) {
			return nil
		}
		if all = append(all, boundedRecord(r, 50, 2<<10)); len(all) > limit {
			all, older = slices.Delete(all, 0, 1), true
		}
		return nil
	})
	return all, older, err
}

// logPage prints records, and returns those that fit into an answer: the newest ones.
func (t *toolAnswer) logPage(store *lifecycle.Store, id session.ID, records []record.Record, older, byTask bool, task string) (*logPage, error) {
	page := &logPage{chosen: t.about, Records: []oneRow{}}
	size, first := 0, len(records)
	for ; first > 0; first-- {
		r := records[first-1]
		n, err := fits(func(items, bytes int) any {
			r = boundedRecord(r, items, bytes)
			return newRecordRow(r)
		}, mcp.MaxText/2, bound{50, 2 << 10}, bound{10, 400}, bound{2, 80})
		if err != nil {
			return nil, err
		}
		if size += n; size > mcp.MaxText && first < len(records) {
			break
		}
		records[first-1] = r
	}
	if records = records[first:]; first > 0 || older {
		page.Before = records[0].Seq
	}
	lines := recordPrinter{w: t.stdout, of: readTurns(store, id)}
	for _, r := range records {
		page.Records = append(page.Records, oneRow{recordRow: newRecordRow(r)})
		if !byTask {
			if err := lines.add(r); err != nil {
				return nil, err
			}
			continue
		}
		t.printAttempts(store, id, attemptsOf(r, task))
	}
	if err := lines.flush(); err != nil {
		return nil, err
	}
	if page.Before > 0 {
		page.Cut = fmt.Sprintf("there are older records: call again with before %d", page.Before)
		fmt.Fprintln(t.stdout, page.Cut)
	}
	turn := ""
	if byTask {
		turn = openTurn(store, id, task)
	}
	switch {
	case turn != "":
		fmt.Fprintln(t.stdout, turn)
	case len(records) == 0:
		fmt.Fprintf(t.stdout, "nothing on record in session %s\n", id)
	}
	return page, nil
}

// A bound is how many elements a list may have, and how many bytes a text.
type bound struct{ items, bytes int }

// fits calls fn with one bound after the other, until what it returns has room as JSON. It returns
// the size.
func fits(fn func(items, bytes int) any, most int, bounds ...bound) (size int, err error) {
	for _, b := range bounds {
		data, err := mcp.Encode(fn(b.items, b.bytes))
		if size = len(data); err != nil || size <= most {
			return size, err
		}
	}
	return size, nil
}

// boundedRecord is a record with at most so many elements in each list and so many bytes in each text.
func boundedRecord(r record.Record, items, bytes int) record.Record {
	r.Ops = slices.Clone(r.Ops[:min(len(r.Ops), items)])
	for i := range r.Ops {
		op := &r.Ops[i]
		op.From, op.To, op.Task = plain.Clip(op.From, bytes), plain.Clip(op.To, bytes), plain.Clip(op.Task, bytes)
		op.Paths = boundedTexts(op.Paths, items, bytes)
	}
	r.Attempts = slices.Clone(r.Attempts[:min(len(r.Attempts), items)])
	for i := range r.Attempts {
		r.Attempts[i] = boundedAttempt(r.Attempts[i], items, bytes)
	}
	r.Message, r.TranscriptEvent, r.OpenCalls = nil, nil, nil
	return r
}

// boundedAttempt is an attempt bounded like a record. Of what was printed the end stays, and more of it
// than of other texts.
func boundedAttempt(a record.Attempt, items, bytes int) record.Attempt {
	a.Tail, a.CheckTail = clippedBegin(a.Tail, bytes), clippedBegin(a.CheckTail, bytes)
	bytes = max(bytes/4, 80)
	for _, text := range []*string{&a.Task, &a.Failure, &a.AgentError, &a.AgentSession, &a.Model, &a.Agent} {
		*text = plain.Clip(*text, bytes)
	}
	a.Command, a.Denied, a.Leaves = boundedTexts(a.Command, items, bytes), boundedTexts(a.Denied, items, bytes), boundedTexts(a.Leaves, items, bytes)
	a.Context = a.Context[:min(len(a.Context), items)]
	if more := len(a.Files) - items; more > 0 {
		a.Files, a.MoreFiles = a.Files[:items], a.MoreFiles+more
	}
	a.Files = slices.Clone(a.Files)
	for i := range a.Files { // hashes say nothing to who cannot open them
		f := &a.Files[i]
		f.Path, f.From, f.Before, f.After = plain.Clip(f.Path, bytes), plain.Clip(f.From, bytes), "", ""
	}
	if a.Check != nil {
		check := *a.Check
		check.Command = plain.Clip(check.Command, bytes)
		a.Check = &check
	}
	return a
}

func boundedTexts(all []string, items, bytes int) []string {
	all = slices.Clone(all[:min(len(all), items)])
	for i := range all {
		all[i] = plain.Clip(all[i], bytes)
	}
	return all
}
