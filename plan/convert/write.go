package convert

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// bom may stand at the very beginning of a file and belongs to no line.
var bom = []byte("\xef\xbb\xbf")

// newPlan writes a plan of the items, under the headings that stay. Details are put before
// nested items, wherever they stood. Those that would make other items of them (a fence left
// open swallows what follows) are fenced in. kept says whether all details are in it.
func newPlan(title string, headings []markdown.Heading, keep []bool, items []markdown.Item) (content []byte, kept bool) {
	same := func(a, b markdown.Item) bool { return a.Checked == b.Checked && a.Parent == b.Parent }
	try := func(items []markdown.Item) bool {
		content = write(title, headings, keep, items, nil)
		return slices.EqualFunc(markdown.Parse(content).Items(), items, same)
	}
	if try(items) {
		return content, true
	}
	fenced := slices.Clone(items)
	for _, all := range []bool{false, true} {
		for i := range fenced {
			if d := items[i].Details; d != "" && (all || !harmless("- [ ] a\n", d, "  - [ ] b\n- [ ] c\n", 3)) {
				fenced[i].Details = fence(d)
			}
		}
		if try(fenced) {
			copy(items, fenced)
			return content, true
		}
	}
	for i := range items {
		items[i].Details = ""
	}
	return write(title, headings, keep, items, nil), false
}

// harmless says whether a text between two others, below the first one, leaves the
// items of these as they are.
func harmless(before, text, after string, n int) bool {
	b := bytes.NewBufferString(before)
	if before != "" {
		plan.WriteDetails(b, "  ", text)
	} else {
		b.WriteString(text + "\n")
	}
	b.WriteString(after)
	items := markdown.Parse(b.Bytes()).Items()
	return len(items) == n && items[n-1].Parent < 0 && !strings.Contains(items[n-1].Details, "\n")
}

// fence returns a text as a code block, in which nothing is an item.
func fence(text string) string {
	longest, run := 2, 0
	for _, c := range text {
		if run++; c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	marks := strings.Repeat("`", longest+1)
	return marks + "text\n" + text + "\n" + marks
}

// withProse is newPlan with the prose between the items, as far as the tasks stay what they
// are without it. Prose that would be read as something else is fenced in.
func withProse(bare []byte, title string, headings []markdown.Heading, keep []bool, items []markdown.Item, prose map[int]string) ([]byte, bool) {
	if whole := write(title, headings, keep, items, prose); sameTasks(bare, whole) {
		return whole, true
	}
	for _, all := range []bool{false, true} {
		fenced := make(map[int]string, len(prose))
		for at, text := range prose {
			if fenced[at] = text; all || !harmless("", text, "\n# h\n\n- [ ] a\n", 1) {
				fenced[at] = fence(text)
			}
		}
		if whole := write(title, headings, keep, items, fenced); sameTasks(bare, whole) {
			return whole, true
		}
	}
	return bare, false
}

// deeper is by how much headings are to be deeper: the plan's title is to stay the only
// one of level 1.
func deeper(headings []markdown.Heading, keep []bool) int {
	for i, h := range headings {
		if keep[i] && h.Level == 1 {
			return 1
		}
	}
	return 0
}

// write writes headings and items in file order, and before each of them the prose that
// stands before it, by offset; what has the offset -1 stands at the end.
func write(title string, headings []markdown.Heading, keep []bool, items []markdown.Item, prose map[int]string) []byte {
	shift := deeper(headings, keep)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Plan: %s\n", strings.Join(strings.Fields(title), " "))
	depth := make([]int, len(items))
	next, heading, apart := 0, -2, false
	text := func(at int) {
		if prose[at] != "" {
			b.WriteString("\n" + prose[at] + "\n")
			apart = true
		}
	}
	head := func(before int) {
		for ; next < len(headings) && headings[next].Start < before; next++ {
			text(headings[next].Start)
			if keep[next] {
				fmt.Fprintf(&b, "\n%s %s\n", strings.Repeat("#", min(headings[next].Level+shift, 6)), headings[next].Raw)
			}
		}
	}
	for i, it := range items {
		head(it.Start)
		if text(it.Start); it.Heading != heading || apart {
			b.WriteByte('\n')
			heading, apart = it.Heading, false
		}
		if it.Parent >= 0 {
			depth[i] = depth[it.Parent] + 1
		}
		indent := strings.Repeat("  ", depth[i])
		state := ' '
		if it.Checked {
			state = 'x'
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s- [%c] %s", indent, state, it.Raw), " ") + "\n")
		if it.Details != "" {
			plan.WriteDetails(&b, indent+"  ", it.Details)
		}
	}
	if prose != nil {
		head(math.MaxInt)
	}
	text(-1)
	return b.Bytes()
}

// prose is what stands between the headings and the outermost items of a document, by
// the offset of what it stands before.
func prose(src []byte, doc *markdown.Document) map[int]string {
	all := map[int]string{}
	_, at := markdown.FrontMatter(src)
	if at == 0 && bytes.HasPrefix(src, bom) {
		at = len(bom)
	}
	inList := false
	headings, items := doc.Headings(), doc.Items()
	items = slices.DeleteFunc(items, func(it markdown.Item) bool { return it.Parent >= 0 })
	gap := func(to, before int) {
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(src[at:max(at, to)]))
		lines := strings.Split(strings.ToValidUTF8(text, "\uFFFD"), "\n")
		for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
			lines = lines[1:]
		}
		if inList && len(lines) > 0 { // it is the text of a list item without a box, or of none
			indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
			for i := range lines {
				lines[i] = strings.TrimPrefix(lines[i], indent)
			}
		}
		if text = strings.TrimRight(strings.Join(lines, "\n"), " \t\n"); text != "" {
			all[before] = text
		}
	}
	for len(headings)+len(items) > 0 {
		if len(items) == 0 || len(headings) > 0 && headings[0].Start < items[0].Start {
			gap(headings[0].Start, headings[0].Start)
			at, inList, headings = headings[0].ContentStart, false, headings[1:]
			continue
		}
		gap(items[0].Start, items[0].Start)
		at, inList, items = max(at, items[0].End), true, items[1:]
	}
	gap(len(src), -1)
	return all
}

// sameTasks says whether two plans have the same tasks with the same details under the
// same headings.
func sameTasks(a, b []byte) bool {
	x, y := plan.Parse(a), plan.Parse(b)
	return slices.EqualFunc(x.Tasks(), y.Tasks(), func(s, t plan.Task) bool {
		return s.ID == t.ID && s.Name == t.Name && s.Checked == t.Checked && s.Details == t.Details && s.Mark == t.Mark && slices.Equal(s.After, t.After)
	})
}
