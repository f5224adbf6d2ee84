package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/plan"
)

// An issue is one of GitHub's, as gh prints it.
type issue struct {
	line              int
	number            int
	title, body, more string
	closed, unplanned bool
}

// readIssues reads issues, the oldest first. One with a task list is the parent of the tasks
// in it, any other one a task.
func readIssues(entries []entry) (*list, error) {
	l := &list{kind: kindIssues, prose: map[int]string{}}
	var issues []issue
	lines := map[int]int{}
	for _, e := range entries {
		s, err := readIssue(e)
		if err != nil {
			return nil, err
		}
		if first, twice := lines[s.number]; twice {
			return nil, fmt.Errorf("line %d: issue #%d stands on line %d as well", s.line, s.number, first)
		}
		lines[s.number] = s.line
		issues = append(issues, s)
	}
	slices.SortStableFunc(issues, func(a, b issue) int { return a.number - b.number })
	for _, s := range issues {
		if err := l.issue(s); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func readIssue(e entry) (s issue, err error) {
	s.line = e.line
	if m, ok := e.take("number"); ok {
		if err := m.into(&s.number, "a number"); err != nil {
			return s, err
		}
	}
	if s.title, err = e.text("title"); err != nil {
		return s, err
	}
	if s.title = oneLine(s.title); s.title == "" || s.number <= 0 {
		return s, fmt.Errorf("line %d: an issue without a number or a title: gh issue list --json number,title,body,state,labels has them", s.line)
	}
	if s.body, err = e.text("body"); err != nil {
		return s, err
	}
	state, err := e.text("state")
	if err != nil {
		return s, err
	}
	reason, err := e.text("stateReason")
	if err != nil {
		return s, err
	}
	s.closed = strings.EqualFold(state, "closed")
	s.unplanned = s.closed && (strings.EqualFold(reason, "not_planned") || strings.EqualFold(reason, "duplicate"))
	labels, err := e.labels()
	if err != nil {
		return s, err
	}
	var more []string
	if labels != "" {
		more = append(more, "Labels: "+labels)
	}
	s.more = strings.Join(append(more, e.others()...), "\n")
	return s, nil
}

// labels returns the names of an issue's labels.
func (e *entry) labels() (string, error) {
	m, ok := e.take("labels")
	if !ok {
		return "", nil
	}
	var named []struct {
		Name string `json:"name"`
	}
	var names []string
	if m.into(&named, "") == nil {
		for _, n := range named {
			names = append(names, n.Name)
		}
	} else if err := m.into(&names, "a list of labels"); err != nil {
		return "", err
	}
	return oneLine(strings.ReplaceAll(strings.Join(names, ", "), "\x00", "")), nil
}

// issue adds an issue.
func (l *list) issue(s issue) error {
	label := "#" + strconv.Itoa(s.number)
	text := label + " " + s.title
	if s.unplanned {
		l.boxes++
		l.leave(s.line, text+": closed as not planned")
		return nil
	}
	body, err := readMarkdown([]byte(s.body))
	if err != nil {
		return fmt.Errorf("line %d: the body of %s: %w", s.line, label, err)
	}
	if s.closed || len(body.items) == 0 {
		l.task(s.line, s.closed, label, text, l.unboxed(s.line, label, paragraphs(s.body, s.more)))
		return nil
	}
	parent := len(l.items)
	l.task(s.line, false, label, text, paragraphs(body.around(), s.more))
	l.boxes += body.boxes
	for _, r := range body.notes {
		l.notes = append(l.notes, plan.Remark{Line: s.line, Text: fmt.Sprintf("%s, its body: %s", label, r.Text)})
	}
	for _, r := range body.left {
		l.leave(s.line, fmt.Sprintf("%s, line %d of its body: %s", label, r.Line, r.Text))
	}
	for i, it := range body.items {
		if it.Parent++; it.Parent > 0 {
			it.Parent += parent
		} else {
			it.Parent = parent
			if it.Heading >= 0 {
				it.Details = below(it.Details, "Under: "+body.headings[it.Heading].Raw)
			}
		}
		it.Line, it.Start, it.Heading = s.line, len(l.items)+1, -1
		l.items = append(l.items, it)
		l.labels = append(l.labels, body.labels[i])
		l.waits = append(l.waits, body.waits[i])
	}
	return nil
}

// around returns what a list has besides its items.
func (l *list) around() string {
	var parts []string
	add := func(at int) {
		if l.prose[at] != "" {
			parts = append(parts, l.prose[at])
		}
	}
	next := 0
	heads := func(before int) {
		for ; next < len(l.headings) && (before < 0 || l.headings[next].Start < before); next++ {
			h := l.headings[next]
			add(h.Start)
			if l.keep[next] {
				parts = append(parts, strings.Repeat("#", h.Level)+" "+h.Raw)
			}
		}
	}
	for _, it := range l.items {
		heads(it.Start)
		add(it.Start)
	}
	heads(-1)
	add(-1)
	return paragraphs(parts...)
}
