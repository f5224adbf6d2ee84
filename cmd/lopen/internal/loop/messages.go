package loop

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// warnOnce warns once a run for each key.
func (r *runner) warnOnce(key, text string) {
	if !r.warned[key] {
		r.warned[key] = true
		r.cfg.UI.Warn("%s", text)
	}
}

// progressLine returns the line that is printed at the start of a task.
func (r *runner) progressLine(t session.Task, n int) string {
	p := r.sess.State().Progress()
	line := fmt.Sprintf("[%d/%d] %s", min(p.Done+1, p.Total), p.Total, cmp.Or(t.Name, t.ID))
	if n > 1 {
		line += fmt.Sprintf(" (attempt %s)", r.ofThreshold(n))
	}
	return line
}

func (r *runner) ofThreshold(n int) string {
	if r.cfg.FailureThreshold > 0 {
		return fmt.Sprintf("%d of %d", n, r.cfg.FailureThreshold)
	}
	return fmt.Sprint(n)
}

func (r *runner) status(name string, n int) {
	st := r.sess.State()
	m := st.Totals()
	r.cfg.UI.Status(Status{Task: name, Attempt: n, Since: time.Now(), Progress: st.Progress(), Tokens: m.InputTokens + m.OutputTokens, CostUSD: m.CostUSD})
}

func (r *runner) name(id string) string {
	if t, ok := r.sess.State().Task(id); ok {
		return t.Name
	}
	return id
}

// shownID is a task's ID as it leaves in commits and events. A part that is made of a name with a credential is made
// again of the redacted name.
func (r *runner) shownID(id string) string {
	parts, above := strings.Split(id, "/"), ""
	for i, part := range parts {
		above += part
		t, ok := r.sess.State().Task(above)
		above += "/"
		if hidden := r.sess.Redact(t.Name); ok && hidden != t.Name {
			parts[i] = markdown.Slug(hidden)
		}
	}
	return r.sess.Redact(strings.Join(parts, "/"))
}

// round rounds a duration for messages.
func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
