package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
)

var (
	// numbered is how a text begins that is one criterion.
	numbered = pattern(`^[*_]*(?:AC(?:[-_][A-Z0-9]+)*[-_ ]?\d+(?:[.-]\d+)*[a-z]?(?:\W|$)|[A-Z]{1,6}[-_]?\d+(?:[.-]\d+)*[a-z]?(?:[:.)]|[ \t]+[-–—:])|` +
		`(?i:scenario(?: outline| template)?|(?:acceptance )?criterion|example)(?:[ \t]+[\w.-]{1,8})?[ \t]*(?:[:–—]|-[ \t]|$)|` +
		`[☐☑✅✔■□]|\(?\d{1,3}(?:\.\d{1,3})*[.)][ \t]|\d{1,3}(?:\.\d{1,3})+[ \t]|\([a-z]\)[ \t])|^(?:\*\*|__)[^*_]*\d[^*_]*(?:\*\*|__)`)
	step  = pattern(`(?i)^[*_]*(?:given|when|then|and|but)\b`)
	given = pattern(`(?i)^[*_]*(?:given|when)\b`)
	then  = pattern(`(?i)\bthen\b`)
	// keyword begins a part of a file of Gherkin.
	keyword = pattern(`^(?:(Scenario(?: Outline| Template)?|Example)|Feature|Background|Rule)[ \t]*:`)
	column  = pattern(`(?i)^[*_]*(?:given|when|then)[*_]*$`)
	boxCell = pattern(`^\\?\[([ xX])\\?\]$`)
	short   = pattern("^[*_`]*[^\\s]{1,16}$")
)

// item reads a list item, or those that are the steps of one scenario, and returns how many it read.
func (r *criteriaReader) item(all []markdown.Block, p place) int {
	b := &all[0]
	switch {
	case b.Box < 0 && calls(*b):
		r.aside(b, place{heading: p.heading, parent: p.parent, named: true})
	case b.Box < 0 && b.Raw == "" && len(b.Blocks) > 0:
		r.blocks(b.Blocks, p)
	case b.Text == "":
		r.leave(b.Line, "it has no text")
	case len(b.Raw) > 4 && strings.HasPrefix(b.Raw, "~~") && strings.HasSuffix(b.Raw, "~~"):
		r.leave(b.Line, "it is struck out")
	case b.Box < 0 && len(b.Blocks) > 0 && beginsOther(b):
		r.leave(b.Line, fmt.Sprintf("%q and what is in it are no criteria", b.Text))
	default:
		n := scenario(all)
		if n == 0 {
			r.tree(b, p)
			break
		}
		r.add(b, b.Raw, markdown.Text(r.src, r.at(b.Line+1), all[n-1].End, b.Quotes), all[n-1].End, p, ofSteps)
		return n
	}
	return 1
}

// scenario returns how many items from the first on are the steps of one scenario, 0 if it begins none.
func scenario(all []markdown.Block) int {
	n, begun, ended := 0, 0, false
	for ; n < len(all) && all[n].Kind == markdown.KindItem && all[n].Box < 0 && step().MatchString(all[n].Raw); n++ {
		if given().MatchString(all[n].Raw) {
			if begun++; begun > 2 || ended { // Given and When
				break
			}
		}
		ended = ended || then().MatchString(all[n].Raw)
		if begun == 0 || n == 0 && ended {
			return 0
		}
	}
	if !ended {
		return 0
	}
	return n
}

// tree adds an item and the checkboxes in it. An item without a checkbox is done when all of those are.
func (r *criteriaReader) tree(b *markdown.Block, p place) {
	it := b.Item
	it.Heading, it.Parent = p.heading, p.parent
	p.parent = len(r.all)
	r.all = append(r.all, found{it, ofBlock})
	r.boxesIn(b.Blocks, p)
	in := r.all[p.parent+1:]
	if b.Box < 0 && len(in) > 0 {
		r.all[p.parent].Checked = !slices.ContainsFunc(in, func(f found) bool { return !f.Checked })
	}
	if b.Box >= 0 || len(in) > 0 {
		r.all[p.parent].of = ofBox
	}
}

func (r *criteriaReader) boxesIn(all []markdown.Block, p place) {
	for i := range all {
		if b := &all[i]; b.Box >= 0 {
			r.tree(b, p)
		} else {
			r.boxesIn(b.Blocks, p)
		}
	}
}

// A part is what one criterion has of a paragraph's or code's lines.
type part struct {
	from int
	of   form
}

// parts divides lines into criteria, and in code into what is none as well.
func parts(lines []string, code bool) (all []part) {
	ended := true
	for i, line := range lines {
		if of := begins(line, code); of >= 0 && (of != ofSteps || ended) {
			for ; code && i > 0 && strings.HasPrefix(lines[i-1], "@"); i-- {
			}
			all, ended = append(all, part{i, of}), false
		}
		ended = ended || then().MatchString(line)
	}
	if len(all) == 0 && !code && len(lines) > 1 && strings.HasPrefix(lines[1], ": ") {
		all = append(all, part{0, ofSteps}) // a term and its definition
	}
	return all
}

// begins returns what a line begins, -1 if that is nothing.
func begins(line string, code bool) form {
	k := keyword().FindStringSubmatch(line)
	switch {
	case code && k != nil && k[1] == "":
		return ofNothing
	case code && k != nil:
		return ofScenario
	case given().MatchString(line):
		return ofSteps
	case !code && (numbered().MatchString(line) || isTerm(line)):
		return ofBlock
	}
	return -1
}

// isTerm says whether a line begins with a term in bold that it explains.
func isTerm(line string) bool {
	name, rest := labelled(line)
	return name != "" && rest != "" && !isOther(name)
}

// text reads a paragraph, or code, and where a paragraph ends with a criterion the blocks behind it that belong to
// that. It returns how many blocks it read.
func (r *criteriaReader) text(all []markdown.Block, p place) int {
	b, n := &all[0], 1
	code := b.Kind == markdown.KindCode
	in := parts(b.Lines, code)
	if len(in) == 0 || strings.Join(b.Lines[:in[0].from], "") != "" {
		why := prose
		if code {
			why = "it is code, and no scenario"
		}
		r.leave(b.Line, why)
	}
	for i, c := range in {
		last := len(b.Lines)
		if i+1 < len(in) {
			last = in[i+1].from
		}
		lines, one := b.Lines[c.from:last], *b
		one.Line, one.Start = b.Line+c.from, r.at(b.Line+c.from)
		head := slices.IndexFunc(lines, func(line string) bool { return !code || !strings.HasPrefix(line, "@") })
		raw, next, end := strings.Join(append(lines[head:head+1:head+1], lines[:head]...), " "), r.at(one.Line+head+1), r.at(b.Line+last)
		if whole := strings.Join(lines, " "); c.of == ofSteps && len(whole) <= maxJoined {
			raw, next = whole, end
		}
		if last == len(b.Lines) && !code {
			n = behind(all, c.of == ofSteps, then().MatchString(strings.Join(lines, " ")))
			end = max(end, all[n-1].End)
		}
		if c.of == ofNothing {
			r.leave(one.Line, "it is no scenario: "+raw)
		} else {
			r.add(&one, raw, markdown.Text(r.src, next, end, b.Quotes), end, p, c.of)
		}
	}
	return n
}

// maxJoined is the longest text that is made of the lines of several steps, in bytes.
const maxJoined = 300

// behind returns how many blocks belong to the criterion with which the first of them ends, itself included. ended says that it has
// a Then.
func behind(all []markdown.Block, steps, ended bool) int {
	for n := 1; n < len(all); n++ {
		b := &all[n]
		if own(b) || calls(*b) || hasBox(*b) || steps && (!step().MatchString(b.Raw) || ended && given().MatchString(b.Raw)) {
			return n
		}
		ended = ended || then().MatchString(b.Raw)
	}
	return len(all)
}

// own says whether a block belongs to no criterion before it.
func own(b *markdown.Block) bool {
	switch b.Kind {
	case markdown.KindItem:
		return numbered().MatchString(b.Raw)
	case markdown.KindParagraph:
		name, _ := labelled(b.Raw)
		return name != "" || len(parts(b.Lines, false)) > 0 && !given().MatchString(b.Raw)
	case markdown.KindCode:
		return len(parts(b.Lines, true)) > 1
	}
	return b.Kind == markdown.KindBreak || b.Kind == markdown.KindHead
}

// cells are those of a row of a table.
func cells(row string) (all []string) {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(strings.TrimSpace(row), `\|`, "\x00"), "|"), "|")
	for cell := range strings.SplitSeq(row, "|") {
		all = append(all, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|")))
	}
	return all
}

// table reads the rows of a table whose header is the first block, and returns how many blocks it read.
func (r *criteriaReader) table(all []markdown.Block, p place) int {
	n := 1
	for heads := cells(all[0].Raw); n < len(all) && all[n].Kind == markdown.KindRow; n++ {
		r.row(all[n], heads, p)
	}
	if n == 1 {
		r.leave(all[0].Line, "it is a table without rows")
	}
	return n
}

// tells says whether a cell is what a row says: the one of the column that is named, or else the first one, and the one
// behind it where that is short.
func tells(i, named int, before []string) bool {
	return i == named || named < 0 && (len(before) == 0 || len(before) == 1 && short().MatchString(before[0]))
}

// row adds the criterion of a row. Its text is a short first cell and the one that the table calls criteria, or else the
// next one; or all that are Given, When and Then.
func (r *criteriaReader) row(b markdown.Block, heads []string, p place) {
	var text, steps, more []string
	named, has := slices.IndexFunc(heads, markdown.HasCriteria), false
	for i, cell := range cells(b.Raw) {
		head := ""
		if i < len(heads) {
			head = heads[i]
		}
		is := tells(i, named, text)
		switch box := boxCell().FindStringSubmatch(cell); {
		case cell == "":
		case box != nil:
			b.Checked = box[1] != " "
		case column().MatchString(head):
			steps = append(steps, head+" "+cell)
		case is || i == 0 && short().MatchString(cell):
			text, has = append(text, cell), has || is
		default:
			more = append(more, strings.Trim(head+": "+cell, ": "))
		}
	}
	if len(steps) > 0 {
		text = append(text, strings.Join(steps, " "))
	} else if !has {
		text = nil // what it is of is no criterion
	}
	r.add(&b, strings.Join(text, ": "), strings.Join(more, "\n"), b.End, p, ofScenario)
}
