package report

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// maxKept is how many limits and windows are shown, the newest.
const maxKept = 100

// A Limit is what an agent said of its provider's limit in one start of the command.
type Limit struct {
	Iteration int `json:"iteration"`
	session.RateLimit
}

// A Window is how much of the model's context a start used at its end, in tokens; 0 is not known.
type Window struct {
	Iteration int   `json:"iteration"`
	Size      int64 `json:"size"`
	Used      int64 `json:"used"`
}

// Limits returns the newest limits of a session in the order of its starts.
func Limits(st *session.State) []Limit {
	all := []Limit{}
	for it := range st.Iterations() {
		if it.RateLimit != nil {
			all = append(all[max(len(all)-maxKept+1, 0):], Limit{it.Number, *it.RateLimit})
		}
	}
	return all
}

// Windows returns the context windows of a session's newest starts, in their order.
func Windows(st *session.State) []Window {
	all := []Window{}
	for it := range st.Iterations() {
		if it.ContextWindow > 0 || it.ContextUsed > 0 {
			all = append(all[max(len(all)-maxKept+1, 0):], Window{it.Number, it.ContextWindow, it.ContextUsed})
		}
	}
	return all
}

// Text says what a limit left, and until when it holds.
func (l *Limit) Text(loc *time.Location) string {
	text := fmt.Sprintf("%s, start %d: ", l.SeenAt.In(loc).Format("2 Jan 15:04"), l.Iteration)
	if l.Limit > 0 {
		text += fmt.Sprintf("%s of %s left", plain.Count(l.Remaining), plain.Count(l.Limit))
	} else {
		text += "a limit"
	}
	if !l.ResetsAt.IsZero() {
		text += ", until " + l.ResetsAt.In(loc).Format("2 Jan 15:04")
	}
	return text
}

// ContextText says what the newest start that is known used of its context, and the most that any of them did.
func ContextText(all []Window) string {
	last, most := all[len(all)-1], int64(0)
	for _, w := range all {
		most = max(most, w.Used)
	}
	text := plain.Count(last.Used)
	if last.Used == 0 {
		text = "an unknown part"
	}
	if last.Size > 0 {
		text += " of " + plain.Count(last.Size)
	}
	text += fmt.Sprintf(" tokens in start %d", last.Iteration)
	if most > last.Used {
		text += fmt.Sprintf(", %s at most", plain.Count(most))
	}
	return text
}
