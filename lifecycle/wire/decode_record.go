package wire

import (
	"bytes"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// DecodeRecord decodes a line of a journal. The error wraps ErrCorrupt or ErrFutureVersion.
func DecodeRecord(line []byte) (record.Record, error) {
	var r record.Record
	err := decodeRecord(line, &r, nil)
	return r, err
}

// maxOps bounds the operations of a record. A writer never exceeds it: a record has at most
// 4 MiB, and an operation at least 30 bytes.
const maxOps = 1 << 18

// maxIDs bounds the texts in a list of an operation. A record of 4 MiB has no room for more
// different texts.
const maxIDs = 1 << 20

// An operation is an Op with the values that are needed to apply it.
type operation struct {
	record.Op
	parent   string
	task     session.Task
	set      []session.Field
	unset    []string
	at       int
	removed  int
	inserted []string
	keep     int // -1 for all
	added    []session.Iteration
}

// decodeRecord decodes a line into r and calls do, unless it is nil, with each operation.
func decodeRecord(line []byte, r *record.Record, do func(*operation) error) error {
	head, err := cut(r, line)
	if err != nil {
		return err
	}
	d := newDecoder(strictjson.NewReader(head))
	if appended(r) {
		d.version = SchemaVersion // such a record has no schemaVersion
	}
	d.Object(func(key string) { d.recordMember(key, r, do) })
	d.End()
	if err := d.Err(); err != nil {
		return fmt.Errorf("record %d: %w", r.Seq, err)
	}
	if r.Snapshot != nil && len(r.Snapshot.SHA256) != 64 || r.Seq == 0 {
		return fmt.Errorf("record %d: %w: a number or a checksum is missing", r.Seq, envelope.ErrCorrupt)
	}
	return nil
}

func (d *decoder) recordMember(key string, r *record.Record, do func(*operation) error) {
	switch key {
	case "schemaVersion":
		if d.version = d.Int(); d.version != SchemaVersion {
			d.Fail("schemaVersion %d is not %d", d.version, SchemaVersion) // before any operation is applied
		}
	case "seq":
		r.Seq = d.Uint()
	case "epoch":
		r.Epoch = d.Uint()
	case "event":
		if r.Event = record.Event(d.Text()); !r.Event.Known() {
			d.Fail("%q is no event", r.Event)
		}
	case "triggers":
		d.triggers(r)
	case "commitUs":
		r.Commit = time.Duration(d.Int()) * time.Microsecond
	case "snapshot":
		r.Snapshot = tagged[record.SnapshotRef](d, key)
	case "ops":
		d.Array(func() { d.recordOp(r, do) })
	default:
		if !d.known(recordObject, key, r) {
			d.Raw()
		}
	}
}

// recordOp reads an operation, adds it to r and calls do.
func (d *decoder) recordOp(r *record.Record, do func(*operation) error) {
	op := d.operation()
	if d.Reader.Err() != nil {
		return
	}
	if op.Name == "" || len(r.Ops) == maxOps {
		d.Fail("an operation without a name, or more than %d", maxOps)
		return
	}
	r.Ops = append(r.Ops, op.Op)
	if do == nil {
		return
	}
	if err := do(&op); err != nil {
		d.Fail("%v", err)
	}
}

// appended reports whether the record is a message or an event of the transcript.
func appended(r *record.Record) bool { return r.Message != nil || r.TranscriptEvent != nil }

// cut takes the message or event out of a line, if there is one, and returns the rest of the
// line. The object is not decoded with the line, because a caller may append any object, also
// one that the rules for other members forbid.
func cut(r *record.Record, line []byte) ([]byte, error) {
	at := 1 + bytes.IndexByte(line[min(len(line), 1):], '{') // no member before the object is an object
	end := bytes.LastIndex(line, []byte(`,"crc":"`))
	head, message := bytes.CutSuffix(line[:at], []byte(`,"message":`))
	if !message {
		var event bool
		if head, event = bytes.CutSuffix(line[:at], []byte(`,"transcriptEvent":`)); !event {
			return line, nil
		}
	}
	if end < at {
		return nil, fmt.Errorf("record: %w: the line has no end", envelope.ErrCorrupt)
	}
	object, op := bytes.Clone(line[at:end]), record.Op{Name: record.OpMessagesAppended, Count: 1}
	if message {
		r.Message = object
	} else {
		r.TranscriptEvent, op.Name = object, record.OpEventsAppended
	}
	r.Ops = []record.Op{op}
	return append(bytes.Clone(head), '}'), nil
}

func (d *decoder) triggers(r *record.Record) {
	d.Object(func(key string) {
		n := d.Uint()
		for t := range session.NumTriggers { // unknown triggers are ignored
			if t.String() == key {
				r.Triggers[t] = n
			}
		}
	})
}

func (d *decoder) operation() (op operation) {
	op.keep = -1
	d.Object(func(key string) {
		switch key {
		case "op":
			op.Name = d.Text()
		case "id", "of":
			op.Task = d.Text()
		case "from":
			op.From = d.Text()
		case "to":
			op.To = d.Text()
		case "count":
			op.Count = d.int()
		case "paths":
			op.Paths = d.strs(maxIDs)
		default:
			d.effect(key, &op)
		}
	})
	op.task.Parent = op.parent
	op.summarize()
	return op
}

// effect reads a member that has what an operation changes.
func (d *decoder) effect(key string, op *operation) {
	switch key {
	case "parent":
		op.parent = d.Text()
	case "task":
		op.task = d.flatTask()
		op.Task = op.task.ID
	case "set":
		d.Object(func(key string) { op.set = append(op.set, session.Field{Key: key, Value: d.raw()}) })
	case "unset":
		op.unset = d.strs(maxIDs)
	case "at":
		op.at = d.int()
	case "removed":
		op.removed = d.int()
	case "inserted":
		op.inserted = d.strs(maxIDs)
	case "keep":
		op.keep = d.int()
	case "iterations":
		op.added = d.iterations()
	default:
		d.Raw()
	}
}

// summarize sets the fields that a reader of the log is shown of the effect.
func (op *operation) summarize() {
	switch op.Name {
	case record.OpTaskStatusChanged:
		op.To = string(op.task.State)
	case record.OpIterationsAdded:
		op.Count = len(op.added)
	case record.OpChildrenChanged:
		op.Count = len(op.inserted) - op.removed
	case record.OpStatusChanged, record.OpPhaseChanged, record.OpStepChanged, record.OpComponentChanged,
		record.OpActiveTaskChanged, record.OpExitReasonChanged:
		for _, f := range op.set {
			op.To = strictjson.NewReader(f.Value).Text()
		}
	}
}

// flatTask reads a task without its parent and children, which other members of a record have.
func (d *decoder) flatTask() (t session.Task) {
	d.Object(func(key string) {
		if !d.known(taskObject, key, &t) {
			t.Extra = append(t.Extra, session.Field{Key: key, Value: d.raw()})
		}
	})
	return t
}
