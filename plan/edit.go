package plan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// ErrText says that a text cannot be the text of a task.
var ErrText = errors.New("a task's text is one line, not empty, without control characters")

// A Change makes a plan out of the one that a file holds now. base is the plan as
// its maker saw it, and the same one when nothing happened in between. What the
// change is about must be in now as it was in base, else it returns a
// *ConflictError; a plan that comes with one is to be written all the same.
//
// Changes are made by Boxes, Add, Remove, Move, Rename and Marks and
// carried out by Apply. Each leaves every byte alone that it is not about, and none
// returns a plan in which another task, or a heading, reads differently than before:
// only what waits for a task that gets another ID by it names that one.
type Change func(base, now *Plan) (*Plan, error)

// Boxes ticks (true) and unticks boxes by task ID, one byte each. Components have
// none and are passed over. A task that is ticked loses its mark. IDs that the
// plan has no more are in a *ConflictError, and all other boxes are set.
func Boxes(want map[string]bool) Change {
	return func(base, now *Plan) (*Plan, error) {
		conflict := &ConflictError{Op: "set boxes"}
		boxes := make(map[int]bool, len(want))
		var marks []cut
		bare := map[string]bool{} // whose mark goes
		same := comparison(base, now)
		for id, ticked := range want {
			i, ok := now.index[id]
			switch {
			case !ok:
				conflict.Missing = append(conflict.Missing, id)
			case now.tasks[i].Box < 0:
			case !same(id):
				conflict.Changed = append(conflict.Changed, id)
			default:
				boxes[now.tasks[i].Box] = ticked
				if ticked && now.tasks[i].Mark != (Mark{}) {
					marks = append(marks, now.cutMark(i)...)
					bare[id] = true
				}
			}
		}
		next := now.withBoxes(boxes)
		if len(marks) > 0 {
			slices.SortFunc(marks, func(a, b cut) int { return a.start - b.start })
			wanted := next.items()
			for i := range wanted {
				if bare[wanted[i].ID] {
					wanted[i].mark = Mark{}
				}
			}
			// The box is what matters: where taking a mark away would do more
			// than that, all marks stay.
			if unmarked, err := next.cut("set boxes", wanted, marks); err == nil {
				next = unmarked
			}
		}
		return next, conflict.orNil()
	}
}

// Remove takes a task out with everything beneath it.
func Remove(id string) Change {
	const op = "remove task"
	return func(base, now *Plan) (*Plan, error) {
		i, err := now.item(op, base, id)
		if err != nil {
			return nil, err
		}
		lines := now.spans[i]
		if was := base.spans[base.index[id]]; string(base.src[was.start:was.end]) != string(now.src[lines.start:lines.end]) {
			return nil, &ConflictError{Op: op, Changed: []string{id}} // what would go is not what was seen
		}
		if _, err := now.prefix(op, i); err != nil {
			return nil, err
		}
		want := slices.Delete(now.items(), now.nth(i), now.nth(i)+now.size(i))
		return now.cut(op, want, []cut{{lines.start, lines.end, ""}}, []cut{{lines.start, lines.end, now.eol(lines.start)}})
	}
}

// Rename gives a task another text, one line of Markdown. Comments at its end
// stay. Its ID changes with it, and so do those beneath it; what waits for them follows.
func Rename(id, text string) Change {
	const op = "rename task"
	return func(base, now *Plan) (*Plan, error) {
		i, err := now.item(op, base, id)
		if err != nil {
			return nil, err
		}
		name, err := nameOf(op, text)
		if err != nil {
			return nil, err
		}
		from, to := now.text(i)
		want := now.items()
		want[now.nth(i)].name = name
		return now.cut(op, want, []cut{{from, to, " " + strings.TrimSpace(text)}})
	}
}

// Marks writes marks behind the texts of tasks, by ID, each in place of the one
// that the task has; the zero Mark takes it away. A ticked task takes no mark and
// a component has no place for one: both are passed over. IDs that the plan has
// no more are in a *ConflictError, and all others are marked.
func Marks(want map[string]Mark) Change {
	const op = "mark tasks"
	return func(base, now *Plan) (*Plan, error) {
		conflict := &ConflictError{Op: op}
		same := comparison(base, now)
		items := now.items()
		nth := make(map[string]int, len(items))
		for n := range items {
			nth[items[n].ID] = n
		}
		var cuts []cut
		for id, mark := range want {
			i, ok := now.index[id]
			t := Task{Box: -1}
			if ok {
				t = now.tasks[i]
			}
			switch {
			case parseMark(mark.String()) != mark:
				return nil, fmt.Errorf("%s: %q is no mark", op, mark)
			case !ok:
				conflict.Missing = append(conflict.Missing, id)
			case t.Box < 0 || t.Mark == mark || mark != (Mark{}) && now.checked(i):
			case !same(id):
				conflict.Changed = append(conflict.Changed, id)
			default:
				cuts = append(cuts, now.cutMark(i)...)
				if mark != (Mark{}) {
					_, end := now.line(i)
					end = t.Box + len(bytes.TrimRight(now.src[t.Box:end], " \t"))
					cuts = append(cuts, cut{end, end, fmt.Sprintf(" <!-- lopen: %s -->", mark)})
				}
				items[nth[id]].mark = mark
			}
		}
		if len(cuts) == 0 {
			return now, conflict.orNil()
		}
		slices.SortStableFunc(cuts, func(a, b cut) int { return a.start - b.start })
		next, err := now.cut(op, items, cuts)
		if err != nil {
			return nil, err
		}
		return next, conflict.orNil()
	}
}

// nameOf returns what a task with a text would be called.
func nameOf(op, text string) (string, error) {
	items := markdown.Parse([]byte("- [ ] " + text)).Items()
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) || len(items) != 1 || items[0].Text == "" {
		return "", fmt.Errorf("%s: %w: %q", op, ErrText, text)
	}
	return items[0].Text, nil
}
