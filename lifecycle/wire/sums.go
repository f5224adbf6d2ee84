package wire

import "github.com/lopen-dev/lopen/lifecycle/session"

// stated are the sums that a file states. They are derived again when it is read and
// compared with these.
type stated struct {
	progress *session.Progress // nil where the file has none
	totals   *session.Totals   // likewise; of state.json without costs and durations
}

// compare finds the sums of two files that do not add up. Those of state.json are
// compared where metrics.json covers them.
func compare(s *stateFile, m *metricsFile) (sums session.Sums) {
	if p := s.stated.progress; p != nil {
		sums.Progress("state.json", *p, s.state.Progress())
	}
	if all := m.stated.totals; all != nil {
		sums.Totals("metrics.json", *all, "its iterations", m.iterations.Totals())
	}
	if m.at.Seq < s.at.Iterations || m.iterations.Len() < s.iterations {
		return sums
	}
	t := m.iterations.Truncate(s.iterations).Totals()
	t = session.Totals{Iterations: t.Iterations, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CachedTokens: t.CachedTokens}
	sums.Totals("state.json", *s.stated.totals, "the iterations", t)
	return sums
}
