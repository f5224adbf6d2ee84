package session

// said are sums as a file states them. They are derived again when it is read and
// compared with these.
type said struct {
	progress *Progress // nil where the file has none
	totals   *Totals   // likewise; of state.json without costs and durations
}

// compare notes the sums of two files that do not add up. Those of state.json are
// compared where metrics.json covers them.
func compare(s *stateFile, m *metricsFile) findings {
	f := findings{}
	if p, is := s.said.progress, s.state.Progress(); p != nil && *p != is {
		f.add(&ruleProgress, "state.json says %+v and the tasks come to %+v", *p, is)
	}
	if all := totalsOf(m.iterations); m.said.totals != nil && *m.said.totals != all {
		f.add(&ruleTotals, "metrics.json says %+v and its iterations come to %+v", *m.said.totals, all)
	}
	if m.at.Seq < s.at.Iterations || len(m.iterations) < s.iterations {
		return f
	}
	t := totalsOf(m.iterations[:s.iterations])
	t = Totals{Iterations: t.Iterations, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CachedTokens: t.CachedTokens}
	if *s.said.totals != t {
		f.add(&ruleTotals, "state.json says %+v and the iterations come to %+v", *s.said.totals, t)
	}
	return f
}

func totalsOf(all []Iteration) (t Totals) {
	for i := range all {
		t.add(&all[i])
	}
	return t
}
