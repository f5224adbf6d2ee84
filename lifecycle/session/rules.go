package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/writer/envelope"
)

// A rule is something that must hold for a session's files and for the State in
// them. Those that are critical hold for every State: nothing builds or reads one
// that breaks them. A session that breaks another can be used, and the finding is
// reported.
type rule struct {
	name, component, kind string
	severity              Severity
	repair                string // what a person may do
}

// What a rule looks at.
const (
	kindStructure  = "structure"  // how the parts are put together
	kindReferences = "references" // that what is named is there
	kindLogic      = "logic"      // that the values make sense together
	kindChecksum   = "checksum"   // that sums fit what they are of
)

// Severity says what follows from a broken rule.
type Severity string

// The severities, from mild to bad.
const (
	SeverityWarning  Severity = "warning"  // as a plan or a clock may have it
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

// A Finding says where a rule is broken.
type Finding struct {
	Rule      string   `json:"rule"`      // its name, such as dependency-cycle
	Component string   `json:"component"` // what the rule is about: files, session, tasks or metrics
	Kind      string   `json:"kind"`      // what it looks at: structure, references, logic or checksum
	Severity  Severity `json:"severity"`
	Count     int      `json:"count"`  // in how many places
	Where     []string `json:"where"`  // the first few of them, in words
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

// maxWhere bounds the places that a Finding names: a plan may break a rule in a
// million.
const maxWhere = 5

// findings gathers what is found, a Finding a rule.
type findings map[*rule]*Finding

// add notes a place. Which are named does not depend on the order of the calls:
// the tasks of a State come in none.
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

// list returns them in the order of the rules.
func (f findings) list() (all []Finding) {
	for _, r := range rules {
		if have := f[r]; have != nil {
			all = append(all, *have)
		}
	}
	return all
}

// broken is an error that is a critical rule's.
type broken struct {
	rule *rule
	error
}

func (b *broken) Unwrap() error { return b.error }

// FindingOf is an error of reading a session as a Finding. It is false for an error that
// is not about the content, such as a newer version's.
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

// CheckFolder says whether a State's ID is that of the folder that it was found in.
// The error wraps envelope.ErrCorrupt.
func CheckFolder(id, folder ID) error {
	if id == folder {
		return nil
	}
	return &broken{&ruleSessionID, fmt.Errorf("%w: it is that of session %s", envelope.ErrCorrupt, id)}
}
