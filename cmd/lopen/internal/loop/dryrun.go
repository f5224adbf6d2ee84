package loop

import (
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// A Rehearsal is what a run would do.
type Rehearsal struct {
	Order []string // the leaves of each unit on which the command would be started
	// Prompt is the prompt of the first unit. If nothing would run it is that of the one task that
	// is selected, or nil. Parts are the parts that it consists of.
	Prompt []byte
	Parts  []prompt.Part
}

// DryRun returns what a run would do. It changes nothing. st is the State of the session that the
// run would resume, or nil for a new session, and past is its Past.
func DryRun(cfg Config, p *plan.Plan, st *session.State, past *lifecycle.Past) (*Rehearsal, error) {
	if st == nil {
		var err error
		if st, err = Fresh(cfg.Module); err != nil {
			return nil, err
		}
	}
	cfg.UI = silent{}
	r := &runner{cfg: cfg, plan: p, warned: map[string]bool{}, failures: map[string][]prompt.Failure{}}
	r.loadFailures(past.Failed)
	if r.lastStart = lastStartOf(past); st.ActiveTask() != "" {
		r.lastStart = lastStart{unit: st.ActiveTask(), then: record.Killed}
	}
	res, err := tasks.Reconcile(st, p, tasks.Between)
	if err != nil {
		return nil, err
	}
	if e, failed := res.State.Edit(), failedLeaves(res.State, cfg.Select); len(failed) > 0 {
		resetTasks(e, failed)
		if res.State, err = e.State(); err != nil {
			return nil, err
		}
	}
	h := &Rehearsal{}
	for todo := newAgenda(res.State, cfg, r.lastStart.unfinished()); ; {
		unit, leaves := todo.next()
		done := unit == ""
		if done && cfg.Select.From == cfg.Select.Through {
			unit, leaves = cfg.Select.From, tasks.Leaves(res.State, cfg.Select.From)
		}
		if h.Prompt == nil && unit != "" {
			g, err := r.draft(res.State, unit, leaves, attemptNumber(res.State, leaves))
			if err != nil {
				return nil, err
			}
			h.Parts = g.Parts
			if h.Prompt, err = g.Write(cfg.Prompt); err != nil {
				return nil, err
			}
		}
		if done {
			return h, nil
		}
		h.Order = append(h.Order, strings.Join(leaves, ", "))
	}
}

// Fresh returns the State of a new session of a module, for a dry run.
func Fresh(module string) (*session.State, error) {
	id, err := session.NewID(module, time.Now(), 1)
	if err != nil {
		return nil, err
	}
	return session.New(id, time.Now())
}

// silent is the UI of a dry run. A dry run calls only Warn, for a missing specification.
type silent struct{ UI }

func (silent) Warn(string, ...any) {}
