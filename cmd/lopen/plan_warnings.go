package main

import (
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/nearest"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

const (
	// maxHints is how many lines of a plan are named for one reason.
	maxHints = 10
)

// warnMissing names the tasks of a plan that wait for what it does not have.
func (a *app) warnMissing(path string, p *plan.Plan) {
	missing := p.Missing()
	for _, m := range missing[:min(len(missing), maxHints)] {
		hint := ""
		if near := nearest.Task(p, m.For, m.Task); len(near) > 0 {
			hint = "; nearest: " + strings.Join(near, ", ")
		}
		fmt.Fprintf(a.stderr, "warning: %s:%d: %s waits for %s, which the plan does not have, and stays blocked%s\n", path, m.Line, m.Task, plain.Line(m.For), hint)
	}
	a.andMore(path, len(missing), "tasks wait for what is not there")
}

// warnLookalikes names the lines of a file that look like tasks and are none.
func (a *app) warnLookalikes(path string, lines []int) {
	for _, line := range lines[:min(len(lines), maxHints)] {
		fmt.Fprintf(a.stderr, "warning: %s:%d: this looks like a task and is none: write \"- [ ] \" before its text\n", path, line)
	}
	a.andMore(path, len(lines), "lines look like tasks and are none")
}

func (a *app) andMore(path string, n int, what string) {
	if n > maxHints {
		fmt.Fprintf(a.stderr, "warning: %s: %d more %s\n", path, n-maxHints, what)
	}
}

// warnPlan says what a module's plan says that comes to nothing.
func (a *app) warnPlan(path string, p *plan.Plan) {
	a.warnLookalikes(path, p.Lookalikes())
	a.warnMissing(path, p)
}
