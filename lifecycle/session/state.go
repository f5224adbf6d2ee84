package session

import (
	"iter"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

// A State is a session's state at one moment. It is immutable: share it freely, and use
// [State.Edit] to make a changed one.
type State struct {
	id       ID
	h        *Header // shared by States with the same header
	tasks    trie.Map[Task]
	roots    []string
	progress tally
	metrics  Metrics
}

// Progress counts the tasks that can be run: leaves that are neither modules nor components.
type Progress struct {
	Done    int `json:"done"`
	Total   int `json:"total"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// A tally has the counts that a State updates whenever a task is added, removed or changed.
type tally struct {
	Progress
	odd int // number of tasks that may break a rule; if it is 0 Check looks at no task
}

func (p *tally) count(t *Task, by int) {
	if t.odd() {
		p.odd += by
	}
	if !t.leaf() {
		return
	}
	p.Total += by
	switch t.State {
	case TaskComplete:
		p.Done += by
	case TaskFailed:
		p.Failed += by
	case TaskSkipped:
		p.Skipped += by
	case TaskPending, TaskInProgress:
	}
}

// New returns the State of a new session: active, in the first phase and step, without
// tasks. The error is an [*InvalidError] for an invalid ID or a year beyond 9999.
func New(id ID, now time.Time) (*State, error) {
	if _, err := ParseID(id.String()); err != nil {
		return nil, err
	}
	h := &Header{
		Status: StatusActive, Phase: PhaseRequirementGathering, Step: StepDraftSpecification,
		CreatedAt: utc(now), UpdatedAt: utc(now),
	}
	if err := h.validate(&Header{}); err != nil {
		return nil, err
	}
	return &State{id: id, h: h}, nil
}

// Blank returns the State before the first record of a session, which has only an ID. The
// first record has the change from it. Its header is not valid.
func Blank(id ID) *State { return &State{id: id, h: &Header{}} }

// As returns the same State with the ID of another session. The error is an [*InvalidError]
// for an invalid ID.
func (s *State) As(id ID) (*State, error) {
	if _, err := ParseID(id.String()); err != nil {
		return nil, err
	}
	other := *s
	other.id = id
	return &other, nil
}

// ID returns the session's ID.
func (s *State) ID() ID { return s.id }

// Status returns Header().Status without a copy of the header.
func (s *State) Status() Status { return s.h.Status }

// Phase returns Header().Phase without a copy of the header.
func (s *State) Phase() Phase { return s.h.Phase }

// ActiveTask returns Header().ActiveTask without a copy of the header.
func (s *State) ActiveTask() string { return s.h.ActiveTask }

// Header returns a copy of the header. Its Data, ModelConfig and Extra are shared and must
// not be changed.
func (s *State) Header() Header { return s.h.clone() }

// SharesHeader reports whether two States share one header, so that it need not be compared.
// States that do not share it may still have equal headers.
func (s *State) SharesHeader(other *State) bool { return s.h == other.h }

// Progress returns the counts of the tasks that can be run, in O(1).
func (s *State) Progress() Progress { return s.progress.Progress }

// NumTasks returns the number of all tasks, components included.
func (s *State) NumTasks() int { return s.tasks.Len() }

// Task returns the task with an ID. Its slices are shared and must not be changed.
func (s *State) Task(id string) (Task, bool) {
	t, ok := s.tasks.Get(id)
	if !ok {
		return Task{}, false
	}
	return *t, true
}

// Lookup is Task without the copy. It returns nil if there is no such task. The task belongs
// to the State and must not be changed.
func (s *State) Lookup(id string) *Task {
	t, _ := s.tasks.Get(id)
	return t
}

// Roots returns the IDs of the outermost tasks, in the plan's order. The slice is shared and
// must not be changed.
func (s *State) Roots() []string { return slices.Clip(s.roots) }

// All returns all tasks in the plan's order, a parent before its children.
func (s *State) All() iter.Seq[Task] {
	return func(yield func(Task) bool) { s.walk(s.roots, yield) }
}

func (s *State) walk(ids []string, yield func(Task) bool) bool {
	for _, id := range ids {
		t, _ := s.tasks.Get(id)
		if !yield(*t) || !s.walk(t.Children, yield) {
			return false
		}
	}
	return true
}

// Metrics returns the iterations with their sums.
func (s *State) Metrics() Metrics { return s.metrics }

// Totals returns the sums over all iterations, in O(1).
func (s *State) Totals() Totals { return s.metrics.Totals() }

// NumIterations returns how many times the command was started.
func (s *State) NumIterations() int { return s.metrics.Len() }

// Iterations returns the iterations, oldest first.
func (s *State) Iterations() iter.Seq[Iteration] {
	return func(yield func(Iteration) bool) {
		for it := range s.metrics.From(0) {
			if !yield(*it) {
				return
			}
		}
	}
}

// Diff calls fn for every task that differs between two States, in no particular order,
// until fn returns false. A missing task is nil. The tasks belong to the States and must not
// be changed. Diff skips what the States share, so that comparing a State with the one that
// an Edit made of it costs no more than the change. fn may also get tasks that are equal but
// not shared.
func Diff(from, to *State, fn func(id string, from, to *Task) bool) {
	trie.Diff(from.tasks, to.tasks, fn)
}
