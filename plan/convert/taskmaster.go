package convert

import (
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// entries returns the objects of a member that is a list of them.
func (m member) entries() (all []entry, err error) {
	if m.text == "" {
		return nil, nil
	}
	d := decoder{src: []byte(m.text), r: strictjson.NewReader([]byte(m.text)), line: m.line}
	d.r.Array(func() { all = append(all, d.object()) })
	if d.r.Err() != nil {
		return nil, fmt.Errorf("line %d: %s is %s, want a list of objects", m.line, m.name, clip(m.text))
	}
	return all, nil
}

// readTaskMaster reads the tasks.json of Task Master: one list of tasks, or one for each tag.
func readTaskMaster(head entry) (*list, error) {
	tags, names := []entry{head}, []string{""}
	if !head.has("tasks") {
		tags, names = nil, nil
		for _, m := range head.members {
			one, err := member{line: m.line, text: "[" + m.text + "]"}.entries()
			if err != nil || len(one) == 0 || !one[0].has("tasks") {
				return nil, fmt.Errorf("line %d: an object without userStories or tasks, and no issue with number, title and body", head.line)
			}
			tags, names = append(tags, one...), append(names, m.name)
		}
	}
	l := &list{kind: kindMaster, prose: map[int]string{}}
	for i, tag := range tags {
		m, _ := tag.take("tasks")
		entries, err := m.entries()
		if err != nil {
			return nil, err
		}
		t := masterTask{heading: -1, parent: -1}
		if len(tags) > 1 {
			t.heading, t.tag = len(l.headings), strings.ToUpper(names[i])+"/"
			l.headings = append(l.headings, markdown.Heading{Level: 2, Text: names[i], Raw: names[i], Start: len(l.items), Parent: -1})
			l.keep = append(l.keep, true)
		}
		if err := l.masters(entries, t); err != nil {
			return nil, err
		}
		if rest := tag.others(); len(rest) > 0 {
			l.notes = append(l.notes, plan.Remark{Line: tag.line, Text: "left out: " + clip(strings.Join(rest, ", "))})
		}
	}
	return l, nil
}

// A masterTask is a task of Task Master.
type masterTask struct {
	story
	heading, parent int
	tag, up         string // before its label, and before its number
	dropped         string // its status, or that of what is around it, if that makes it none
	subtasks        []entry
}

// masters adds tasks that stand where t says, with their subtasks.
func (l *list) masters(entries []entry, t masterTask) error {
	for _, e := range entries {
		s := t
		if err := s.read(e); err != nil {
			return err
		}
		if l.boxes >= maxBoxes {
			return tooMany(s.line)
		}
		if s.dropped != "" {
			l.boxes++
			l.leave(s.line, fmt.Sprintf("%s: its status, or that of what it is part of, is %s", s.text, s.dropped))
		} else {
			l.task(s.line, s.done, s.tag+s.id, s.text, l.unboxed(s.line, s.id, s.details))
			at := len(l.items) - 1
			l.items[at].Heading, l.items[at].Parent, l.waits[at] = s.heading, s.parent, nil
			for _, id := range s.after {
				l.waits[at] = append(l.waits[at], ref{s.line, strings.ToUpper(s.tag + id)})
			}
			s.parent = at
		}
		s.up = s.id + "."
		if err := l.masters(s.subtasks, s); err != nil {
			return err
		}
	}
	return nil
}

// read reads a task. What has no place of its own in a plan goes into the details.
func (t *masterTask) read(e entry) error {
	id, err := e.id()
	if err != nil {
		return err
	}
	t.story = story{line: e.line, id: t.up + id, done: e.saysDone()}
	description, notes, err := e.name(&t.story)
	if err != nil {
		return err
	}
	var texts [3]string
	for i, name := range []string{"details", "testStrategy", "status"} {
		if texts[i], err = e.text(name); err != nil {
			return err
		}
	}
	switch status := texts[2]; {
	case t.dropped == "" && (status == "cancelled" || status == "deferred"):
		t.dropped = status
	case !t.done && status != "pending":
		notes = paragraphs(notes, said("Status", status))
	}
	after, _ := e.take("dependencies")
	for id := range strings.SplitSeq(strings.NewReplacer("[", "", "]", "", "\n", "", " ", "").Replace(after.text), ",") {
		if bare := strings.Trim(id, `"`); bare != id {
			t.after = append(t.after, bare)
		} else if id != "" {
			t.after = append(t.after, t.up+id) // a number in a subtask is of one beside it
		}
	}
	inner, _ := e.take("subtasks")
	t.subtasks, err = inner.entries()
	t.details = paragraphs(description, texts[0], said("Test strategy", texts[1]), said("Depends on", strings.Join(t.after, ", ")), notes, strings.Join(e.others(), "\n"))
	return err
}
