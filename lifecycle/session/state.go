package session

import (
	"iter"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

// A State is everything that is known of a session at one moment. It is
// immutable: share it freely, change it through [State.Edit].
type State struct {
	id       ID
	h        Header
	tasks    trie.Map[Task]
	roots    []string
	links    int // children and roots, all together: equals the number of tasks
	progress Progress
	its      iterations
}

// Progress counts the tasks that run: leaves that are no components.
type Progress struct {
	Done    int `json:"done"`
	Total   int `json:"total"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

func (p *Progress) count(t *Task, by int) {
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

// New is the State of a session at its creation: active, in its first phase and
// step, without tasks.
func New(id ID, now time.Time) (*State, error) {
	if _, err := ParseID(id.String()); err != nil {
		return nil, err
	}
	s := &State{id: id, h: Header{
		Status: StatusActive, Phase: PhaseRequirementGathering, Step: StepDraftSpecification,
		CreatedAt: utc(now), UpdatedAt: utc(now),
	}}
	return s, s.h.validate()
}

// ID is the session's identity.
func (s *State) ID() ID { return s.id }

// Status is Header().Status without the copy.
func (s *State) Status() Status { return s.h.Status }

// Phase is Header().Phase without the copy.
func (s *State) Phase() Phase { return s.h.Phase }

// ActiveTask is Header().ActiveTask without the copy.
func (s *State) ActiveTask() string { return s.h.ActiveTask }

// Header returns a copy. Its Data, ModelConfig and Extra are shared: read only.
func (s *State) Header() Header { return s.h.clone() }

// Progress returns the counts of the tasks that run, in O(1).
func (s *State) Progress() Progress { return s.progress }

// NumTasks returns the number of all tasks, components included.
func (s *State) NumTasks() int { return s.tasks.Len() }

// Task returns the task with an ID. Its slices are shared: read only.
func (s *State) Task(id string) (Task, bool) {
	t, ok := s.tasks.Get(id)
	if !ok {
		return Task{}, false
	}
	return *t, true
}

// Roots returns the IDs of the outermost tasks, in the plan's order.
func (s *State) Roots() []string { return slices.Clone(s.roots) }

// All returns all tasks in the plan's order, a parent before its children.
func (s *State) All() iter.Seq[Task] {
	return func(yield func(Task) bool) { s.walk(s.roots, yield) }
}

func (s *State) walk(ids []string, yield func(Task) bool) bool {
	for _, id := range ids {
		t, ok := s.tasks.Get(id)
		if !ok {
			continue
		}
		if !yield(*t) || !s.walk(t.Children, yield) {
			return false
		}
	}
	return true
}

// Totals returns the sums over all iterations, in O(1).
func (s *State) Totals() Totals { return s.its.totals }

// NumIterations returns how many times the command was started.
func (s *State) NumIterations() int { return len(s.its.all) }

// Iterations returns the iterations, oldest first.
func (s *State) Iterations() iter.Seq[Iteration] { return slices.Values(s.its.all) }

// Diff calls fn for every task that differs between two States, nil standing for
// "not there", until fn returns false. It walks only what they do not share.
func Diff(from, to *State, fn func(id string, from, to *Task) bool) {
	trie.Diff(from.tasks, to.tasks, fn)
}
