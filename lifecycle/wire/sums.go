package wire

import "github.com/lopen-dev/lopen/lifecycle/session"

// stated are the sums that a file states. They are compared with the sums that are derived
// when it is read.
type stated struct {
	progress *session.Progress // nil if the file has none
	totals   *session.Totals   // nil if the file has none; those of state.json lack costs and durations
}

// compare finds the sums of two files that do not agree. It checks the totals of state.json
// only if metrics.json has the same iterations or more.
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
