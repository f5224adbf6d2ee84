package session

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// MaxData bounds Header.Data, in bytes.
const MaxData = 1 << 20

// maxText bounds the strings of a Header, in bytes.
const maxText = 64 << 10

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

// Settings are the settings of a run that a resume uses again. 0 is off or no limit.
type Settings struct {
	Command                    []string
	Agent, Check, Unit         string
	Timeout, IdleTimeout, Wait time.Duration
	FailureThreshold           int
	MaxIterations              int
	Unattended, RequireChange  bool
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
	Kind string // forked, continued or recovered
	From ID
	Seq  uint64
}

// A CheckResult is how the check ended the last time.
type CheckResult struct {
	Command  string
	Exit     int // -1 when a signal or a timeout ended it
	At       time.Time
	Duration time.Duration
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

// normal brings the times to what JSON keeps.
func (h *Header) normal() {
	h.CreatedAt, h.UpdatedAt, h.CompletedAt = utc(h.CreatedAt), utc(h.UpdatedAt), utc(h.CompletedAt)
	if h.RateLimit != nil {
		h.RateLimit.ResetsAt, h.RateLimit.SeenAt = utc(h.RateLimit.ResetsAt), utc(h.RateLimit.SeenAt)
	}
	if h.Check != nil {
		h.Check.At = utc(h.Check.At)
	}
}

func (h *Header) validate() error {
	for _, err := range []error{
		oneOf("status", h.Status, statuses), oneOf("phase", h.Phase, phases), oneOf("step", h.Step, steps),
		oneOf("exit reason", h.ExitReason, exitReasons),
		text("component", h.Component, MaxTaskID), text("active task", h.ActiveTask, MaxTaskID),
		object("data", h.Data), object("model config", h.ModelConfig),
		times(h.CreatedAt, h.UpdatedAt, h.CompletedAt),
	} {
		if err != nil {
			return err
		}
	}
	all := slices.Concat([]string{h.Cwd, h.AgentName, h.AgentSession, h.TransactionID, h.Git.Head, h.Git.Branch, h.Git.LastTaskCommit,
		h.Settings.Agent, h.Settings.Check, h.Settings.Unit}, h.Settings.Command, h.Models)
	for _, r := range h.Resources {
		all = append(all, r.Kind, r.Path, r.Header, r.SHA256)
	}
	if h.Check != nil {
		all = append(all, h.Check.Command)
		if err := times(h.Check.At); err != nil {
			return err
		}
	}
	if h.RateLimit != nil {
		if err := times(h.RateLimit.ResetsAt, h.RateLimit.SeenAt); err != nil {
			return err
		}
	}
	if l := h.Lineage; l != nil {
		if _, err := ParseID(l.From.String()); err != nil {
			return err
		}
		all = append(all, l.Kind)
	}
	for _, s := range all {
		if err := text("text", s, maxText); err != nil {
			return err
		}
	}
	if math.IsNaN(h.TotalCostUSD) || math.IsInf(h.TotalCostUSD, 0) {
		return &InvalidError{Field: "total cost", Value: strconv.FormatFloat(h.TotalCostUSD, 'g', -1, 64), Want: "a finite number"}
	}
	return nil
}

// object checks that raw is empty or one compact-able JSON object of bounded size.
func object(field string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	t := bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) > MaxData || !utf8.Valid(raw) || !json.Valid(raw) || len(t) == 0 || t[0] != '{' || strictObject(raw) != nil {
		return &InvalidError{Field: field, Value: string(raw), Want: "one JSON object of at most " + itoa(MaxData) + " bytes, no key twice"}
	}
	return nil
}

func itoa(n int) string { return strconv.Itoa(n) }
