package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Move puts a task, with all that is beneath it, to another place. Its lines stay
// as they are where the new place is as deep as the old one, and get another
// indentation and bullet elsewhere.
func Move(id string, to Place) Change {
	const op = "move task"
	return func(base, now *Plan) (*Plan, error) {
		i, err := now.item(op, base, id)
		if err != nil {
			return nil, err
		}
		s, err := now.spot(op, base, to)
		if err != nil {
			return nil, err
		}
		lines := now.spans[i]
		was := now.items()[now.nth(i)]
		if now.beneathItself(id, to) {
			return nil, fmt.Errorf("%s: %w: that is beneath itself", op, ErrPlace)
		}
		if (s.at == lines.start || s.at == lines.end) && s.depth == was.depth && s.component == was.component {
			return now, nil // where it is
		}
		old, err := now.prefix(op, i)
		if err != nil {
			return nil, err
		}
		block, err := reindent(op, string(now.src[lines.start:lines.end]), old, s.form)
		if err != nil {
			return nil, err
		}
		eol := now.eol(lines.start)
		if last := block[len(block)-1]; last != '\n' && last != '\r' {
			block += eol
		}
		var lists [][]cut
		for _, left := range []string{"", eol} { // a blank line keeps apart what the block did
			for _, in := range now.inserted(s, block) {
				out := cut{lines.start, lines.end, left}
				if in[0].start <= out.start {
					lists = append(lists, []cut{in[0], out})
				} else {
					lists = append(lists, []cut{out, in[0]})
				}
			}
		}
		return now.cut(op, now.moved(i, s), lists...)
	}
}

// beneathItself says whether a place is next to or in what lies beneath a task.
func (p *Plan) beneathItself(id string, to Place) bool {
	if to.Under == id {
		return true
	}
	t, _ := p.Task(to.Under + to.Before + to.After)
	for t.Parent != "" && t.Parent != id {
		t, _ = p.Task(t.Parent)
	}
	return t.Parent == id && id != ""
}

// moved returns the items after the move of the one at i.
func (p *Plan) moved(i int, s spot) []item {
	from, n := p.nth(i), p.size(i)
	all := p.items()
	block := slices.Clone(all[from : from+n])
	down := s.depth - block[0].depth
	for j := range block {
		block[j].depth += down
		block[j].component = s.component
	}
	to := s.nth
	if to > from {
		to -= n
	}
	return slices.Insert(slices.Delete(all, from, from+n), to, block...)
}

// tab is how far apart CommonMark's tab stops are.
const tab = 4

// reindent gives the lines of an item another prefix. What is nested in it moves
// with the column that its text begins at.
func reindent(op, block string, old, now prefix) (string, error) {
	if old.lead == now.lead && old.kind() == now.kind() {
		return block, nil
	}
	if strings.Contains(old.lead+now.lead, ">") {
		return "", fmt.Errorf("%s: %w: into or out of a quote", op, ErrPlace)
	}
	from, to := width(old.String()), width(now.String())
	var b strings.Builder
	rest := block
	for first := true; rest != ""; first = false {
		line := rest
		if n := strings.IndexAny(rest, "\r\n"); n >= 0 {
			if strings.HasPrefix(rest[n:], "\r\n") {
				n++
			}
			line = rest[:n+1]
		}
		rest = rest[len(line):]
		switch {
		case first:
			b.WriteString(now.String() + line[len(old.String()):])
		case strings.TrimSpace(line) == "":
			b.WriteString(line)
		default:
			b.WriteString(strings.Repeat(" ", to) + outdent(line, from))
		}
	}
	return b.String(), nil
}

// width is the number of columns that a text without wide letters takes at the
// beginning of a line.
func width(s string) (columns int) {
	for _, c := range s {
		if c == '\t' {
			columns += tab - columns%tab
		} else {
			columns++
		}
	}
	return columns
}

// outdent takes up to n columns of white space off a line. What a tab has beyond
// them becomes spaces.
func outdent(line string, n int) string {
	columns := 0
	for i, c := range line {
		if columns >= n || c != ' ' && c != '\t' {
			return strings.Repeat(" ", max(columns-n, 0)) + line[i:]
		}
		columns = width(line[:i+1])
	}
	return ""
}
