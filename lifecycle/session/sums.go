package session

// Sums compares the sums in a file with those that are derived when it is read. The zero
// value has no findings.
type Sums struct{ found findings }

// Progress compares the progress that a file states with that of its tasks.
func (s *Sums) Progress(file string, stated, is Progress) {
	if stated != is {
		s.add(&ruleProgress, "%s says %+v and the tasks come to %+v", file, stated, is)
	}
}

// Totals compares the totals that a file states with those of the iterations. iterations
// names the latter in the finding.
func (s *Sums) Totals(file string, stated Totals, iterations string, is Totals) {
	if stated != is {
		s.add(&ruleTotals, "%s says %+v and %s come to %+v", file, stated, iterations, is)
	}
}

func (s *Sums) add(r *rule, format string, args ...any) {
	if s.found == nil {
		s.found = findings{}
	}
	s.found.add(r, format, args...)
}

// Findings returns the sums that do not agree, in the order of the rules.
func (s *Sums) Findings() []Finding { return s.found.list() }
