package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrUnknownTask says that nothing in the plan answers to what was asked for.
var ErrUnknownTask = errors.New("no such task")

// An AmbiguousError says that more than one task answers to what was asked for.
type AmbiguousError struct {
	Query      string
	Candidates []string // IDs, in file order
}

func (e *AmbiguousError) Error() string {
	const shown = 10
	list, more := e.Candidates, ""
	if len(list) > shown {
		list, more = list[:shown], fmt.Sprintf(" and %d more", len(list)-shown)
	}
	return fmt.Sprintf("find task: %q could be any of %s%s", e.Query, strings.Join(list, ", "), more)
}

// Find returns the task that a person means: by ID, by `:LINE` (the line of its
// box or heading), or by a part of its text, in any case, that no other task
// has. A text that is the whole of one task's wins over those that contain it. The
// error is an *AmbiguousError or wraps ErrUnknownTask.
func (p *Plan) Find(query string) (Task, error) {
	if t, ok := p.Task(query); ok {
		return t, nil
	}
	if line, ok := strings.CutPrefix(query, ":"); ok {
		if n, err := strconv.Atoi(line); err == nil {
			return p.atLine(n)
		}
	}
	q := strings.ToLower(strings.TrimSpace(query))
	if q == "" {
		return Task{}, fmt.Errorf("find task: %w: the name is empty", ErrUnknownTask)
	}
	var whole, part []string
	for i := range p.tasks {
		name := strings.ToLower(p.tasks[i].Name)
		if name == q {
			whole = append(whole, p.tasks[i].ID)
		}
		if strings.Contains(name, q) {
			part = append(part, p.tasks[i].ID)
		}
	}
	found := part
	if len(whole) > 0 {
		found = whole
	}
	switch len(found) {
	case 0:
		return Task{}, fmt.Errorf("find task: %w: %q", ErrUnknownTask, query)
	case 1:
		t, _ := p.Task(found[0])
		return t, nil
	}
	return Task{}, &AmbiguousError{Query: query, Candidates: found}
}

func (p *Plan) atLine(n int) (Task, error) {
	for i := range p.tasks {
		if p.tasks[i].Line == n {
			t, _ := p.Task(p.tasks[i].ID)
			return t, nil
		}
	}
	return Task{}, fmt.Errorf("find task: %w on line %d", ErrUnknownTask, n)
}
