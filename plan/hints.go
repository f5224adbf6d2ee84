package plan

import (
	"bytes"
	"regexp"
)

// A Missing is an ID that a task waits for and that the plan does not have: the task
// is blocked for ever.
type Missing struct {
	Task, For string // IDs
	Line      int    // of the task
}

// Missing lists what tasks wait for in vain, in file order.
func (p *Plan) Missing() (all []Missing) {
	for i := range p.tasks {
		for _, id := range p.tasks[i].After {
			if _, ok := p.index[id]; !ok {
				all = append(all, Missing{Task: p.tasks[i].ID, For: id, Line: p.tasks[i].Line})
			}
		}
	}
	return all
}

// almost matches lines that a small slip may keep from being a task, and no proper one:
// no space before the box, something else in it than one space or x, or no space behind
// it. A link is none.
var almost = regexp.MustCompile(`(?m)^([ \t>]*(?:[-*+]|\d{1,9}[.)]))(?:` +
	`(?:\[[ \t]*[xX-]?[ \t]*\]|[ \t]+\[(?:-?|[ \t]{2,}|[ \t]+[xX-][ \t]*|[xX-][ \t]+)\])(?:$|[^(\[:\r\n])` +
	`|[ \t]+\[[ \txX]\][^(\[:\s])`)

// Lookalikes returns the numbers of the lines, from 1, that look like a task and are
// none. Each would be one if it were written as one: the parser is asked, so that
// code and comments are not taken for tasks.
func (p *Plan) Lookalikes() (lines []int) {
	slips := map[int]bool{}
	line, at := 1, 0
	var mended bytes.Buffer
	for _, m := range almost.FindAllSubmatchIndex(p.src, -1) {
		line += bytes.Count(p.src[at:m[0]], []byte{'\n'})
		slips[line] = true
		mended.Write(p.src[at:m[3]])
		mended.WriteString(" [ ] ")
		at = m[3] + bytes.IndexByte(p.src[m[3]:], ']') + 1
	}
	if len(slips) == 0 {
		return nil
	}
	mended.Write(p.src[at:])
	for _, t := range Parse(mended.Bytes()).tasks {
		if slips[t.Line] && t.Box >= 0 {
			lines = append(lines, t.Line)
		}
	}
	return lines
}
