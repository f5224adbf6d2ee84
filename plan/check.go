package plan

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/writer/documents"
)

// maxName bounds the text of a task, in bytes: a command gets the text of its task in its
// environment, where Linux allows 128 KiB for one variable.
const maxName = 32 << 10

// ErrUnusable says that a file cannot be worked through as a plan. The error that wraps it
// names the line.
var ErrUnusable = errors.New("no command can be given it")

// ErrUTF16 is an [ErrUnusable] of a plan of which nothing is lost.
var ErrUTF16 = fmt.Errorf("the file is UTF-16: %w", ErrUnusable)

// Usable says why a plan cannot be worked through: it is UTF-16, or has a NUL byte, which no
// environment takes, a text of more than maxName bytes, or a block that is not read to
// its end.
func (p *Plan) Usable() error {
	if err := withoutNUL(p.src); err != nil {
		return err
	}
	if err := whole(p.over); err != nil {
		return err
	}
	for i := range p.tasks {
		if err := fits(p.tasks[i].Line, p.tasks[i].Name); err != nil {
			return err
		}
	}
	return nil
}

func withoutNUL(src []byte) error {
	if documents.IsUTF16(src) {
		return fmt.Errorf("line 1: %w: save it as UTF-8", ErrUTF16)
	}
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return fmt.Errorf("line %d: a NUL byte: %w: take it out", bytes.Count(src[:i], []byte{'\n'})+1, ErrUnusable)
	}
	return nil
}

func fits(line int, name string) error {
	if len(name) > maxName {
		return fmt.Errorf("line %d: a text of %d bytes: %w: a task has at most %d, put the rest on the lines below it", line, len(name), ErrUnusable, maxName)
	}
	return nil
}

func whole(over int) error {
	if over > 0 {
		return fmt.Errorf("line %d: a list item or block of more than %d lines, or more than %d headings: %w: divide it",
			over, markdown.MaxUnits, markdown.MaxHeadings, ErrUnusable)
	}
	return nil
}

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
var almost = pattern(`(?m)^([ \t>]*(?:[-*+]|\d{1,9}[.)]))(?:` +
	`(?:\[[ \t]*[xX-]?[ \t]*\]|[ \t]+\[(?:-?|[ \t]{2,}|[ \t]+[xX-][ \t]*|[xX-][ \t]+)\])(?:$|[^(\[:\r\n])` +
	`|[ \t]+\[[ \txX]\][^(\[:\s])`)

// Lookalikes returns the numbers of the lines, from 1, that look like a task and are
// none. Each would be one if it were written as one: the parser is asked, so that
// code and comments are not taken for tasks.
func (p *Plan) Lookalikes() (lines []int) {
	slips := map[int]bool{}
	line, at := 1, 0
	var mended bytes.Buffer
	for _, m := range almost().FindAllSubmatchIndex(p.src, -1) {
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
