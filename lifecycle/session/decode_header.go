package session

// header reads a member of the Header and says whether it is one.
func (d *decoder) header(h *Header, key string) bool {
	switch key {
	case "status":
		h.Status = Status(d.String())
	case "phase":
		h.Phase = Phase(d.String())
	case "step":
		h.Step = Step(d.String())
	case "exitReason":
		h.ExitReason = ExitReason(d.String())
	case "createdAt":
		h.CreatedAt = d.time()
	case "updatedAt":
		h.UpdatedAt = d.time()
	case "completedAt":
		h.CompletedAt = d.time()
	case "totalCostUSD":
		h.TotalCostUSD = d.Float()
	case "component":
		h.Component = d.String()
	case "activeTask":
		h.ActiveTask = d.String()
	case "settings":
		d.settings(&h.Settings)
	case "cwd":
		h.Cwd = d.String()
	case "agentName":
		h.AgentName = d.String()
	case "agentSession":
		h.AgentSession = d.String()
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
		h.TransactionID = d.String()
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
	d.fields(func(key string) {
		switch key {
		case "command":
			s.Command = d.strs()
		case "agent":
			s.Agent = d.String()
		case "check":
			s.Check = d.String()
		case "unit":
			s.Unit = d.String()
		case "timeout":
			s.Timeout = d.duration()
		case "idleTimeout":
			s.IdleTimeout = d.duration()
		case "wait":
			s.Wait = d.duration()
		case "failureThreshold":
			s.FailureThreshold = d.int()
		case "maxIterations":
			s.MaxIterations = d.int()
		case "unattended":
			s.Unattended = d.Bool()
		case "requireChange":
			s.RequireChange = d.Bool()
		default:
			d.Raw()
		}
	})
}

func (d *decoder) rateLimit() *RateLimit {
	r := &RateLimit{}
	d.fields(func(key string) {
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
	d.fields(func(key string) {
		switch key {
		case "head":
			g.Head = d.String()
		case "branch":
			g.Branch = d.String()
		case "dirty":
			g.Dirty = d.Bool()
		case "lastTaskCommit":
			g.LastTaskCommit = d.String()
		default:
			d.Raw()
		}
	})
}

func (d *decoder) lineage() *Lineage {
	l := &Lineage{}
	d.fields(func(key string) {
		switch key {
		case "kind":
			l.Kind = d.String()
		case "from":
			id, err := ParseID(d.String())
			if err != nil {
				d.invalid("%v", err)
			}
			l.From = id
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
	d.fields(func(key string) {
		switch key {
		case "command":
			c.Command = d.String()
		case "exit":
			c.Exit = d.int()
		case "at":
			c.At = d.time()
		case "duration":
			c.Duration = d.duration()
		default:
			d.Raw()
		}
	})
	return c
}

func (d *decoder) resource() (r Resource) {
	d.fields(func(key string) {
		switch key {
		case "kind":
			r.Kind = d.String()
		case "path":
			r.Path = d.String()
		case "header":
			r.Header = d.String()
		case "sha256":
			r.SHA256 = d.String()
		case "bytes":
			r.Bytes = d.int()
		default:
			d.Raw()
		}
	})
	return r
}
