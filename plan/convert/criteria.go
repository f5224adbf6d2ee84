package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// FromCriteria makes the content of a new plan of a specification's acceptance criteria, as [plan.Criteria] finds them:
// one task for each, ticked ones ticked. The heading around them is their component, if it is not the specification's
// title. Without any criterion the error wraps ErrNoTasks, and says what stands in their place.
func FromCriteria(title string, spec []byte) ([]byte, error) {
	if err := plan.Parse(spec).Usable(); err != nil {
		return nil, fmt.Errorf("make plan: %w", err)
	}
	doc := markdown.Parse(spec)
	headings := doc.Headings()
	keep := make([]bool, len(headings))
	found, left := plan.Criteria(spec, doc)
	var criteria []markdown.Item
	for _, c := range found {
		criteria = append(criteria, c.Item)
		for a := c.Heading; a >= 0; a = headings[a].Parent {
			keep[a] = !markdown.IsCriteria(headings[a].Text)
		}
	}
	if len(criteria) == 0 {
		return nil, fmt.Errorf("make plan: %w: %s", ErrNoTasks, without(headings, left))
	}
	if t := doc.Title(); t >= 0 {
		keep[t] = false
	}
	content, _ := newPlan(title, headings, keep, criteria)
	return content, nil
}

// without says what a specification has in place of criteria.
func without(headings []markdown.Heading, left []plan.Remark) string {
	text := "no list item under Acceptance Criteria"
	if len(left) > 0 {
		return fmt.Sprintf("%s; line %d: %s", text, left[0].Line, left[0].Text)
	}
	if !slices.ContainsFunc(headings, func(h markdown.Heading) bool { return markdown.IsCriteria(h.Text) }) {
		return fmt.Sprintf("none of %s is called Acceptance Criteria", count(len(headings), "heading"))
	}
	return text
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "x") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
