package session

import (
	"encoding/json"
	"slices"
	"time"
)

// A Header is everything of a State but its ID, its tasks and its iterations.
type Header struct {
	Status     Status
	Phase      Phase
	Step       Step
	Component  string // ID of the component that is worked on
	ActiveTask string // ID of the task that is worked on now
	ExitReason ExitReason

	CreatedAt, UpdatedAt, CompletedAt time.Time

	Settings     Settings // effective settings of the run
	Cwd          string   // relative to the project
	AgentName    string
	AgentSession string // the agent's own name for its session, for resuming it
	Models       []string
	ModelConfig  json.RawMessage // one JSON object, as the agent reported it
	// ContextWindow is in tokens, as the agent reported it.
	ContextWindow int64
	TurnCount     int
	TotalCostUSD  float64
	RateLimit     *RateLimit
	Git           Git
	Lineage       *Lineage
	TransactionID string
	// RequiresValidation is set on a recovered session until a person accepts it.
	RequiresValidation bool
	Check              *CheckResult    // of the last check
	Resources          []Resource      // what the last prompt was made from
	Data               json.RawMessage // one JSON object of the caller's own, at most MaxData bytes
	Extra              []Field         // fields that this version does not know, kept as they are
}

// Settings are the settings of a run that a resume uses again: how a task is done and
// judged. What bounds one run, or says whether a person is there (max_iterations, wait,
// unattended), is of that run alone and has no place here. 0 is off or no limit.
type Settings struct {
	Command              []string
	Agent, Check, Unit   string
	Timeout, IdleTimeout time.Duration // of an attempt; 0 is none
	FailureThreshold     int           // attempts at a task; 0 is no limit
	RequireChange        bool
}

// A RateLimit is what an agent reported of its provider's limit.
type RateLimit struct {
	Limit, Remaining int64
	ResetsAt, SeenAt time.Time
}

// Git is what git said of the project; empty without git.
type Git struct {
	Head, Branch   string
	Dirty          bool
	LastTaskCommit string // HEAD when the last task was completed
}

// Lineage says which session this one came from.
type Lineage struct {
	Kind string // LineageForked, LineageContinued or LineageRecovered
	From ID
	Seq  uint64
}

// A CheckResult is how the check ended the last time.
type CheckResult struct {
	Command  string
	Exit     int // -1 when a signal or a timeout ended it
	At       time.Time
	Duration time.Duration
	Task     string // ID of the task, or of the unit of several, that it judged
}

// A Resource is a part of a document that was used.
type Resource struct {
	Kind   string // specification, research or plan
	Path   string // relative to the project, with slashes
	Header string
	SHA256 string // of what was used, in hex
	Bytes  int
}

// clone copies what a caller could otherwise change behind a State's back.
// Data, ModelConfig and Extra are shared: they must not be written to.
func (h Header) clone() Header {
	h.Settings.Command = slices.Clone(h.Settings.Command)
	h.Models = slices.Clone(h.Models)
	h.Resources = slices.Clone(h.Resources)
	h.RateLimit = clonePtr(h.RateLimit)
	h.Lineage = clonePtr(h.Lineage)
	h.Check = clonePtr(h.Check)
	return h
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// normal brings a header to what JSON keeps: times in UTC, nothing where there
// is nothing to say.
func (h *Header) normal() {
	h.CreatedAt, h.UpdatedAt, h.CompletedAt = utc(h.CreatedAt), utc(h.UpdatedAt), utc(h.CompletedAt)
	if h.RateLimit != nil && *h.RateLimit == (RateLimit{}) {
		h.RateLimit = nil
	}
	if h.RateLimit != nil {
		h.RateLimit.ResetsAt, h.RateLimit.SeenAt = utc(h.RateLimit.ResetsAt), utc(h.RateLimit.SeenAt)
	}
	if h.Check != nil {
		h.Check.At = utc(h.Check.At)
	}
}
