package loop

import (
	"fmt"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
)

// drift warns of each section that drifted, once a run. Tasks that are done stay done; a person
// decides which run again. since completes the warning.
func (r *runner) drift(since string) {
	news := 0
	for _, d := range prompt.Drifted(r.cfg.Documents.Outlines, r.sess.State().Header().Resources) {
		key := fmt.Sprintf("drift %s#%s %s", d.Path, d.Header, d.State)
		if r.warned[key] {
			continue
		}
		r.warned[key] = true
		news++
		if d.Header == "" {
			r.cfg.UI.Warn("drift: %s is %s since %s", d.Path, d.State, since)
		} else {
			r.cfg.UI.Warn("drift: %s, section %q is %s since %s", d.Path, d.Header, d.State, since)
		}
	}
	if news > 0 {
		r.cfg.UI.Say("what is done stays done; untick a task to have it done again: lopen plan untick %s TASK", r.cfg.Module)
	}
}
