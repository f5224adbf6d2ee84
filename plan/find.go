package plan

import (
	"errors"
	"fmt"
	"iter"
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

// A Name is what one task answers to.
type Name struct {
	ID   string
	Text string // "" where only the ID is known
	Line int    // 0 where the task is in no file
}

// Names yields what the plan's tasks answer to, in file order.
func (p *Plan) Names() iter.Seq[Name] {
	return func(yield func(Name) bool) {
		for i := range p.tasks {
			if t := &p.tasks[i]; !yield(Name{t.ID, t.Name, t.Line}) {
				return
			}
		}
	}
}

// Find returns the task that a person means, as FindName does.
func (p *Plan) Find(query string) (Task, error) {
	id, err := FindName(query, p.Names())
	t, _ := p.Task(id)
	return t, err
}

// FindName returns the ID of the task that a person means: by ID, by `:LINE` (the line of its
// box or heading), or by a part of its text or ID, in any case, that no other task has.
// The whole of a text wins over the end of an ID, that over a part of a text, and that over a
// part of an ID, which has to reach into the last name of it: else the name of a component
// would mean all that is beneath it. No ID is yielded twice. The error is an *AmbiguousError or
// wraps ErrUnknownTask.
func FindName(query string, names iter.Seq[Name]) (string, error) {
	line := -1
	if number, ok := strings.CutPrefix(query, ":"); ok {
		if n, err := strconv.Atoi(number); err == nil {
			line = max(n, 0)
		}
	}
	q := strings.ToLower(strings.TrimSpace(query))
	if q == "" {
		return "", fmt.Errorf("find task: %w: the name is empty", ErrUnknownTask)
	}
	var found [4][]string // by what answers, the strongest first
	for n := range names {
		switch {
		case n.ID == query, line > 0 && n.Line == line:
			return n.ID, nil
		case line >= 0:
		default:
			if i := answers(n, q); i < len(found) {
				found[i] = append(found[i], n.ID)
			}
		}
	}
	if line >= 0 {
		return "", fmt.Errorf("find task: %w on line %d", ErrUnknownTask, line)
	}
	for _, ids := range found {
		switch len(ids) {
		case 0:
		case 1:
			return ids[0], nil
		default:
			return "", &AmbiguousError{Query: query, Candidates: ids}
		}
	}
	return "", fmt.Errorf("find task: %w: %q", ErrUnknownTask, query)
}

// answers says how a task answers to a query in lower case, the strongest way first; 4 is not
// at all.
func answers(n Name, q string) int {
	text, id := strings.ToLower(n.Text), strings.ToLower(n.ID)
	switch {
	case text == q:
		return 0
	case id == q || strings.HasSuffix(id, "/"+q):
		return 1
	case strings.Contains(text, q):
		return 2
	case strings.LastIndex(id, q) >= 0 && strings.LastIndex(id, q)+len(q) > strings.LastIndexByte(id, '/')+1:
		return 3
	}
	return 4
}
