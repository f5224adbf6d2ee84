package session

import (
	"hash/crc32"
	"strconv"
)

// SchemaVersion is the version of state.json, metrics.json and the records that
// is written. No release wrote an earlier one.
const SchemaVersion = 2

// A Mark says which record of the journal a file shows.
type Mark struct {
	Epoch uint64 // of the writer that published the file
	Seq   uint64 // the record
	// Incarnation names the folder that the records are of: a session that was made
	// again from memory, after its folder was removed, has another one under its old ID.
	Incarnation string `json:"incarnation,omitzero"`
	// Iterations is the last record up to this one that changed the iterations:
	// a metrics.json of it or a later one has those of this State.
	Iterations uint64 `json:"iterationsSeq,omitzero"`
	// Messages and Transcript are how many messages and events of the transcript there
	// are, inherited ones included.
	Messages   uint64 `json:"messages,omitzero"`
	Transcript uint64 `json:"transcript,omitzero"`
	// Inherits says what a fork has of the logs that it goes on from, the oldest first:
	// of each the messages and events up to a record.
	Inherits []uint64 `json:"inherits,omitzero"`
	// OpenCalls are the IDs of the tool calls among the messages that have no
	// answer yet.
	OpenCalls []string `json:"openCalls,omitzero"`
	// Checkpoint is the one that the project's files were last known by: the newest
	// of the session. Undo is the one to which undo goes back, and
	// Rewinding a rewind that has begun and not ended.
	Checkpoint string     `json:"checkpoint,omitzero"`
	Undo       string     `json:"undo,omitzero"`
	Rewinding  *Rewinding `json:"rewinding,omitzero"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodeState returns the content of state.json: compact JSON, camelCase, what
// is zero left out; schemaVersion first, then what a listing shows, then the rest,
// then the tree of tasks, and last a checksum of all bytes before it. Every State
// can be encoded.
func EncodeState(s *State, at Mark) []byte {
	e := &encoder{b: make([]byte, 0, 1<<10+256*s.NumTasks())}
	e.begin(s.id, at)
	totals := s.iterations.totals
	e.members(markObject.part("", "iterationsSeq"), &at)
	e.members(headerObject.part("", "settings"), s.h)
	e.object("progress", func() { e.members(progressObject, &s.progress.Progress) })
	e.members(sumsObject, &totals)
	e.members(markObject.part("iterationsSeq", "inherits"), &at)
	e.members(headerObject.part("settings", ""), s.h)
	e.members(markObject.part("inherits", ""), &at)
	e.extra(s.h.Extra)
	e.tasks("tasks", s, s.roots)
	return e.seal()
}

// EncodeMetrics returns the content of metrics.json: the totals, then every
// iteration, then the checksum.
func EncodeMetrics(s *State, at Mark) []byte {
	e := &encoder{b: make([]byte, 0, 1<<10+256*s.NumIterations())}
	e.begin(s.id, at)
	totals := s.iterations.totals
	e.object("totals", func() { e.members(totalsObject, &totals) })
	e.iterations(s.iterations, 0)
	return e.seal()
}

// iterations appends a list of all but the first ones.
func (e *encoder) iterations(l iterations, without int) {
	e.array("iterations", func() {
		for it := range l.from(without) {
			e.element(func() { e.members(iterationObject, it) })
		}
	})
}

func (e *encoder) begin(id ID, at Mark) {
	e.b = append(e.b, '{')
	e.int("schemaVersion", SchemaVersion)
	e.str("id", id.String())
	e.str("module", id.Module)
	e.uint("epoch", at.Epoch)
	e.key("seq")
	e.b = strconv.AppendUint(e.b, at.Seq, 10)
}

func (e *encoder) seal() []byte { return Seal(e.b) }

func (e *encoder) tasks(key string, s *State, ids []string) {
	e.array(key, func() {
		for _, id := range ids {
			t, _ := s.tasks.Get(id)
			e.element(func() {
				e.task(t)
				if len(t.Children) > 0 {
					e.tasks("children", s, t.Children)
				}
			})
		}
	})
}

func (e *encoder) task(t *Task) {
	e.members(taskObject, t)
	e.extra(t.Extra)
}
