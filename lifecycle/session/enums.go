package session

import (
	"fmt"
	"strings"
)

type (
	// Phase is the part of the workflow that a session is in.
	Phase string
	// Step is the step of the workflow within a phase.
	Step string
	// Kind is the level of a task.
	Kind string
	// TaskState is the state of a task.
	TaskState string
	// Status says whether a session is being worked on.
	Status string
	// ExitReason is why a session's last run ended; "" during a run.
	ExitReason string
)

// The phases, in order.
const (
	PhaseRequirementGathering Phase = "requirement-gathering"
	PhasePlanning             Phase = "planning"
	PhaseBuilding             Phase = "building"
	PhaseComplete             Phase = "complete"
)

// The steps, in order.
const (
	StepDraftSpecification    Step = "draft-specification"
	StepDetermineDependencies Step = "determine-dependencies"
	StepIdentifyComponents    Step = "identify-components"
	StepSelectNextComponent   Step = "select-next-component"
	StepBreakIntoTasks        Step = "break-into-tasks"
	StepIterateThroughTasks   Step = "iterate-through-tasks"
	StepRepeat                Step = "repeat"
)

// The kinds of tasks, outermost first.
const (
	KindModule    Kind = "module"
	KindComponent Kind = "component"
	KindTask      Kind = "task"
	KindSubtask   Kind = "subtask"
)

// The states of a task.
const (
	TaskPending    TaskState = "pending"
	TaskInProgress TaskState = "in-progress"
	TaskComplete   TaskState = "complete"
	TaskFailed     TaskState = "failed"
	TaskSkipped    TaskState = "skipped"
)

// The statuses of a session.
const (
	StatusActive   Status = "active"
	StatusPaused   Status = "paused"
	StatusComplete Status = "complete"
	// StatusInterrupted is only returned by Seen. No file and no State has it.
	StatusInterrupted Status = "interrupted"
)

// Seen returns a status as people are shown it. held says whether a process holds the
// session: an active session that is not held was interrupted.
func (s Status) Seen(held bool) Status {
	if s == StatusActive && !held {
		return StatusInterrupted
	}
	return s
}

// The reasons for which a run ends. ExitCrashed is set by the next opener.
const (
	ExitComplete      ExitReason = "complete"
	ExitPaused        ExitReason = "paused"
	ExitInterrupted   ExitReason = "interrupted"
	ExitFailed        ExitReason = "failed"
	ExitAgentLimit    ExitReason = "agent-limit"
	ExitBudget        ExitReason = "budget"
	ExitNeeded        ExitReason = "needed" // a person is needed
	ExitMaxIterations ExitReason = "max-iterations"
	ExitStorageError  ExitReason = "storage-error"
	ExitCrashed       ExitReason = "crashed"
)

// An Origin says who made a session.
type Origin string

// The origins. Retention, and the session that a run resumes, are of OriginRun only.
const (
	OriginRun    Origin = ""
	OriginHook   Origin = "hook"   // the hooks of an agent that a person started
	OriginImport Origin = "import" // taken over from an agent's own history
)

// The kinds of a Lineage.
const (
	LineageForked    = "forked"
	LineageContinued = "continued"
	LineageRecovered = "recovered"
)

var (
	phases = []Phase{PhaseRequirementGathering, PhasePlanning, PhaseBuilding, PhaseComplete}
	steps  = []Step{StepDraftSpecification, StepDetermineDependencies, StepIdentifyComponents, StepSelectNextComponent,
		StepBreakIntoTasks, StepIterateThroughTasks, StepRepeat}
	kinds       = []Kind{KindModule, KindComponent, KindTask, KindSubtask}
	taskStates  = []TaskState{TaskPending, TaskInProgress, TaskComplete, TaskFailed, TaskSkipped}
	statuses    = []Status{StatusActive, StatusPaused, StatusComplete}
	origins     = []Origin{OriginRun, OriginHook, OriginImport}
	lineages    = []string{LineageForked, LineageContinued, LineageRecovered}
	exitReasons = []ExitReason{"", ExitComplete, ExitPaused, ExitInterrupted, ExitFailed, ExitAgentLimit, ExitBudget, ExitNeeded, ExitMaxIterations, ExitStorageError, ExitCrashed}
)

// oneOfText returns a text with all values.
func oneOfText[T ~string](all []T) string {
	var names []string
	for _, v := range all {
		if v != "" {
			names = append(names, string(v))
		}
	}
	return "one of " + strings.Join(names, ", ")
}

// Trigger is why a state is saved.
type Trigger uint8

// The triggers of a save.
const (
	TriggerStepCompleted Trigger = iota
	TriggerTaskCompleted
	TriggerTaskFailed
	TriggerPhaseChanged
	TriggerComponentCompleted
	TriggerPaused
	TriggerSwitched

	NumTriggers // the number of triggers
)

var triggerNames = [NumTriggers]string{"step-completed", "task-completed", "task-failed", "phase-changed", "component-completed", "paused", "switched"}

func (t Trigger) String() string {
	if t < NumTriggers {
		return triggerNames[t]
	}
	return fmt.Sprintf("trigger %d", uint8(t))
}

// Box is a task's checkbox in the plan as lopen last wrote or saw it.
type Box uint8

// The states of a box.
const (
	BoxNone   Box = iota // the item has no box, or the box was not seen yet
	BoxOpen              // "open" in JSON
	BoxTicked            // "ticked" in JSON
)

var boxNames = [...]string{"", "open", "ticked"}

func (b Box) String() string {
	if int(b) < len(boxNames) {
		return boxNames[b]
	}
	return fmt.Sprintf("box %d", uint8(b))
}
