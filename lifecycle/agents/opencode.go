package agents

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// rows reads the messages of one session of opencode's database, a few at a time.
type rows struct {
	db     *database
	thread string
	read   []messageRow
}

type messageRow struct {
	id      string
	created int64 // in milliseconds
	data    []byte
	size    int64
}

type opencodeMessage struct {
	Role    string           `json:"role"`
	Model   string           `json:"modelID"`
	Summary strictjson.Value `json:"summary"`
	Error   strictjson.Value `json:"error"`
	Time    struct {
		Completed int64 `json:"completed"`
	} `json:"time"`
	Tokens *struct {
		Input     int64 `json:"input"`
		Output    int64 `json:"output"`
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
}

type opencodePart struct {
	Type      string `json:"type"`
	Synthetic bool   `json:"synthetic"`
	Tool      string `json:"tool"`
	CallID    string `json:"callID"`
	State     struct {
		Status string           `json:"status"`
		Input  strictjson.Value `json:"input"`
		Output strictjson.Value `json:"output"`
		Error  strictjson.Value `json:"error"`
	} `json:"state"`
}

// opencodeTypes are the types of parts that are known and no text.
var opencodeTypes = []string{"agent", "compaction", "patch", "retry", "snapshot", "step-finish", "step-start", "subtask"}

// abandoned is how long after its last change a message counts as complete that is not.
const abandoned = time.Hour

// begin notes the last message of the pass. An answer that is being written is not taken, nor is a prompt that
// has no parts yet, unless another message came after it.
func (d *database) begin(p *FilePosition) error {
	p.Until, p.End = p.Offset, p.Last
	if err := d.count(p); err != nil {
		return err
	}
	const query = `SELECT id, time_created, time_updated, CASE WHEN octet_length(data) <= ? THEN data END, EXISTS (SELECT 1 FROM part WHERE message_id = message.id)
FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 2`
	all, err := d.QueryContext(context.Background(), query, maxLine, p.Name)
	if err != nil {
		return err
	}
	defer all.Close()
	for last := true; all.Next(); last = false {
		var id string
		var created, updated int64
		var data sql.RawBytes
		var parts bool
		if err := all.Scan(&id, &created, &updated, &data, &parts); err != nil {
			return err
		}
		var m opencodeMessage
		_ = strictjson.UnmarshalLenient(data, &m) // one that cannot be read is reported when it is taken
		if last && m.written(parts) && time.Since(time.UnixMilli(updated)) < abandoned {
			continue
		}
		if created > p.Offset || created == p.Offset && id > p.Last {
			p.Until, p.End = created, id
		}
		break
	}
	return all.Err()
}

// count has the session read again if there are more messages up to a position than were read: the clock went
// backwards.
func (d *database) count(p *FilePosition) error {
	const query = `SELECT count(*) FROM message WHERE session_id = ? AND (time_created, id) <= (?, ?)`
	var before int
	err := d.QueryRowContext(context.Background(), query, p.Name, p.Offset, p.Last).Scan(&before)
	if before > p.Lines {
		*p = FilePosition{Name: p.Name, Again: true}
	}
	return err
}

// written reports whether a message is being written.
func (of *opencodeMessage) written(parts bool) bool {
	return of.Role == session.RoleAssistant && of.Time.Completed == 0 && len(of.Error) == 0 || of.Role == session.RoleUser && !parts
}

func (f *rows) Close() error { return nil }

func (f *rows) take(r *Reader, p *FilePosition) ([]Item, bool) {
	if len(f.read) == 0 {
		if err := f.more(p); err != nil {
			r.report.bad(Place{Path: f.db.path, Why: p.Name + ": " + err.Error()})
			return nil, false
		}
		if len(f.read) == 0 {
			return nil, false
		}
	}
	row := f.read[0]
	f.read = f.read[1:]
	rec := &record{at: p, thread: f.thread, text: row.data, report: &r.report}
	items, err := f.items(rec, &row, r)
	if err != nil {
		items = append(items, r.bad(Place{Path: f.db.path, Bytes: row.size, Why: row.id + ": " + err.Error()}, row.data))
	}
	p.Offset, p.Last, p.Lines = row.created, row.id, p.Lines+1
	return items, true
}

// more reads the next messages.
func (f *rows) more(p *FilePosition) error {
	const query = `SELECT id, time_created, octet_length(data), CASE WHEN octet_length(data) <= ? THEN data END FROM message
WHERE session_id = ? AND (time_created, id) > (?, ?) AND (time_created, id) <= (?, ?) ORDER BY time_created, id LIMIT 16`
	all, err := f.db.QueryContext(context.Background(), query, maxLine, p.Name, p.Offset, p.Last, p.Until, p.End)
	if err != nil {
		return err
	}
	defer all.Close()
	for all.Next() {
		var m messageRow
		if err := all.Scan(&m.id, &m.created, &m.size, &m.data); err != nil {
			return err
		}
		f.read = append(f.read, m)
	}
	return all.Err()
}

var errTooLong = errors.New("it is too long")

// items makes items of a message and its parts.
func (f *rows) items(rec *record, row *messageRow, r *Reader) ([]Item, error) {
	if row.data == nil {
		return nil, errTooLong
	}
	var of opencodeMessage
	if err := strictjson.UnmarshalLenient(row.data, &of); err != nil {
		return nil, err
	}
	count(&r.report.Types, cmp.Or(of.Role, "none"))
	if of.Role != session.RoleUser && of.Role != session.RoleAssistant {
		count(&r.report.Unknown, cmp.Or(of.Role, "none"))
		return []Item{wrapped(row.id, row.id, row.data)}, nil
	}
	r.report.Model = cmp.Or(of.Model, r.report.Model)
	m := session.Message{ID: bounded(row.id), Time: time.UnixMilli(row.created).UTC(), Role: of.Role, Usage: of.usage()}
	b := &built{rec: rec, message: &m, synthetic: true}
	if err := f.parts(row.id, b, r); err != nil {
		return nil, err
	}
	failed := len(of.Error) > 0 && string(of.Error) != "null"
	if failed {
		b.content = append(b.content, of.Error)
	}
	switch {
	case string(of.Summary) == "true":
		m.Kind = session.KindCompaction
	case failed:
		m.Kind = session.KindError
	case b.synthetic && len(b.content) > 0:
		m.Kind = session.KindMeta
	}
	if len(b.content) > 0 {
		m.Content = slices.Concat([]byte{'['}, bytes.Join(b.content, []byte{','}), []byte{']'})
	}
	items := []Item{rec.message(&m)}
	for _, a := range b.answers {
		items = append(items, rec.message(a))
	}
	return append(items, b.events...), nil
}

// usage returns what a message cost. Tokens that were read from the cache are not among the input.
func (of *opencodeMessage) usage() *session.Usage {
	t := of.Tokens
	if t == nil {
		return nil
	}
	return more(session.Usage{
		InputTokens: max(t.Input, 0) + max(t.Cache.Write, 0), OutputTokens: max(t.Output, 0) + max(t.Reasoning, 0), CachedTokens: max(t.Cache.Read, 0),
	}, session.Usage{})
}

// built is what the parts of a message become.
type built struct {
	rec       *record
	message   *session.Message
	content   [][]byte
	synthetic bool // all texts were put in by opencode
	answers   []*session.Message
	events    []Item
}

// maxParts bounds what the parts of a message have in memory, in bytes.
const maxParts = 4 * maxLine

func (f *rows) parts(message string, b *built, r *Reader) error {
	const query = `SELECT id, octet_length(data), CASE WHEN octet_length(data) <= ? THEN data END FROM part WHERE message_id = ? ORDER BY id`
	all, err := f.db.QueryContext(context.Background(), query, maxLine, message)
	if err != nil {
		return err
	}
	defer all.Close()
	held := 0
	for all.Next() {
		var id string
		var size int64
		var data []byte
		if err := all.Scan(&id, &size, &data); err != nil {
			return err
		}
		var p opencodePart
		var why error
		switch held += len(data); {
		case data == nil || held > maxParts:
			data, why = nil, errTooLong
		case !isObject(data) || strictjson.UnmarshalLenient(data, &p) != nil:
			why = errNoObject
		}
		if why != nil {
			b.events = append(b.events, r.bad(Place{Path: f.db.path, Bytes: size, Why: id + ": " + why.Error()}, data))
			continue
		}
		b.add(&p, id, data)
	}
	return all.Err()
}

// add takes a part.
func (b *built) add(p *opencodePart, id string, data []byte) {
	m := b.message
	name := "part/" + cmp.Or(p.Type, "none")
	count(&b.rec.report.Types, name)
	switch p.Type {
	case "text", "reasoning", "file":
		b.content = append(b.content, data)
		b.synthetic = b.synthetic && p.Synthetic
	case "tool":
		call := bounded(cmp.Or(p.CallID, id))
		m.ToolCalls = append(m.ToolCalls, session.ToolCall{ID: call, Name: p.Tool, Arguments: p.State.Input})
		a := &session.Message{ID: bounded(id), Time: m.Time, Role: session.RoleTool, ToolCallID: call, Content: p.State.Output}
		switch p.State.Status {
		case "completed":
			b.answers = append(b.answers, a)
		case "error":
			a.Kind, a.Content = session.KindError, p.State.Error
			b.answers = append(b.answers, a)
		}
	default:
		if !slices.Contains(opencodeTypes, p.Type) {
			count(&b.rec.report.Unknown, name)
		}
		b.events = append(b.events, wrapped(id, m.ID, data))
	}
}

// wrapped returns the event that a row is kept as.
func wrapped(id, message string, data []byte) Item {
	event, err := strictjson.Marshal(struct {
		Type    string           `json:"type"`
		ID      string           `json:"id"`
		Message string           `json:"messageID"`
		Data    strictjson.Value `json:"data"`
	}{"opencode", strings.ToValidUTF8(id, "\uFFFD"), strings.ToValidUTF8(message, "\uFFFD"), data})
	if err != nil { // data was no JSON: only texts are kept as they are
		return Item{Event: strictjson.Value(`{"type":"opencode"}`)}
	}
	return Item{Event: event}
}
