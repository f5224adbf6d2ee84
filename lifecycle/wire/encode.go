package wire

import (
	"slices"
	"strconv"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// SchemaVersion is the version of state.json, metrics.json and the records. No release wrote
// an earlier one.
const SchemaVersion = 2

// EncodeState returns the content of state.json: compact JSON in camelCase without zero
// values. The order is schemaVersion, the members of a listing, the other members, the tree
// of tasks, and a checksum of all bytes before it. Every State can be encoded.
func EncodeState(s *session.State, at session.Mark) []byte {
	e := &encoder{b: make([]byte, 0, 1<<10+256*s.NumTasks())}
	e.begin(s.ID(), at)
	h, progress, totals := s.Header(), s.Progress(), s.Totals()
	e.members(markObject.part("", "iterationsSeq"), &at)
	e.members(headerObject.part("", "settings"), &h)
	e.object("progress", func() { e.members(progressObject, &progress) })
	e.members(sumsObject, &totals)
	e.members(markObject.part("iterationsSeq", "inherits"), &at)
	e.members(headerObject.part("settings", ""), &h)
	e.members(markObject.part("inherits", ""), &at)
	e.extra(h.Extra)
	e.tasks("tasks", s, s.Roots())
	return envelope.Checksum.Append(e.b)
}

// EncodeMetrics returns the content of metrics.json: the totals, then every
// iteration, then the checksum.
func EncodeMetrics(s *session.State, at session.Mark) []byte {
	e := &encoder{b: make([]byte, 0, 1<<10+256*s.NumIterations())}
	e.begin(s.ID(), at)
	totals := s.Totals()
	e.object("totals", func() { e.members(totalsObject, &totals) })
	e.iterations(s.Metrics(), 0)
	return envelope.Checksum.Append(e.b)
}

// iterations appends all iterations but the first without.
func (e *encoder) iterations(m session.Metrics, without int) {
	e.array("iterations", func() {
		for it := range m.From(without) {
			e.element(func() { e.members(iterationObject, it) })
		}
	})
}

func (e *encoder) begin(id session.ID, at session.Mark) {
	e.b = append(e.b, '{')
	e.int("schemaVersion", SchemaVersion)
	e.str("id", id.String())
	e.str("module", id.Module)
	e.uint("epoch", at.Epoch)
	e.key("seq")
	e.b = strconv.AppendUint(e.b, at.Seq, 10)
}

func (e *encoder) tasks(key string, s *session.State, ids []string) {
	e.array(key, func() {
		for _, id := range ids {
			t := s.Lookup(id)
			e.element(func() {
				e.task(t)
				if len(t.Children) > 0 {
					e.tasks("children", s, t.Children)
				}
			})
		}
	})
}

func (e *encoder) task(t *session.Task) {
	e.members(taskObject, t)
	e.extra(t.Extra)
}

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
