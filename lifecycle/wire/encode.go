package wire

import (
	"strconv"

	"github.com/lopen-dev/lopen/lifecycle/session"
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
