package plan

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// maxName bounds the text of a task, in bytes: a command gets the text of its task in its
// environment, where Linux allows 128 KiB for one variable.
const maxName = 32 << 10

// ErrUnusable says that a file cannot be worked through as a plan. The error that wraps it
// names the line.
var ErrUnusable = errors.New("no command can be given it")

// usable says why a plan cannot be worked through: it has a NUL byte, which no
// environment takes, a text of more than maxName bytes, or a block that is not read to
// its end.
func (p *Plan) usable() error {
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
