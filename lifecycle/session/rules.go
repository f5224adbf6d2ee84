package session

import (
	"errors"
	"fmt"
	"slices"
)

// A Rule is something that must hold for a session's files and for the State in
// them. Those that are critical hold for every State: nothing builds or reads one
// that breaks them. What breaks the others can be gone on from, and is told.
type Rule struct {
	Name      string
	Component string // what it is about: files, session, tasks or metrics
	Kind      RuleKind
	Severity  Severity
	Repair    string // what a person may do
}

// RuleKind says what a rule looks at.
type RuleKind string

// The kinds of rules.
const (
	RuleStructure  RuleKind = "structure"  // how the parts are put together
	RuleReferences RuleKind = "references" // that what is named is there
	RuleLogic      RuleKind = "logic"      // that what is said makes sense
	RuleChecksum   RuleKind = "checksum"   // that sums fit what they are of
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
	ruleWhole       = Rule{"whole", "files", RuleStructure, SeverityCritical, repairRecover}
	ruleChecksum    = Rule{"checksum", "files", RuleChecksum, SeverityCritical, "look at it, then: lopen session recover ID --accept-edit, or --discard-edit"}
	ruleSessionID   = Rule{"session-id", "session", RuleReferences, SeverityCritical, "put the folder back under its own name, or recover: lopen session recover ID"}
	ruleDuplicate   = Rule{"duplicate-id", "tasks", RuleStructure, SeverityCritical, repairRecover}
	ruleOrphan      = Rule{"orphaned-task", "tasks", RuleReferences, SeverityCritical, repairRecover}
	ruleChildren    = Rule{"parent-knows-child", "tasks", RuleStructure, SeverityCritical, repairRecover}
	ruleDepth       = Rule{"parents-end", "tasks", RuleStructure, SeverityCritical, repairRecover}
	ruleCycle       = Rule{"dependency-cycle", "tasks", RuleLogic, SeverityError, "take one of the dependencies out of the plan"}
	ruleParent      = Rule{"parent-complete", "tasks", RuleLogic, SeverityError, "none is needed: the next run derives it from the children"}
	ruleProgress    = Rule{"progress-adds-up", "session", RuleChecksum, SeverityError, repairSave}
	ruleTotals      = Rule{"totals-add-up", "metrics", RuleChecksum, SeverityError, repairSave}
	ruleDependency  = Rule{"dependency-exists", "tasks", RuleReferences, SeverityWarning, repairPlan}
	ruleActiveThere = Rule{"active-exists", "session", RuleReferences, SeverityWarning, "none is needed: the next run chooses anew"}
	ruleOneActive   = Rule{"one-active-task", "tasks", RuleLogic, SeverityWarning, "none is needed: the next run begins them anew"}
	ruleTimes       = Rule{"times-run-forward", "session", RuleLogic, SeverityWarning, "look at the clock; what was measured meanwhile is wrong"}
)

var rules = []*Rule{&ruleWhole, &ruleChecksum, &ruleSessionID, &ruleDuplicate, &ruleOrphan, &ruleChildren, &ruleDepth, &ruleCycle, &ruleParent,
	&ruleProgress, &ruleTotals, &ruleDependency, &ruleActiveThere, &ruleOneActive, &ruleTimes}

// A Finding says where a rule is broken.
type Finding struct {
	Rule  Rule
	Count int      // in how many places
	Where []string // the first few of them, in words
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s (%s): ", f.Rule.Name, f.Rule.Severity)
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
type findings map[*Rule]*Finding

// add notes a place. Which are named does not depend on the order of the calls:
// the tasks of a State come in none.
func (f findings) add(r *Rule, format string, args ...any) {
	have := f[r]
	if have == nil {
		have = &Finding{Rule: *r}
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
	rule *Rule
	error
}

func (b *broken) Unwrap() error { return b.error }

// FindingOf is what an error of reading a session says as a Finding; false for one
// that says nothing of the content, such as a newer version's.
func FindingOf(err error) (Finding, bool) {
	var b *broken
	var r *Rule
	switch {
	case err == nil:
		return Finding{}, false
	case errors.As(err, &b):
		r = b.rule
	case errors.Is(err, ErrChecksum):
		r = &ruleChecksum
	case errors.Is(err, ErrCorrupt):
		r = &ruleWhole
	default:
		return Finding{}, false
	}
	return Finding{Rule: *r, Count: 1, Where: []string{err.Error()}}, true
}

// CheckFolder says whether a State's ID is that of the folder that it was found in.
// The error wraps ErrCorrupt.
func CheckFolder(id, folder ID) error {
	if id == folder {
		return nil
	}
	return &broken{&ruleSessionID, fmt.Errorf("%w: it is that of session %s", ErrCorrupt, id)}
}
