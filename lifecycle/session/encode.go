package session

import (
	"fmt"
	"hash/crc32"
	"strconv"
)

// SchemaVersion is the version of state.json and metrics.json that is written.
const SchemaVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodeState returns the content of state.json: compact JSON, camelCase, what
// is zero left out; schemaVersion first, then what a listing shows, then the rest,
// then the tree of tasks, and last a checksum of all bytes before it. Every State
// can be encoded. seq is the sequence number of the commit.
func EncodeState(s *State, seq uint64) []byte {
	e := &encoder{b: make([]byte, 0, 1<<10+256*s.NumTasks())}
	e.begin(s.id, seq)
	e.summary(s)
	e.header(s.h)
	e.key("tasks")
	e.tasks(s, s.roots)
	return e.seal()
}

// EncodeMetrics returns the content of metrics.json: the totals, then every
// iteration, then the checksum.
func EncodeMetrics(s *State, seq uint64) []byte {
	e := &encoder{b: make([]byte, 0, 1<<10+256*s.NumIterations())}
	e.begin(s.id, seq)
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
	e.key("iterations")
	e.b = append(e.b, '[')
	for it := range s.iterations.all() {
		e.element(func() { e.iteration(it) })
	}
	e.b = append(e.b, ']')
	return e.seal()
}

func (e *encoder) begin(id ID, seq uint64) {
	e.b = append(e.b, `{"schemaVersion":`...)
	e.b = strconv.AppendInt(e.b, SchemaVersion, 10)
	e.str("id", id.String())
	e.str("module", id.Module)
	e.key("seq")
	e.b = strconv.AppendUint(e.b, seq, 10)
}

// checksumKey begins what seal appends: the checksum is of all before it.
const checksumKey = `,"checksum":"crc32c:`

func (e *encoder) seal() []byte {
	return fmt.Appendf(e.b, "%s%08x\"}\n", checksumKey, crc32.Checksum(e.b, castagnoli))
}

func (e *encoder) summary(s *State) {
	h := s.h
	e.str("status", string(h.Status))
	e.str("phase", string(h.Phase))
	e.str("step", string(h.Step))
	e.str("exitReason", string(h.ExitReason))
	e.time("createdAt", h.CreatedAt)
	e.time("updatedAt", h.UpdatedAt)
	e.time("completedAt", h.CompletedAt)
	p := s.progress
	e.b = fmt.Appendf(e.b, `,"progress":{"done":%d,"total":%d,"failed":%d,"skipped":%d}`, p.Done, p.Total, p.Failed, p.Skipped)
	e.num("iterations", int64(s.NumIterations()))
	e.num("inputTokens", s.iterations.totals.InputTokens)
	e.num("outputTokens", s.iterations.totals.OutputTokens)
	e.num("cachedTokens", s.iterations.totals.CachedTokens)
	e.float("totalCostUSD", h.TotalCostUSD)
	e.str("component", h.Component)
	e.str("activeTask", h.ActiveTask)
}

func (e *encoder) header(h *Header) {
	e.object("settings", func() {
		s := &h.Settings
		e.strs("command", s.Command)
		e.str("agent", s.Agent)
		e.str("check", s.Check)
		e.str("unit", s.Unit)
		e.str("timeout", durationText(s.Timeout))
		e.str("idleTimeout", durationText(s.IdleTimeout))
		e.str("wait", durationText(s.Wait))
		e.num("failureThreshold", int64(s.FailureThreshold))
		e.num("maxIterations", int64(s.MaxIterations))
		e.flag("unattended", s.Unattended)
		e.flag("requireChange", s.RequireChange)
	})
	e.str("cwd", h.Cwd)
	e.str("agentName", h.AgentName)
	e.str("agentSession", h.AgentSession)
	e.strs("models", h.Models)
	e.raw("modelConfig", h.ModelConfig)
	e.num("contextWindow", h.ContextWindow)
	e.num("turnCount", int64(h.TurnCount))
	if r := h.RateLimit; r != nil {
		e.object("rateLimit", func() {
			e.num("limit", r.Limit)
			e.num("remaining", r.Remaining)
			e.time("resetsAt", r.ResetsAt)
			e.time("seenAt", r.SeenAt)
		})
	}
	e.object("git", func() {
		e.str("head", h.Git.Head)
		e.str("branch", h.Git.Branch)
		e.flag("dirty", h.Git.Dirty)
		e.str("lastTaskCommit", h.Git.LastTaskCommit)
	})
	if l := h.Lineage; l != nil {
		e.object("lineage", func() {
			e.str("kind", l.Kind)
			e.str("from", l.From.String())
			e.uint("seq", l.Seq)
		})
	}
	e.str("transactionId", h.TransactionID)
	e.flag("requiresValidation", h.RequiresValidation)
	if c := h.Check; c != nil {
		e.object("check", func() {
			e.str("command", c.Command)
			e.exit(c.Exit)
			e.time("at", c.At)
			e.str("duration", durationText(c.Duration))
		})
	}
	if len(h.Resources) > 0 {
		e.key("resources")
		e.b = append(e.b, '[')
		for _, r := range h.Resources {
			e.element(func() {
				e.str("kind", r.Kind)
				e.str("path", r.Path)
				e.str("header", r.Header)
				e.str("sha256", r.SHA256)
				e.num("bytes", int64(r.Bytes))
			})
		}
		e.b = append(e.b, ']')
	}
	e.raw("data", h.Data)
	e.extra(h.Extra)
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
