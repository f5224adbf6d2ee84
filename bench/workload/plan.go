package workload

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Seed is what all random choices follow from.
const Seed = 20260214

const perComponent = 100

// TaskID is the i-th task of a plan.
func TaskID(i int) string { return fmt.Sprintf("%s/task-%d", ComponentID(i), i) }

// ComponentID is the component of the i-th task.
func ComponentID(i int) string { return fmt.Sprintf("component-%d", i/perComponent) }

// TaskName is what every task is called.
const TaskName = "add the endpoint and a test that fails without it"

// Fill gives a State n tasks.
func Fill(e *session.Edit, n int) {
	var roots []string
	for c := 0; c < n; c += perComponent {
		component := session.Task{ID: ComponentID(c), Name: "component", Kind: session.KindComponent, State: session.TaskPending}
		for i := c; i < min(n, c+perComponent); i++ {
			component.Children = append(component.Children, TaskID(i))
			e.Put(session.Task{ID: TaskID(i), Parent: component.ID, Name: TaskName, Kind: session.KindTask, State: session.TaskPending})
		}
		e.Put(component)
		roots = append(roots, component.ID)
	}
	e.SetRoots(roots)
}

// A Step is what one turn of a loop changes.
type Step struct {
	Task     int // its number
	Attempts int // that it has now: never what it had before
	// Iteration says that the turn is counted in the metrics.
	Iteration bool
}

// StepOf is the i-th step of a loop over n tasks. It goes through the plan with a
// stride, so that no cache has the task at hand because the last step had it.
func StepOf(i, n int) Step {
	const stride = 7919
	return Step{Task: int(uint64(i) * stride % uint64(n)), Attempts: i + 1}
}

// Apply makes the step in a State.
func (s Step) Apply(e *session.Edit) error {
	t, ok := e.Task(TaskID(s.Task))
	if !ok {
		return fmt.Errorf("there is no task %s", TaskID(s.Task))
	}
	t.Attempts = s.Attempts
	e.Put(t)
	if s.Iteration {
		e.AppendIteration(session.Iteration{InputTokens: 12_000, OutputTokens: 800, ContextWindow: 200_000, Duration: 40 * time.Second})
	}
	return nil
}
