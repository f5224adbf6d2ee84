package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/writer/envelope"
)

// A rule is a condition on a session's files and on the State in them. A critical rule holds
// for every State: a State that breaks it can neither be built nor read. A session that
// breaks another rule can be used, and the finding is reported.
type rule struct {
	name, component, kind string
	severity              Severity
	repair                string // what a person may do
}

// What a rule checks.
const (
	kindStructure  = "structure"  // that the parts fit together
	kindReferences = "references" // that named things exist
	kindLogic      = "logic"      // that the values make sense together
	kindChecksum   = "checksum"   // that sums agree with their parts
)

// Severity says what follows from a broken rule.
type Severity string

// The severities, from mild to severe.
const (
	SeverityWarning  Severity = "warning"  // caused by the plan or the clock
	SeverityError    Severity = "error"    // a contradiction; the session is usable
	SeverityCritical Severity = "critical" // the session cannot be opened for writing
)

const (
	repairRecover = "build a new session from what is left: lopen session recover ID"
	repairPlan    = "correct the plan; the next run takes it over"
	repairSave    = "none is needed: the next save writes it anew"
)

// The rules, in the order in which they are reported.
var (
	ruleWhole       = rule{"whole", "files", kindStructure, SeverityCritical, repairRecover}
	ruleChecksum    = rule{"checksum", "files", kindChecksum, SeverityCritical, "look at it, then: lopen session recover ID --accept-edit, or --discard-edit"}
	ruleSessionID   = rule{"session-id", "session", kindReferences, SeverityCritical, "put the folder back under its own name, or recover: lopen session recover ID"}
	ruleDuplicate   = rule{"duplicate-id", "tasks", kindStructure, SeverityCritical, repairRecover}
	ruleOrphan      = rule{"orphaned-task", "tasks", kindReferences, SeverityCritical, repairRecover}
	ruleChildren    = rule{"parent-knows-child", "tasks", kindStructure, SeverityCritical, repairRecover}
	ruleDepth       = rule{"parents-end", "tasks", kindStructure, SeverityCritical, repairRecover}
	ruleCycle       = rule{"dependency-cycle", "tasks", kindLogic, SeverityError, "take one of the dependencies out of the plan"}
	ruleParent      = rule{"parent-complete", "tasks", kindLogic, SeverityError, "none is needed: the next run derives it from the children"}
	ruleProgress    = rule{"progress-adds-up", "session", kindChecksum, SeverityError, repairSave}
	ruleTotals      = rule{"totals-add-up", "metrics", kindChecksum, SeverityError, repairSave}
	ruleDependency  = rule{"dependency-exists", "tasks", kindReferences, SeverityWarning, repairPlan}
	ruleActiveThere = rule{"active-exists", "session", kindReferences, SeverityWarning, "none is needed: the next run chooses anew"}
	ruleOneActive   = rule{"one-active-task", "tasks", kindLogic, SeverityWarning, "none is needed: the next run begins them anew"}
	ruleTimes       = rule{"times-run-forward", "session", kindLogic, SeverityWarning, "look at the clock; what was measured meanwhile is wrong"}
)

var rules = []*rule{&ruleWhole, &ruleChecksum, &ruleSessionID, &ruleDuplicate, &ruleOrphan, &ruleChildren, &ruleDepth, &ruleCycle, &ruleParent,
	&ruleProgress, &ruleTotals, &ruleDependency, &ruleActiveThere, &ruleOneActive, &ruleTimes}

// A Finding is a broken rule with the places where it is broken.
type Finding struct {
	Rule      string   `json:"rule"`      // name of the rule, such as dependency-cycle
	Component string   `json:"component"` // files, session, tasks or metrics
	Kind      string   `json:"kind"`      // what the rule checks: structure, references, logic or checksum
	Severity  Severity `json:"severity"`
	Count     int      `json:"count"`  // number of places
	Where     []string `json:"where"`  // texts about the first few places
	Repair    string   `json:"repair"` // what a person may do
}

func (r *rule) finding(count int, where ...string) Finding {
	return Finding{Rule: r.name, Component: r.component, Kind: r.kind, Severity: r.severity, Count: count, Where: where, Repair: r.repair}
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s (%s): ", f.Rule, f.Severity)
	for i, w := range f.Where {
		if i > 0 {
			s += "; "
		}
		s += w
	}
	if more := f.Count - len(f.Where); more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s
}

// maxWhere bounds the places that a Finding names: a plan may break a rule in a million
// places.
const maxWhere = 5

// findings collects one Finding per rule.
type findings map[*rule]*Finding

// add adds a place. Which places are named does not depend on the order of the calls, since
// the tasks of a State have no order.
func (f findings) add(r *rule, format string, args ...any) {
	have := f[r]
	if have == nil {
		one := r.finding(0)
		have = &one
		f[r] = have
	}
	have.Count++
	place := fmt.Sprintf(format, args...)
	i, _ := slices.BinarySearch(have.Where, place)
	have.Where = slices.Insert(have.Where, i, place)
	have.Where = have.Where[:min(len(have.Where), maxWhere)]
}

// list returns the findings in the order of the rules.
func (f findings) list() (all []Finding) {
	for _, r := range rules {
		if have := f[r]; have != nil {
			all = append(all, *have)
		}
	}
	return all
}

// broken is an error with the critical rule that was broken.
type broken struct {
	rule *rule
	error
}

func (b *broken) Unwrap() error { return b.error }

// FindingOf returns an error of reading a session as a Finding. The boolean is false for an
// error that does not concern the content, such as that of a newer version.
func FindingOf(err error) (Finding, bool) {
	var b *broken
	var r *rule
	switch {
	case err == nil:
		return Finding{}, false
	case errors.As(err, &b):
		r = b.rule
	case errors.Is(err, ErrEdited):
		r = &ruleChecksum
	case errors.Is(err, envelope.ErrCorrupt):
		r = &ruleWhole
	default:
		return Finding{}, false
	}
	return r.finding(1, err.Error()), true
}

// CheckFolder returns an error that wraps envelope.ErrCorrupt if a State's ID is not that of
// its folder.
func CheckFolder(id, folder ID) error {
	if id == folder {
		return nil
	}
	return &broken{&ruleSessionID, fmt.Errorf("%w: it is that of session %s", envelope.ErrCorrupt, id)}
}

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
