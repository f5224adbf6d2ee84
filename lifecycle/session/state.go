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
	h        *Header // shared by the States in which it is the same
	tasks    trie.Map[Task]
	roots    []string
	progress tally
	metrics  Metrics
}

// Progress counts the tasks that run: leaves that are no components.
type Progress struct {
	Done    int `json:"done"`
	Total   int `json:"total"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// A tally is what a State counts of its tasks when one comes, goes or changes.
type tally struct {
	Progress
	odd int // those that Check has to look at: without them it looks at none
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

// New is the State of a session at its creation: active, in its first phase and
// step, without tasks. An ID that cannot be and a year beyond 9999 are an
// [*InvalidError].
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

// Blank is what there is before the first record of a session: nothing but its ID. It
// is what the first change is compared with and edited from; its header is not valid.
func Blank(id ID) *State { return &State{id: id, h: &Header{}} }

// As is the State of another session that is, so far, the same. An ID that cannot
// be is an [*InvalidError].
func (s *State) As(id ID) (*State, error) {
	if _, err := ParseID(id.String()); err != nil {
		return nil, err
	}
	other := *s
	other.id = id
	return &other, nil
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

// SharesHeader says whether two States have one header between them, so that it need
// not be compared. Headers that differ are never shared.
func (s *State) SharesHeader(other *State) bool { return s.h == other.h }

// Progress returns the counts of the tasks that run, in O(1).
func (s *State) Progress() Progress { return s.progress.Progress }

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

// Lookup is Task without the copy, nil for one that is not there. What the pointer
// leads to is the State's own: read only.
func (s *State) Lookup(id string) *Task {
	t, _ := s.tasks.Get(id)
	return t
}

// Roots returns the IDs of the outermost tasks, in the plan's order. They are shared:
// read only.
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

// Diff calls fn for every task that differs between two States, in no particular
// order and with nil for "not there", until fn returns false. What the pointers
// lead to is the States' own: read only. Only what the States do not share is
// walked, so that comparing a State with the one that an Edit made of it costs
// what the change did. A parent whose list of children was copied differs, too.
func Diff(from, to *State, fn func(id string, from, to *Task) bool) {
	trie.Diff(from.tasks, to.tasks, fn)
}
