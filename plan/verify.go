package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrTangled says that an edit would change more than what it is about: the
// Markdown around the task reads differently with it. A person has to make it.
var ErrTangled = errors.New("what stands around it would read differently: edit the plan by hand")

// A cut replaces bytes of a source.
type cut struct {
	start, end int
	text       string
}

// cut returns the plan after the first list of cuts whose result says what is
// wanted; each list is in the file's order. What a line means depends on the
// lines around it in more ways than an editor should know of (a paragraph continues, an
// underline finds another text, a fence swallows what follows), so the parser
// is asked.
func (p *Plan) cut(op string, want []item, lists ...[]cut) (*Plan, error) {
	return p.cutWithHeads(op, p.heads, want, lists...)
}

// cutWithHeads is cut for a result with other headings.
func (p *Plan) cutWithHeads(op, heads string, want []item, lists ...[]cut) (*Plan, error) {
	for _, cuts := range lists {
		next := Parse(splice(p.src, cuts))
		if next.heads == heads && slices.EqualFunc(next.items(), want, item.equal) {
			return next.followed(want), nil
		}
	}
	return nil, fmt.Errorf("%s: %w", op, ErrTangled)
}

// followed returns a plan in which tasks wait for what they waited for before an edit that gave some of it other IDs.
// want are the items before it, in the order of those after it. A reference that cannot be rewritten by itself stays.
func (p *Plan) followed(want []item) *Plan {
	now := p.items()
	ids := otherNames(want, now)
	if len(ids) == 0 {
		return p
	}
	var cuts []cut
	end := 0 // of what was looked at, with what is nested in it
	for i, s := range p.spans {
		s.start = max(s.start, end)
		if s.start >= s.end || !slices.ContainsFunc(p.tasks[i].After, func(id string) bool { return ids[id] != "" }) {
			continue
		}
		for _, m := range afterNote().FindAllSubmatchIndex(p.src[s.start:s.end], -1) {
			from, to := s.start+m[2], s.start+m[3]
			cuts = append(cuts, cut{from, to, otherIDs(string(p.src[from:to]), ids)})
		}
		end = s.end
	}
	for i := range now {
		t := *now[i].Task
		t.After = slices.Clone(t.After)
		for j, id := range t.After {
			t.After[j] = cmp.Or(ids[id], id)
		}
		now[i].Task = &t
	}
	if next := Parse(splice(p.src, cuts)); next.heads == p.heads && slices.EqualFunc(next.items(), now, item.equal) {
		return next
	}
	return p
}

// otherNames returns the new IDs of tasks by their former ones, without those for which something above them waits.
func otherNames(was, now []item) map[string]string {
	ids := map[string]string{}
	for i, it := range was {
		if it.ID != "" && it.ID != now[i].ID {
			ids[it.ID] = now[i].ID
		}
	}
	for _, it := range now {
		for _, id := range it.After {
			if strings.HasPrefix(ids[id], it.ID+"/") {
				delete(ids, id) // it would wait for itself
			}
		}
	}
	return ids
}

// otherIDs gives the IDs of a list their new names.
func otherIDs(list string, ids map[string]string) string {
	parts := strings.Split(list, ",")
	for i, part := range parts {
		if id := strings.TrimSpace(part); ids[id] != "" {
			parts[i] = strings.Replace(part, id, ids[id], 1)
		}
	}
	return strings.Join(parts, ",")
}

func splice(src []byte, cuts []cut) []byte {
	var b bytes.Buffer
	b.Grow(len(src) + 256)
	at := 0
	for _, c := range cuts {
		b.Write(src[at:c.start])
		b.WriteString(c.text)
		at = c.end
	}
	b.Write(src[at:])
	return b.Bytes()
}

// An item is what an edit of another task must not change: everything that a
// plan says of a task, places in the file apart.
type item struct {
	*Task
	name      string
	component string // its name
	depth     int    // below other items
	ticked    bool
	mark      Mark
}

// items returns the plan's items, which is all tasks but the components.
func (p *Plan) items() []item {
	all := make([]item, 0, len(p.tasks))
	component := ""
	for i := range p.tasks {
		t := &p.tasks[i]
		if t.Box < 0 {
			component = t.Name
			continue
		}
		it := item{Task: t, name: t.Name, depth: t.Depth, ticked: p.checked(i), mark: t.Mark}
		if t.Component != "" {
			it.depth--
			it.component = component
		}
		all = append(all, it)
	}
	return all
}

// nth returns the position among items of the task at i.
func (p *Plan) nth(i int) int {
	n := 0
	for j := range i {
		if p.tasks[j].Box >= 0 {
			n++
		}
	}
	return n
}

// size returns how many items the task at i is with those beneath it.
func (p *Plan) size(i int) int {
	n := 1
	for i+n < len(p.tasks) && p.tasks[i+n].Box >= 0 && p.tasks[i+n].Depth > p.tasks[i].Depth {
		n++
	}
	return n
}

func (a item) equal(b item) bool {
	return a.name == b.name && a.component == b.component && a.depth == b.depth && a.ticked == b.ticked && a.mark == b.mark &&
		slices.Equal(a.After, b.After) && sameText(a.Details, b.Details)
}

// sameText compares details, whose blank lines and indentation follow the place
// where they stand.
func sameText(a, b string) bool {
	return a == b || slices.Equal(strings.Fields(a), strings.Fields(b))
}
