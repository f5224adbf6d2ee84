package convert

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// story is what a plan says of a user story.
type story struct {
	line              int
	id, text, details string
	rank              float64
	done              bool
	after             []string
}

var errNoStories = errors.New("no user story")

func readStories(head entry, entries []entry) (*list, error) {
	l := &list{kind: kindPRD, prose: map[int]string{}}
	var stories []story
	ids := map[string]int{}
	for _, e := range entries {
		s, err := readStory(e)
		if err != nil {
			return nil, err
		}
		if first, twice := ids[s.id]; twice && s.id != "" {
			return nil, fmt.Errorf("line %d: the ID %s stands on line %d as well: give each story its own", s.line, clip(s.id), first)
		}
		ids[s.id] = s.line
		stories = append(stories, s)
	}
	slices.SortStableFunc(stories, func(a, b story) int {
		switch {
		case a.rank < b.rank:
			return -1
		case a.rank > b.rank:
			return 1
		}
		return 0
	})
	for i, s := range stories {
		l.task(s.line, s.done, s.id, s.text, l.unboxed(s.line, s.id, s.details))
		for _, id := range s.after {
			l.waits[i] = append(l.waits[i], ref{s.line, strings.ToUpper(id)})
		}
	}
	if text := paragraphs(strings.Join(head.others(), "\n\n")); text != "" {
		l.prose[1] = text
	}
	if len(stories) == 0 {
		return l, fmt.Errorf("%w: %w", ErrNoTasks, errNoStories)
	}
	return l, nil
}

// readStory reads a story. What has no place of its own in a task goes into the details.
func readStory(e entry) (s story, err error) {
	s.line = e.line
	if s.id, err = e.id(); err != nil {
		return s, err
	}
	description, notes, err := e.name(&s)
	if err != nil {
		return s, err
	}
	if m, ok := e.take("passes"); !ok {
		s.done = e.saysDone()
	} else if err := m.into(&s.done, "true or false"); err != nil {
		return s, err
	}
	rank, priority, err := e.priority()
	if err != nil {
		return s, err
	}
	s.rank = rank
	criteria, err := e.texts("acceptanceCriteria", "acceptance_criteria")
	if err != nil {
		return s, err
	}
	steps, err := e.texts("steps")
	if err != nil {
		return s, err
	}
	if s.after, err = e.texts("dependencies", "dependsOn", "depends_on", "blockedBy"); err != nil {
		return s, err
	}
	s.details = paragraphs(description, bulleted("Acceptance criteria:", criteria), bulleted("Steps:", steps), said("Notes", notes),
		said("Depends on", strings.Join(s.after, ", ")),
		strings.Trim(said("Priority", priority)+"\n"+strings.Join(e.others(), "\n"), "\n"))
	return s, nil
}

// said is a line of details, "" without a text.
func said(what, text string) string {
	if text == "" {
		return ""
	}
	return what + ": " + text
}

// id returns the ID of a story, "" without one.
func (e *entry) id() (id string, err error) {
	m, ok := e.take("id")
	if !ok {
		return "", nil
	}
	var n float64
	if m.into(&id, "") != nil {
		if err := m.into(&n, "a text or a number"); err != nil {
			return "", err
		}
		id = m.text
	}
	return oneLine(strings.ReplaceAll(id, "\x00", "")), nil
}

// name makes the text of a story: its title, or else its name or description.
func (e *entry) name(s *story) (description, notes string, err error) {
	fields := map[string]string{}
	for _, name := range []string{"title", "name", "description", "notes"} {
		if fields[name], err = e.text(name); err != nil {
			return "", "", err
		}
	}
	title, description := fields["title"], fields["description"]
	if title == "" {
		title = fields["name"]
	} else {
		description = paragraphs(said("name", fields["name"]), description)
	}
	if title == "" {
		title, description = description, ""
	}
	if title == "" {
		return "", "", fmt.Errorf("line %d: a story without a title", s.line)
	}
	if s.text = oneLine(title); s.id != "" && !strings.HasPrefix(s.text, s.id) {
		s.text = s.id + ": " + s.text
	}
	return description, fields["notes"], nil
}

// saysDone says whether the status of a story without passes is that it is done.
func (e *entry) saysDone() (done bool) {
	var status string
	for _, m := range e.members {
		if m.name == "status" && m.into(&status, "") == nil {
			done = slices.Contains([]string{"done", "complete", "completed", "passed"}, strings.ToLower(status))
		}
	}
	return done
}

// noRank is behind every priority.
const noRank = 1e300

// priority returns where a story stands, the lowest first, and what it says.
func (e *entry) priority() (rank float64, text string, err error) {
	m, ok := e.take("priority")
	if !ok {
		return noRank, "", nil
	}
	if m.into(&rank, "") == nil {
		return rank, m.text, nil
	}
	if err := m.into(&text, "a number or a text"); err != nil {
		return 0, "", err
	}
	text = oneLine(text)
	word := strings.ToLower(text)
	if n, err := strconv.Atoi(strings.TrimPrefix(word, "p")); err == nil {
		return float64(n), text, nil
	}
	if i := slices.Index([]string{"critical", "high", "medium", "low"}, word); i >= 0 {
		return float64(i), text, nil
	}
	return noRank, text, nil
}
