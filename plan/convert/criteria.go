package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// FromCriteria makes the content of a new plan of a specification's sections
// called Acceptance Criteria (numbered or not): one task for each checkbox in
// them, ticked ones ticked, or for each outermost list item where a section has
// no checkbox. The heading around such a section is their component, if it is not
// the specification's title. Without any criterion the error wraps ErrNoTasks.
func FromCriteria(title string, spec []byte) ([]byte, error) {
	if err := plan.Parse(spec).Usable(); err != nil {
		return nil, fmt.Errorf("make plan: %w", err)
	}
	doc := markdown.Parse(spec)
	headings := doc.Headings()
	keep := make([]bool, len(headings))
	isCriteria := func(h markdown.Heading) bool { return markdown.Name(h.Text) == markdown.Criteria }
	var criteria []markdown.Item
	for _, c := range plan.Criteria(doc) {
		criteria = append(criteria, c.Item)
		for a := c.Heading; a >= 0; a = headings[a].Parent {
			keep[a] = !isCriteria(headings[a])
		}
	}
	if !slices.ContainsFunc(headings, isCriteria) {
		return nil, fmt.Errorf("make plan: %w: none of %s is called Acceptance Criteria", ErrNoTasks, count(len(headings), "heading"))
	}
	if len(criteria) == 0 {
		return nil, fmt.Errorf("make plan: %w: no list item under Acceptance Criteria", ErrNoTasks)
	}
	if t := doc.Title(); t >= 0 {
		keep[t] = false
	}
	content, _ := newPlan(title, headings, keep, criteria)
	return content, nil
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
