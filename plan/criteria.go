package plan

import (
	"sort"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// A Criterion is one of a specification's acceptance criteria: the task that a plan
// made of them has, and where that belongs.
type Criterion struct {
	markdown.Item     // its Parent is the index of the criterion around it
	Component     int // the heading that is its component in a plan, -1 for none
}

// Criteria returns the acceptance criteria of a specification, in file order: in each outermost
// section of that name its checkboxes, or its outermost list items if it has none.
func Criteria(doc *markdown.Document) (all []Criterion) {
	headings, title := doc.Headings(), doc.Title()
	boxes, bullets := doc.Items(), doc.Bullets()
	end := 0
	for _, h := range headings {
		if markdown.Name(h.Text) != markdown.Criteria || h.Start < end {
			continue
		}
		end = h.End
		first, in := within(boxes, h)
		if len(in) == 0 {
			first, in = within(bullets, h)
		}
		moved := len(all) - first
		for _, it := range in {
			if it.Parent >= 0 {
				it.Parent += moved // a parent is in the same section
			}
			c := it.Heading
			for c >= 0 && (c == title || isStructural(headings[c].Text)) {
				c = headings[c].Parent
			}
			all = append(all, Criterion{it, c})
		}
	}
	return all
}

// within returns the items in a heading's section and the index of the first.
func within(items []markdown.Item, h markdown.Heading) (int, []markdown.Item) {
	from := sort.Search(len(items), func(i int) bool { return items[i].Start >= h.Start })
	to := sort.Search(len(items), func(i int) bool { return items[i].Start >= h.End })
	return from, items[from:to]
}
