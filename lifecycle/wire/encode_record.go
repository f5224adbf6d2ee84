package wire

import (
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// EncodeSnapshotRecord returns the body of a record that names a snapshot.
func EncodeSnapshotRecord(r record.Record, ref record.SnapshotRef) []byte {
	e := encodeCause(r)
	e.tagged("snapshot", ref, true)
	return e.b[1:]
}

// ReduceRecord returns what remains of a record, given its line, when its change of the State
// is dropped: the cause, the attempts, and the operations that do not change the State. The
// result is a record's body, or nil if nothing remains. The error is that of [DecodeRecord].
func ReduceRecord(line []byte) ([]byte, error) {
	r, err := DecodeRecord(line)
	if err != nil {
		return nil, err
	}
	r.Ops = slices.DeleteFunc(r.Ops, func(op record.Op) bool { return record.ChangesState(op.Name) })
	if len(r.Ops)+len(r.Attempts) == 0 && r.Event == "" && r.Inherits == nil && r.Checkpoint == "" && r.Rewind == nil {
		return nil, nil
	}
	return encodeCause(r).b[1:], nil
}

// encodeCause begins an object with all of a record but its change of the State.
func encodeCause(r record.Record) *encoder {
	e := &encoder{b: make([]byte, 0, 256)}
	e.why(r)
	if len(r.Ops) > 0 {
		e.array("ops", func() { e.notes(r.Ops) })
	}
	return e
}

// EncodeAppended returns the body of a record that is a message or an event of the
// transcript, up to but without the object itself, which is the last member.
func EncodeAppended(r record.Record) []byte {
	e := &encoder{b: append(make([]byte, 0, 128), '{')}
	e.time("at", r.At)
	e.uint("messages", r.Messages)
	e.uint("transcript", r.Transcript)
	if r.Message != nil {
		e.key("message")
	} else {
		e.key("transcriptEvent")
	}
	return e.b[1:]
}

// why begins an object with the cause of a record. Its brace is not part of the body.
func (e *encoder) why(r record.Record) {
	e.b = append(e.b, '{')
	e.num("schemaVersion", SchemaVersion)
	e.members(recordObject.part("", "messages"), &r)
	e.object("triggers", func() {
		for t, n := range r.Triggers {
			e.uint(session.Trigger(t).String(), n)
		}
	})
	e.uint("saves", r.Saves())
	e.num("commitUs", r.Commit.Microseconds())
	e.members(recordObject.part("messages", ""), &r)
}

// notes appends operations that do not change the State.
func (e *encoder) notes(ops []record.Op) {
	for _, op := range ops {
		e.element(func() {
			e.str("op", op.Name)
			e.str("id", op.Task)
			e.str("to", op.To)
			e.num("count", int64(op.Count))
			e.strs("paths", op.Paths)
		})
	}
}
