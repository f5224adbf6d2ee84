package session

import (
	"slices"
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Header is everything of a State but its ID, its tasks and its iterations. The members
// before Settings are at the beginning of state.json, where a listing reads them.
type Header struct {
	Status       Status     `json:"status,omitzero"`
	Phase        Phase      `json:"phase,omitzero"`
	Step         Step       `json:"step,omitzero"`
	ExitReason   ExitReason `json:"exitReason,omitzero"`
	CreatedAt    time.Time  `json:"createdAt,omitzero"`
	UpdatedAt    time.Time  `json:"updatedAt,omitzero"`
	CompletedAt  time.Time  `json:"completedAt,omitzero"`
	TotalCostUSD float64    `json:"totalCostUSD,omitzero"`
	Component    string     `json:"component,omitzero"`  // ID of the component that is worked on
	ActiveTask   string     `json:"activeTask,omitzero"` // ID of the task that is worked on now
	Lineage      *Lineage   `json:"lineage,omitzero"`
	// TransactionID is the transaction that the session is in, or was in last.
	TransactionID string `json:"transactionId,omitzero"`
	Origin        Origin `json:"origin,omitzero"` // who made the session; "" for a run of lopen
	// Holder is the process whose turn is in progress in an active session that no process of
	// lopen has open: the agent's, between two of its hooks. It is nil in a session of a run.
	Holder *Holder `json:"holder,omitzero"`

	Settings      Settings         `json:"settings,omitzero"` // effective settings of the run
	Worktree      *Worktree        `json:"worktree,omitzero"` // nil for the project's folder
	Cwd           string           `json:"cwd,omitzero"`      // relative to the project
	AgentName     string           `json:"agentName,omitzero"`
	AgentSession  string           `json:"agentSession,omitzero"` // the agent's ID of its own session
	Models        []string         `json:"models,omitzero"`
	ModelConfig   strictjson.Value `json:"modelConfig,omitzero"`   // one JSON object, as the agent reported it
	ContextWindow int64            `json:"contextWindow,omitzero"` // in tokens, as the agent reported it
	TurnCount     int              `json:"turnCount,omitzero"`
	RateLimit     *RateLimit       `json:"rateLimit,omitzero"`
	Git           Git              `json:"git,omitzero"`
	// Commits is what a run that commits has to remember; nil if the last run did not commit.
	Commits *Commits `json:"commits,omitzero"`
	// RequiresValidation is set on a recovered session until a person accepts it.
	RequiresValidation bool             `json:"requiresValidation,omitzero"`
	Check              *CheckResult     `json:"check,omitzero"`     // result of the last check
	Resources          []Resource       `json:"resources,omitzero"` // the parts of documents in the last prompt
	Data               strictjson.Value `json:"data,omitzero"`      // one JSON object of the caller's own, at most 1 MiB
	Extra              []Field          // fields that this version does not know; they are written back unchanged
}

// Settings are the settings of a run that a resume uses again: how a task is done and
// checked. Settings that limit one run, or depend on whether a person is present
// (max_iterations, wait, unattended), are not among them. 0 means off or no limit.
type Settings struct {
	Command          []string      `json:"command,omitzero"`
	Agent            string        `json:"agent,omitzero"`
	Check            string        `json:"check,omitzero"`
	Unit             string        `json:"unit,omitzero"`
	Timeout          time.Duration `json:"timeout,omitzero"` // of an attempt; 0 is none
	IdleTimeout      time.Duration `json:"idleTimeout,omitzero"`
	FailureThreshold int           `json:"failureThreshold,omitzero"` // attempts at a task; 0 is no limit
	RequireChange    bool          `json:"requireChange,omitzero"`
	Commit           bool          `json:"commit,omitzero"` // commit the files of each task that is done
	Branch           bool          `json:"branch,omitzero"` // on a branch of the session's own
}

// Commits is what a run that commits has to remember. A Header's Commits is replaced and never
// changed.
type Commits struct {
	Branch string `json:"branch,omitzero"` // never empty
	// Pending is the ID of a task that is complete and may have no commit yet. Its commit has
	// Git.Head as its parent.
	Pending string `json:"pending,omitzero"`
	// Held are the files that are not committed: they differed from HEAD before a task changed
	// them. Paths are relative to the project and redacted.
	Held []string `json:"held,omitzero"`
}

// A RateLimit is what an agent reported of its provider's limit.
type RateLimit struct {
	Limit     int64     `json:"limit,omitzero"`
	Remaining int64     `json:"remaining,omitzero"`
	ResetsAt  time.Time `json:"resetsAt,omitzero"`
	SeenAt    time.Time `json:"seenAt,omitzero"`
}

// Git is the state of the project's repository; empty without git.
type Git struct {
	Head           string `json:"head,omitzero"`
	Branch         string `json:"branch,omitzero"`
	Dirty          bool   `json:"dirty,omitzero"`
	LastTaskCommit string `json:"lastTaskCommit,omitzero"` // HEAD when the last task was completed
}

// Lineage says which session this one came from.
type Lineage struct {
	Kind string `json:"kind,omitzero"` // LineageForked, LineageContinued or LineageRecovered
	From ID     `json:"from"`
	Seq  uint64 `json:"seq,omitzero"` // the record of From that this session began with
}

// StandsFor reports whether the session is that of an agent's own. A fork of it is not: it goes another way.
func (h *Header) StandsFor(agentSession string) bool {
	return h.AgentSession == agentSession && (h.Lineage == nil || h.Lineage.Kind != LineageForked)
}

// A CheckResult is the result of the last check.
type CheckResult struct {
	Command  string        `json:"command,omitzero"`
	Exit     int           `json:"exit"` // -1 when a signal or a timeout ended it
	At       time.Time     `json:"at,omitzero"`
	Duration time.Duration `json:"duration,omitzero"`
	Task     string        `json:"task,omitzero"` // ID of the task or unit that was checked
}

// A Holder is a process for which a session is held, beyond the life of the processes that write
// it. The start tells it from a later process with its number.
type Holder struct {
	PID     int       `json:"pid"`
	Start   string    `json:"start,omitempty"` // in the system's unit
	Host    string    `json:"host,omitempty"`
	Boot    string    `json:"boot,omitempty"` // ID of the boot that Start counts from
	Command string    `json:"command,omitempty"`
	Since   time.Time `json:"since"`
}

// A Resource is a part of a document that a prompt was made from.
type Resource struct {
	Kind   string `json:"kind,omitzero"` // specification, research or plan
	Path   string `json:"path,omitzero"` // relative to the project, with slashes
	Header string `json:"header,omitzero"`
	SHA256 string `json:"sha256,omitzero"` // of the part, in hex
	Bytes  int    `json:"bytes,omitzero"`
}

// clone returns a copy whose slices and pointers a caller may change. Data, ModelConfig and
// Extra are shared and must not be written to.
func (h Header) clone() Header {
	h.Settings.Command = slices.Clone(h.Settings.Command)
	h.Models = slices.Clone(h.Models)
	h.Resources = slices.Clone(h.Resources)
	h.RateLimit = clonePtr(h.RateLimit)
	h.Lineage = clonePtr(h.Lineage)
	h.Check = clonePtr(h.Check)
	h.Worktree = clonePtr(h.Worktree)
	h.Holder = clonePtr(h.Holder)
	return h
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// normal brings a header into the form that JSON preserves: times in UTC, and nil for an
// empty rate limit.
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
	if h.Holder != nil {
		h.Holder.Since = utc(h.Holder.Since)
	}
}
