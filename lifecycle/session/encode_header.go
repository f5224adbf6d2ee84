package session

// A member is one of the Header's in JSON. put appends it, or nothing when its
// value is zero; a change of the Header is written and read member by member.
type member struct {
	key string
	put func(e *encoder, h *Header)
}

// summaryMembers stand at the beginning of state.json, where a listing finds them.
var summaryMembers = []member{
	{"status", func(e *encoder, h *Header) { e.str("status", string(h.Status)) }},
	{"phase", func(e *encoder, h *Header) { e.str("phase", string(h.Phase)) }},
	{"step", func(e *encoder, h *Header) { e.str("step", string(h.Step)) }},
	{"exitReason", func(e *encoder, h *Header) { e.str("exitReason", string(h.ExitReason)) }},
	{"createdAt", func(e *encoder, h *Header) { e.time("createdAt", h.CreatedAt) }},
	{"updatedAt", func(e *encoder, h *Header) { e.time("updatedAt", h.UpdatedAt) }},
	{"completedAt", func(e *encoder, h *Header) { e.time("completedAt", h.CompletedAt) }},
	{"totalCostUSD", func(e *encoder, h *Header) { e.float("totalCostUSD", h.TotalCostUSD) }},
	{"component", func(e *encoder, h *Header) { e.str("component", h.Component) }},
	{"activeTask", func(e *encoder, h *Header) { e.str("activeTask", h.ActiveTask) }},
	{"lineage", putLineage},
}

// headerMembers are the others.
var headerMembers = []member{
	{"settings", putSettings},
	{"cwd", func(e *encoder, h *Header) { e.str("cwd", h.Cwd) }},
	{"agentName", func(e *encoder, h *Header) { e.str("agentName", h.AgentName) }},
	{"agentSession", func(e *encoder, h *Header) { e.str("agentSession", h.AgentSession) }},
	{"models", func(e *encoder, h *Header) { e.strs("models", h.Models) }},
	{"modelConfig", func(e *encoder, h *Header) { e.raw("modelConfig", h.ModelConfig) }},
	{"contextWindow", func(e *encoder, h *Header) { e.num("contextWindow", h.ContextWindow) }},
	{"turnCount", func(e *encoder, h *Header) { e.num("turnCount", int64(h.TurnCount)) }},
	{"rateLimit", putRateLimit},
	{"git", putGit},
	{"transactionId", func(e *encoder, h *Header) { e.str("transactionId", h.TransactionID) }},
	{"requiresValidation", func(e *encoder, h *Header) { e.flag("requiresValidation", h.RequiresValidation) }},
	{"check", putCheck},
	{"resources", putResources},
	{"data", func(e *encoder, h *Header) { e.raw("data", h.Data) }},
}

func (e *encoder) members(h *Header, all []member) {
	for _, m := range all {
		m.put(e, h)
	}
}

func putSettings(e *encoder, h *Header) {
	e.object("settings", func() {
		s := &h.Settings
		e.strs("command", s.Command)
		e.str("agent", s.Agent)
		e.str("check", s.Check)
		e.str("unit", s.Unit)
		e.str("timeout", durationText(s.Timeout))
		e.str("idleTimeout", durationText(s.IdleTimeout))
		e.num("failureThreshold", int64(s.FailureThreshold))
		e.flag("requireChange", s.RequireChange)
	})
}

func putRateLimit(e *encoder, h *Header) {
	if r := h.RateLimit; r != nil {
		e.object("rateLimit", func() {
			e.num("limit", r.Limit)
			e.num("remaining", r.Remaining)
			e.time("resetsAt", r.ResetsAt)
			e.time("seenAt", r.SeenAt)
		})
	}
}

func putGit(e *encoder, h *Header) {
	e.object("git", func() {
		e.str("head", h.Git.Head)
		e.str("branch", h.Git.Branch)
		e.flag("dirty", h.Git.Dirty)
		e.str("lastTaskCommit", h.Git.LastTaskCommit)
	})
}

func putLineage(e *encoder, h *Header) {
	if l := h.Lineage; l != nil {
		e.object("lineage", func() {
			e.str("kind", l.Kind)
			e.str("from", l.From.String())
			e.uint("seq", l.Seq)
		})
	}
}

func putCheck(e *encoder, h *Header) {
	if c := h.Check; c != nil {
		e.object("check", func() {
			e.str("command", c.Command)
			e.exit(c.Exit)
			e.time("at", c.At)
			e.str("duration", durationText(c.Duration))
			e.str("task", c.Task)
		})
	}
}

func putResources(e *encoder, h *Header) {
	if len(h.Resources) == 0 {
		return
	}
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
