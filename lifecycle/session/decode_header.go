package session

// stateKeys are the members of state.json that the decoder knows.
var stateKeys = []string{"schemaVersion", "id", "module", "epoch", "seq", "status", "phase", "step", "exitReason", "createdAt", "updatedAt", "completedAt",
	"progress", "iterations", "inputTokens", "outputTokens", "cachedTokens", "iterationsSeq", "totalCostUSD", "component", "activeTask",
	"settings", "cwd", "agentName", "agentSession", "models", "modelConfig", "contextWindow", "turnCount", "rateLimit", "git", "lineage",
	"transactionId", "requiresValidation", "check", "resources", "data", "tasks", "checksum"}

// header reads a member of the Header and says whether it is one.
func (d *decoder) header(h *Header, key string) bool {
	switch key {
	case "status":
		h.Status = Status(d.Text())
	case "phase":
		h.Phase = Phase(d.Text())
	case "step":
		h.Step = Step(d.Text())
	case "exitReason":
		h.ExitReason = ExitReason(d.Text())
	case "createdAt":
		h.CreatedAt = d.time()
	case "updatedAt":
		h.UpdatedAt = d.time()
	case "completedAt":
		h.CompletedAt = d.time()
	case "totalCostUSD":
		h.TotalCostUSD = d.Float()
	case "component":
		h.Component = d.Text()
	case "activeTask":
		h.ActiveTask = d.Text()
	case "settings":
		d.settings(&h.Settings)
	case "cwd":
		h.Cwd = d.Text()
	case "agentName":
		h.AgentName = d.Text()
	case "agentSession":
		h.AgentSession = d.Text()
	case "models":
		h.Models = d.strs()
	case "modelConfig":
		h.ModelConfig = d.raw()
	case "contextWindow":
		h.ContextWindow = d.Int()
	case "turnCount":
		h.TurnCount = d.int()
	case "rateLimit":
		h.RateLimit = d.rateLimit()
	case "git":
		d.git(&h.Git)
	case "lineage":
		h.Lineage = d.lineage()
	case "transactionId":
		h.TransactionID = d.Text()
	case "requiresValidation":
		h.RequiresValidation = d.Bool()
	case "check":
		h.Check = d.check()
	case "resources":
		d.Array(func() { h.Resources = append(h.Resources, d.resource()) })
	case "data":
		h.Data = d.raw()
	default:
		return false
	}
	return true
}

func (d *decoder) settings(s *Settings) {
	d.Object(func(key string) {
		switch key {
		case "command":
			s.Command = d.strs()
		case "agent":
			s.Agent = d.Text()
		case "check":
			s.Check = d.Text()
		case "unit":
			s.Unit = d.Text()
		case "timeout":
			s.Timeout = d.duration()
		case "idleTimeout":
			s.IdleTimeout = d.duration()
		case "failureThreshold":
			s.FailureThreshold = d.int()
		case "requireChange":
			s.RequireChange = d.Bool()
		default:
			d.Raw()
		}
	})
}

func (d *decoder) rateLimit() *RateLimit {
	r := &RateLimit{}
	d.Object(func(key string) {
		switch key {
		case "limit":
			r.Limit = d.Int()
		case "remaining":
			r.Remaining = d.Int()
		case "resetsAt":
			r.ResetsAt = d.time()
		case "seenAt":
			r.SeenAt = d.time()
		default:
			d.Raw()
		}
	})
	return r
}

func (d *decoder) git(g *Git) {
	d.Object(func(key string) {
		switch key {
		case "head":
			g.Head = d.Text()
		case "branch":
			g.Branch = d.Text()
		case "dirty":
			g.Dirty = d.Bool()
		case "lastTaskCommit":
			g.LastTaskCommit = d.Text()
		default:
			d.Raw()
		}
	})
}

func (d *decoder) lineage() *Lineage {
	l := &Lineage{}
	d.Object(func(key string) {
		switch key {
		case "kind":
			l.Kind = d.Text()
		case "from":
			l.From = d.id()
		case "seq":
			l.Seq = d.Uint()
		default:
			d.Raw()
		}
	})
	return l
}

func (d *decoder) check() *CheckResult {
	c := &CheckResult{}
	d.Object(func(key string) {
		switch key {
		case "command":
			c.Command = d.Text()
		case "exit":
			c.Exit = d.int()
		case "at":
			c.At = d.time()
		case "duration":
			c.Duration = d.duration()
		case "task":
			c.Task = d.Text()
		default:
			d.Raw()
		}
	})
	return c
}

func (d *decoder) resource() (r Resource) {
	d.Object(func(key string) {
		switch key {
		case "kind":
			r.Kind = d.Text()
		case "path":
			r.Path = d.Text()
		case "header":
			r.Header = d.Text()
		case "sha256":
			r.SHA256 = d.Text()
		case "bytes":
			r.Bytes = d.int()
		default:
			d.Raw()
		}
	})
	return r
}
