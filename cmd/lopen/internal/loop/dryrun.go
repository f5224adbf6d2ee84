package loop

import (
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// DryRun says what a run would do: the units that it would start the command
// on, in order, and the first prompt. st is the State of the session that it would
// resume, nil for a new one. Nothing is changed.
func DryRun(cfg Config, p *plan.Plan, st *session.State) (order []string, first []byte, err error) {
	if st == nil {
		id, err := session.NewID(cfg.Module, time.Now(), 1)
		if err != nil {
			return nil, nil, err
		}
		if st, err = session.New(id, time.Now()); err != nil {
			return nil, nil, err
		}
	}
	cfg.UI = silent{}
	r := &Runner{cfg: cfg, plan: p, warned: map[string]bool{}}
	res, err := tasks.Reconcile(st, p, tasks.Between)
	if err != nil {
		return nil, nil, err
	}
	if e, failed := res.State.Edit(), failedLeaves(res.State); len(failed) > 0 {
		again(e, failed)
		if res.State, err = e.State(); err != nil {
			return nil, nil, err
		}
	}
	for todo := newAgenda(res.State, cfg); ; {
		unit, leaves := todo.next()
		if unit == "" {
			return order, first, nil
		}
		if first == nil {
			if first, _, err = r.compose(res.State, unit, leaves, 1); err != nil {
				return nil, nil, err
			}
		}
		order = append(order, strings.Join(leaves, ", "))
	}
}

// silent is the UI of a dry run, which only ever warns of a missing specification.
type silent struct{ UI }

func (silent) Warn(string, ...any) {}
