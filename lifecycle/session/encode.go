package session

import (
	"fmt"
	"hash/crc32"
	"strconv"
)

// SchemaVersion is the version of state.json, metrics.json and the records that
// is written. Version 1 had no journal.
const SchemaVersion = 2

// A Mark says which record of the journal a file shows.
type Mark struct {
	Epoch uint64 // of the writer that published the file
	Seq   uint64 // the record
	// Iterations is the last record up to this one that changed the iterations:
	// a metrics.json of it or a later one has those of this State.
	Iterations uint64
	// Messages and Transcript are how far these streams go.
	Messages, Transcript Tail
	// OpenCalls are the IDs of the tool calls among the messages that have no
	// answer yet.
	OpenCalls []string
	// Checkpoint is the one that the project's files were last known by: the newest
	// of the session. Undo is the one to which undo goes back, and
	// Rewinding a rewind that has begun and not ended.
	Checkpoint, Undo string
	Rewinding        *Rewinding
	// Incarnation names the folder that the records are of: a session that was made
	// again from memory, after its folder was removed, has another one under its old ID.
	Incarnation string
}

// A Tail is how far a stream of a session goes, as a record of the journal names it.
type Tail struct {
	File  string // the last one, in the session's folder; "" while the stream is empty
	Bytes int64  // of that file that count
	Count uint64 // records, those of earlier files included
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodeState returns the content of state.json: compact JSON, camelCase, what
// is zero left out; schemaVersion first, then what a listing shows, then the rest,
// then the tree of tasks, and last a checksum of all bytes before it. Every State
// can be encoded.
func EncodeState(s *State, at Mark) []byte {
	e := &encoder{b: make([]byte, 0, 1<<10+256*s.NumTasks())}
	e.begin(s.id, at)
	e.str("incarnation", at.Incarnation)
	e.members(s.h, summaryMembers)
	e.sums(s)
	e.uint("iterationsSeq", at.Iterations)
	e.tail("messages", at.Messages)
	e.tail("transcript", at.Transcript)
	e.members(s.h, headerMembers)
	e.strs("openCalls", at.OpenCalls)
	e.str("checkpoint", at.Checkpoint)
	e.str("undo", at.Undo)
	e.rewinding("rewinding", at.Rewinding)
	e.extra(s.h.Extra)
	e.key("tasks")
	e.tasks(s, s.roots)
	return e.seal()
}

// EncodeMetrics returns the content of metrics.json: the totals, then every
// iteration, then the checksum.
func EncodeMetrics(s *State, at Mark) []byte {
	e := &encoder{b: make([]byte, 0, 1<<10+256*s.NumIterations())}
	e.begin(s.id, at)
	t := s.iterations.totals
	e.object("totals", func() {
		e.num("iterations", int64(t.Iterations))
		e.num("inputTokens", t.InputTokens)
		e.num("outputTokens", t.OutputTokens)
		e.num("cachedTokens", t.CachedTokens)
		e.float("premiumRequests", t.PremiumRequests)
		e.float("costUSD", t.CostUSD)
		e.str("duration", durationText(t.Duration))
	})
	e.iterations(s.iterations, 0)
	return e.seal()
}

// iterations appends a list of all but the first ones.
func (e *encoder) iterations(l iterations, without int) {
	e.key("iterations")
	e.b = append(e.b, '[')
	for it := range l.from(without) {
		e.element(func() { e.iteration(it) })
	}
	e.b = append(e.b, ']')
}

func (e *encoder) begin(id ID, at Mark) {
	e.b = append(e.b, `{"schemaVersion":`...)
	e.b = strconv.AppendInt(e.b, SchemaVersion, 10)
	e.str("id", id.String())
	e.str("module", id.Module)
	e.uint("epoch", at.Epoch)
	e.key("seq")
	e.b = strconv.AppendUint(e.b, at.Seq, 10)
}

// tail appends how far a stream goes.
func (e *encoder) tail(key string, t Tail) {
	e.object(key, func() {
		e.str("file", t.File)
		e.num("bytes", t.Bytes)
		e.uint("count", t.Count)
	})
}

func (e *encoder) seal() []byte { return Seal(e.b) }

// sums appends what is derived from tasks and iterations.
func (e *encoder) sums(s *State) {
	p := s.progress
	e.b = fmt.Appendf(e.b, `,"progress":{"done":%d,"total":%d,"failed":%d,"skipped":%d}`, p.Done, p.Total, p.Failed, p.Skipped)
	e.num("iterations", int64(s.NumIterations()))
	e.num("inputTokens", s.iterations.totals.InputTokens)
	e.num("outputTokens", s.iterations.totals.OutputTokens)
	e.num("cachedTokens", s.iterations.totals.CachedTokens)
}

func (e *encoder) tasks(s *State, ids []string) {
	e.b = append(e.b, '[')
	for _, id := range ids {
		t, _ := s.tasks.Get(id)
		e.element(func() {
			e.task(t)
			if len(t.Children) > 0 {
				e.key("children")
				e.tasks(s, t.Children)
			}
		})
	}
	e.b = append(e.b, ']')
}

func (e *encoder) task(t *Task) {
	e.str("id", t.ID)
	e.str("kind", string(t.Kind))
	e.str("name", t.Name)
	e.str("state", string(t.State))
	e.strs("dependsOn", t.DependsOn)
	e.str("box", t.Box.String())
	e.num("attempts", int64(t.Attempts))
	e.str("lastError", t.LastError)
	e.time("startedAt", t.StartedAt)
	e.time("completedAt", t.CompletedAt)
	if len(t.Log) > 0 {
		e.key("log")
		e.b = append(e.b, '[')
		for i := range t.Log {
			a := &t.Log[i]
			e.element(func() {
				e.num("number", int64(a.Number))
				e.time("startedAt", a.StartedAt)
				e.time("endedAt", a.EndedAt)
				e.exit(a.Exit)
				e.str("signal", a.Signal)
				e.str("error", a.Error)
				e.strs("artifacts", a.Artifacts)
			})
		}
		e.b = append(e.b, ']')
	}
	e.extra(t.Extra)
}

func (e *encoder) iteration(it *Iteration) {
	e.num("number", int64(it.Number))
	e.str("task", it.Task)
	e.num("attempt", int64(it.Attempt))
	e.time("startedAt", it.StartedAt)
	e.str("duration", durationText(it.Duration))
	e.num("inputTokens", it.InputTokens)
	e.num("outputTokens", it.OutputTokens)
	e.num("cachedTokens", it.CachedTokens)
	e.num("contextWindow", it.ContextWindow)
	e.float("premiumRequests", it.PremiumRequests)
	e.float("costUSD", it.CostUSD)
	e.str("model", it.Model)
	e.num("turns", int64(it.Turns))
}
