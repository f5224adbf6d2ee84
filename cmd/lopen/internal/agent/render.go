package agent

import (
	"io"
	"slices"
	"strings"
)

// say writes text as lines of its own.
func (r *Reader) say(text string) {
	r.endLine()
	r.put(strings.TrimRight(text, "\n") + "\n")
}

// endLine ends a line that is open.
func (r *Reader) endLine() {
	if r.open {
		r.put("\n")
		r.open = false
	}
}

func (r *Reader) put(text string) {
	if r.err == nil {
		_, r.err = io.WriteString(r.out, text)
	}
}

// tool writes the line of a tool call.
func (r *Reader) tool(name, detail string) {
	r.report.Spoke = true
	line := oneLine(name, 60)
	if detail = oneLine(detail, maxDetail); detail != "" {
		line += ": " + detail
	}
	r.say(line)
}

// deny notes a permission that was refused.
func (r *Reader) deny(d Denied) {
	if len(r.report.Denied) < maxDenied && !slices.Contains(r.report.Denied, d) {
		r.report.Denied = append(slices.Clip(r.report.Denied), d)
	}
}

// session notes the agent's own name of its session.
func (r *Reader) session(id string) {
	if r.report.Session == "" && sessionID(id) {
		r.report.Session = id
	}
}
