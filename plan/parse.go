package plan

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// maxSlug bounds the slug of one heading or item, in bytes. An ID has one for
// each level.
const maxSlug = 64

// maxLinks bounds the links of a task, its own and those of what is around it.
const maxLinks = 64

// Parse reads a plan. Any bytes are a plan; one without a checkbox has no tasks.
func Parse(src []byte) *Plan { return parse(bytes.Clone(src)) }

// parse is Parse of bytes that nobody will change.
func parse(src []byte) *Plan {
	doc := markdown.Parse(src)
	b := builder{
		plan:       &Plan{src: src, over: doc.Over()},
		headings:   doc.Headings(),
		components: map[int]int{},
		suffix:     map[string]int{},
	}
	b.title = doc.Title()
	if b.plan.titled = b.title >= 0; b.plan.titled {
		b.plan.title = b.headings[b.title].Text
	}
	var heads strings.Builder
	for _, h := range b.headings {
		heads.WriteString(strconv.Itoa(h.Level) + h.Text + "\n")
	}
	b.plan.heads, b.plan.headings = heads.String(), b.headings
	n := doc.NumItems()
	b.items = make([]int, n)
	b.owners = make([]int, len(b.headings))
	b.links = make([][]string, len(b.headings))
	b.plan.tasks = make([]Task, 0, n+n/8)
	b.plan.spans = make([]span, 0, cap(b.plan.tasks))
	b.parents = make([]int, 0, cap(b.plan.tasks))
	for i := range n {
		it := doc.Item(i)
		b.item(i, &it)
	}
	b.identify()
	return b.plan
}

// bom may stand at the very beginning of a file and belongs to no line.
var bom = []byte("\xef\xbb\xbf")

type builder struct {
	plan       *Plan
	headings   []markdown.Heading
	title      int
	components map[int]int    // heading to position in tasks
	links      [][]string     // of each heading, the result of headingLinks
	owners     []int          // of each heading, the result of component, plus 2; 0 before
	items      []int          // item to position in tasks
	parents    []int          // of each task, its parent's position or -1
	suffix     map[string]int // per ID, the last number given to an equal sibling
}

// item adds an item, and before it the component that it is the first item of.
func (b *builder) item(i int, it *markdown.Item) {
	t := Task{Kind: KindTask, Name: it.Text, Line: it.Line, Box: it.Box}
	t.Details, t.After, t.Mark = notes(it)
	var parent int
	if it.Parent >= 0 {
		t.Kind = KindSubtask
		parent = b.items[it.Parent]
		t.Links = inherit(it.Links, b.plan.tasks[parent].Links)
	} else {
		parent = b.component(it.Heading)
		t.Links = inherit(it.Links, b.headingLinks(it.Heading))
	}
	start := it.Start
	if start == 0 && bytes.HasPrefix(b.plan.src, bom) {
		start = len(bom)
	}
	b.items[i] = b.add(t, parent, span{start, it.End})
}

// component returns the position of the component that owns the items under a
// heading, -1 for none.
func (b *builder) component(heading int) int {
	if heading < 0 {
		return -1
	}
	if b.owners[heading] == 0 {
		b.owners[heading] = b.findComponent(heading) + 2
	}
	return b.owners[heading] - 2
}

func (b *builder) findComponent(h int) int {
	for h >= 0 && (h == b.title || isStructural(b.headings[h].Text)) {
		h = b.headings[h].Parent
	}
	if h < 0 {
		return -1
	}
	at, known := b.components[h]
	if !known {
		at = b.add(Task{Kind: KindComponent, Name: b.headings[h].Text, Line: b.headings[h].Line, Box: -1,
			Links: b.headingLinks(h)}, -1, span{})
		b.components[h] = at
	}
	return at
}

// headingLinks returns the links of a heading and of those around it.
func (b *builder) headingLinks(h int) []string {
	if h < 0 {
		return nil
	}
	if b.links[h] == nil {
		b.links[h] = inherit(b.headings[h].Links, b.headingLinks(b.headings[h].Parent))
	}
	return b.links[h]
}

// inherit returns own links and those of what is around them, at most maxLinks: shared
// with what is around where there are no own ones, as there are many tasks to a heading.
func inherit(own, around []string) []string {
	if len(own) == 0 {
		return around
	}
	all := append(slices.Clip(own), around...)
	return slices.Clip(all[:min(len(all), maxLinks)])
}

func (b *builder) add(t Task, parent int, lines span) int {
	b.plan.spans = append(b.plan.spans, lines)
	b.plan.tasks = append(b.plan.tasks, t)
	b.parents = append(b.parents, parent)
	return len(b.plan.tasks) - 1
}

// identify gives every task its ID and ties parents and children. Parents come
// before their children in file order, so their IDs are known. A generated number
// must not take a name that an item further down has by itself, so all names
// are known before the first is numbered.
func (b *builder) identify() {
	tasks := b.plan.tasks
	plain := make([]string, len(tasks)) // slugs
	for i := range tasks {
		plain[i] = slug(tasks[i].Name)
	}
	var own map[sibling]bool // names that siblings have by themselves; made when it is needed
	b.plan.index = make(map[string]int, len(tasks))
	for i := range tasks {
		t, parent := &tasks[i], b.parents[i]
		prefix := ""
		if parent >= 0 {
			t.Parent = tasks[parent].ID
			prefix = t.Parent + "/"
			t.Depth = tasks[parent].Depth + 1
			t.Component = tasks[parent].Component
		}
		name := plain[i]
		for _, taken := b.plan.index[prefix+name]; taken; _, taken = b.plan.index[prefix+name] {
			if own == nil {
				own = make(map[sibling]bool, len(tasks))
				for j := range tasks {
					own[sibling{b.parents[j], plain[j]}] = true
				}
			}
			name = b.next(prefix, plain[i], func(s string) bool { return own[sibling{parent, s}] })
		}
		t.ID = prefix + name
		b.plan.index[t.ID] = i
		if t.Kind == KindComponent {
			t.Component = t.ID
		}
		if parent >= 0 {
			tasks[parent].Children = append(tasks[parent].Children, t.ID)
		} else {
			b.plan.roots = append(b.plan.roots, t.ID)
		}
	}
}

type sibling struct {
	parent int
	slug   string
}

// next returns the name with the next number that no sibling has by itself.
func (b *builder) next(prefix, name string, own func(string) bool) string {
	n := max(b.suffix[prefix+name], 1) + 1
	for own(name + "-" + strconv.Itoa(n)) {
		n++
	}
	b.suffix[prefix+name] = n
	return name + "-" + strconv.Itoa(n)
}

// slug is markdown.Slug within maxSlug bytes, cut between two words unless that
// loses more than half.
func slug(text string) string {
	s := markdown.Slug(text)
	if len(s) <= maxSlug {
		return s
	}
	cut := maxSlug
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	if s[cut] != '-' {
		if word := strings.LastIndexByte(s[:cut], '-'); word > maxSlug/2 {
			cut = word
		}
	}
	return s[:cut]
}
