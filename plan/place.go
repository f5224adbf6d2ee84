package plan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// ErrPlace says that a task cannot go where it is to go.
var ErrPlace = errors.New("it cannot go there")

// A Place is where a task goes: one of the IDs is set, or none for the plan's end.
type Place struct {
	Under         string // last of what is beneath a task or a component
	Before, After string // next to a task, at the same level
}

// A spot is a place in the bytes of a plan.
type spot struct {
	at        int    // offset of the beginning of a line, or the end of the file
	form      prefix // of an item there
	nth       int    // position among the items
	depth     int    // below other items
	component string // name
}

// spot looks a place up.
func (p *Plan) spot(op string, base *Plan, pl Place) (spot, error) {
	ids := slices.DeleteFunc([]string{pl.Under, pl.Before, pl.After}, func(id string) bool { return id == "" })
	switch {
	case len(ids) > 1:
		return spot{}, fmt.Errorf("%s: %w: more than one place is named", op, ErrPlace)
	case len(ids) == 0 && len(p.roots) == 0:
		return p.firstSpot(), nil
	case len(ids) == 0:
		last := p.index[p.roots[len(p.roots)-1]]
		if p.tasks[last].Box < 0 {
			return p.beneath(op, last)
		}
		return p.nextTo(op, last, true)
	}
	i, err := p.known(op, base, ids[0])
	if err != nil {
		return spot{}, err
	}
	if pl.Under != "" {
		return p.beneath(op, i)
	}
	if p.tasks[i].Box < 0 {
		return spot{}, fmt.Errorf("%s: %w: %s is a heading", op, ErrPlace, ids[0])
	}
	return p.nextTo(op, i, pl.After != "")
}

// firstSpot is the place of the first task of all. Which component it will have is
// decided by the headings above it.
func (p *Plan) firstSpot() spot {
	s := spot{at: len(p.src), form: prefix{"", "-", " "}}
	if all := Parse(slices.Concat(p.src, []byte("\n\n- [ ] x\n"))).items(); len(all) == 1 {
		s.component = all[0].component
	}
	return s
}

// beneath is the place behind the last child of the task at i.
func (p *Plan) beneath(op string, i int) (spot, error) {
	t := &p.tasks[i]
	if n := len(t.Children); n > 0 {
		return p.nextTo(op, p.index[t.Children[n-1]], true)
	}
	s, err := p.nextTo(op, i, true)
	if err != nil {
		return spot{}, err
	}
	form, err := p.prefix(op, i)
	s.form = form.under()
	s.depth++
	return s, err
}

// nextTo is the place before or behind the item at i.
func (p *Plan) nextTo(op string, i int, behind bool) (spot, error) {
	form, err := p.prefix(op, i)
	if err != nil {
		return spot{}, err
	}
	t := &p.tasks[i]
	s := spot{at: p.spans[i].start, form: form, nth: p.nth(i), depth: t.Depth}
	if c, ok := p.index[t.Component]; ok && t.Component != "" {
		s.depth--
		s.component = p.tasks[c].Name
	}
	if behind {
		s.at, s.form, s.nth = p.spans[i].end, form.next(), s.nth+p.size(i)
	}
	return s, nil
}

// Add puts a new task into a plan: one line of Markdown, open.
func Add(text string, at Place) Change { return AddDetailed(text, "", at) }

// AddDetailed is Add for a task with details, lines of Markdown as in Task.Details.
func AddDetailed(text, details string, at Place) Change {
	const op = "add task"
	return func(base, now *Plan) (*Plan, error) {
		s, err := now.spot(op, base, at)
		if err != nil {
			return nil, err
		}
		added, lines, err := now.newItem(op, text, details, s)
		if err != nil {
			return nil, err
		}
		return now.cut(op, slices.Insert(now.items(), s.nth, added), now.inserted(s, lines)...)
	}
}

// AddComponent puts a new heading at the end of a plan, of the level that its components
// have, and an open task with details beneath it.
func AddComponent(heading, text, details string) Change {
	const op = "add component"
	return func(_, now *Plan) (*Plan, error) {
		level := 2
		for i := range now.tasks {
			if h := slices.IndexFunc(now.headings, func(h markdown.Heading) bool { return h.Line == now.tasks[i].Line }); now.tasks[i].Box < 0 && h >= 0 {
				level = now.headings[h].Level
				break
			}
		}
		head := markdown.Parse([]byte("## " + heading + "\n")).Headings()
		if len(head) != 1 || isStructural(head[0].Text) {
			return nil, fmt.Errorf("%s: %w: %q", op, ErrText, heading)
		}
		s := spot{at: len(now.src), form: prefix{"", "-", " "}, nth: len(now.items()), component: head[0].Text}
		added, lines, err := now.newItem(op, text, details, s)
		if err != nil {
			return nil, err
		}
		eol := now.eol(s.at)
		lines = eol + strings.Repeat("#", level) + " " + heading + eol + eol + lines
		if n := len(now.src); n > 0 && now.src[n-1] != '\n' && now.src[n-1] != '\r' {
			lines = eol + strings.TrimSuffix(lines, eol)
		}
		return now.cutWithHeads(op, now.heads+strconv.Itoa(level)+head[0].Text+"\n", append(now.items(), added), []cut{{s.at, s.at, lines}})
	}
}

// newItem returns a new open task as it will be read at a spot, and its lines.
func (p *Plan) newItem(op, text, details string, s spot) (item, string, error) {
	name, err := nameOf(op, text)
	if err != nil {
		return item{}, "", err
	}
	text = strings.TrimSpace(text)
	write := func(lead, form string) string {
		var b bytes.Buffer
		b.WriteString(form + "[ ] " + text + "\n")
		if details != "" {
			WriteDetails(&b, lead+strings.Repeat(" ", len(form)-len(lead)), details)
		}
		return b.String()
	}
	// What the text's own comments and the details say is read off the same lines alone.
	alone := Parse([]byte(write("", "- "))).items()
	if len(alone) != 1 {
		return item{}, "", fmt.Errorf("%s: %w", op, ErrTangled)
	}
	added := alone[0]
	added.name, added.component, added.depth = name, s.component, s.depth
	return added, strings.ReplaceAll(write(s.form.lead, s.form.String()), "\n", p.eol(s.at)), nil
}

// continues matches lines that may stand directly under an item's text without
// making something else of it, as an underline or a table's would.
var continues = pattern(`^(?:[-*+] +)?[\pL\d_"'(]`)

// WriteDetails writes the details of a task below its line: each line behind an indent, and an
// empty one before them if they would be read as something else.
func WriteDetails(b *bytes.Buffer, indent, details string) {
	if !continues().MatchString(details) {
		b.WriteByte('\n')
	}
	for line := range strings.Lines(details + "\n") {
		if line = strings.TrimRight(line, "\n"); line != "" {
			b.WriteString(indent + line)
		}
		b.WriteByte('\n')
	}
}

// inserted puts lines at a spot: directly, or behind a blank line where what
// stands before would swallow them. In a file whose last line is not ended, the
// line end moves before them.
func (p *Plan) inserted(s spot, lines string) [][]cut {
	eol := p.eol(s.at)
	if s.at > 0 && s.at == len(p.src) && p.src[s.at-1] != '\n' && p.src[s.at-1] != '\r' {
		lines = eol + strings.TrimSuffix(lines, eol)
	}
	blank := strings.TrimRight(s.form.lead, " \t") + eol // in a quote, a quote's blank line
	if lines[0] == '\n' || lines[0] == '\r' {
		return [][]cut{{{s.at, s.at, lines}}, {{s.at, s.at, eol + blank + strings.TrimPrefix(lines, eol)}}}
	}
	return [][]cut{{{s.at, s.at, lines}}, {{s.at, s.at, blank + lines}}}
}
