package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/nearest"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A roster has the modules of a work in the order of their turns. Owned by the goroutine that
// dispatches; a member whose run is in progress is the run's.
type roster struct {
	members  []*member
	finished map[string]bool // modules that have nothing left to do
	before   []*member       // those of them that were asked for
}

// A member is a module that is not finished.
type member struct {
	module string
	far    string // how far it is
	turn   plan.Turn
	open   []string // the tasks that were open when the work began

	why   string // why it is not begun; "" where it may be, or was
	left  int    // the exit code that goes with why
	begun bool   // its run was begun
	over  bool   // and has ended
	err   error  // how it ended
	ran   session.ID
	// branch is that of the session's work tree, "" while none is known.
	branch string
}

// roster returns the modules that are not finished, all or those that are named. It prints which
// are.
func (w *workCall) roster(named []string) (*roster, error) {
	open, done, err := w.run.unfinished(w.store)
	if err != nil {
		return nil, err
	}
	all := &roster{finished: map[string]bool{}}
	for _, name := range done {
		all.finished[name] = true
	}
	for _, m := range open {
		all.members = append(all.members, &member{module: m.Module, far: m.far()})
	}
	known := append(slices.Clone(done), all.names()...)
	if len(named) > 0 {
		done = slices.DeleteFunc(done, func(name string) bool { return !slices.Contains(named, name) })
		if err := all.only(w, named, known); err != nil {
			return nil, err
		}
	}
	if len(all.members)+len(done) == 0 {
		return nil, noModule(w.project)
	}
	if len(done) > 0 {
		fmt.Fprintf(w.stderr, "nothing is left to do: %s\n", strings.Join(done, ", "))
	}
	for _, name := range done {
		all.before = append(all.before, &member{module: name})
	}
	for _, m := range all.members {
		m.turn.Priority = math.MaxInt
		p, err := w.store.Plan(m.module)
		if err == nil {
			m.open = openLeaves(p)
			m.turn, err = p.Turn()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.leave(loop.ExitUser, "%s: %v", lifecycle.PlanPath(m.module), err)
		}
	}
	all.order(known)
	return all, nil
}

// openLeaves are the IDs of the tasks of a plan that are not ticked.
func openLeaves(p *plan.Plan) (open []string) {
	for _, t := range (loop.Selection{}).Leaves(p) {
		if !t.Checked {
			open = append(open, t.ID)
		}
	}
	return open
}

func (all *roster) names() (names []string) {
	for _, m := range all.members {
		names = append(names, m.module)
	}
	return names
}

// only reduces the roster to the modules that are named. One that has a specification and no plan
// yet is added, and one whose plan is empty: the run says why.
func (all *roster) only(w *workCall, named, known []string) error {
	members := all.members
	all.members = nil
	for i, name := range named {
		if slices.Contains(named[:i], name) || all.finished[name] {
			continue
		}
		if i := slices.IndexFunc(members, func(m *member) bool { return m.module == name }); i >= 0 {
			all.members = append(all.members, members[i])
			continue
		}
		if !holds(w.project, specPath(w.values, name)) && !holds(w.project, lifecycle.PlanPath(name)) {
			near := ""
			if found := nearest.Of(name, slices.Values(known), 3); len(found) > 0 {
				near = "; there is " + strings.Join(found, ", ")
			}
			return usagef("no plan for module %s%s\n%s", name, near, howToPlan(w.project, name))
		}
		all.members = append(all.members, &member{module: name, far: "no plan yet"})
	}
	return nil
}

// order sorts the modules by priority and name, and leaves out those whose predecessors cannot be
// waited for. known are all modules.
func (all *roster) order(known []string) {
	slices.SortFunc(all.members, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.turn.Priority, b.turn.Priority), cmp.Compare(a.module, b.module))
	})
	for _, m := range all.members {
		for _, name := range m.turn.After {
			switch {
			case all.member(name) != nil || all.finished[name]:
			case slices.Contains(known, name):
				m.leave(loop.ExitUser, "it comes after %s, which is not finished and was not named", plain.Line(name))
			default:
				m.leave(loop.ExitUser, "it comes after %s, and there is no such module: mend \"after:\" in %s", plain.Line(name), lifecycle.PlanPath(m.module))
			}
		}
	}
	all.afterOthers()
	for _, m := range all.members {
		if path := all.cycle(m.module, m, map[string]bool{}); path != nil {
			m.leave(loop.ExitUser, "it waits for itself: %s; mend \"after:\" in %s", strings.Join(append([]string{m.module}, path...), " after "), lifecycle.PlanPath(m.module))
		}
	}
}

// afterOthers puts each module behind those that it comes after, and leaves the order as it is
// otherwise. Those that wait for each other stay at the end.
func (all *roster) afterOthers() {
	rest := all.members
	all.members = nil
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(m *member) bool {
			return !slices.ContainsFunc(rest, func(o *member) bool { return o != m && slices.Contains(m.turn.After, o.module) })
		})
		all.members = append(all.members, rest[max(i, 0)])
		rest = slices.Delete(rest, max(i, 0), max(i, 0)+1)
	}
}

func (all *roster) member(name string) *member {
	if i := slices.IndexFunc(all.members, func(m *member) bool { return m.module == name }); i >= 0 {
		return all.members[i]
	}
	return nil
}

// cycle returns the way from a module back to the one that is looked for, or nil. seen has the modules
// from which no way leads there: each is looked at once, however many ways lead to it.
func (all *roster) cycle(target string, from *member, seen map[string]bool) []string {
	for _, name := range from.turn.After {
		if name == target {
			return []string{name}
		}
		if m := all.member(name); m != nil && !seen[name] {
			seen[name] = true
			if way := all.cycle(target, m, seen); way != nil {
				return append([]string{name}, way...)
			}
		}
	}
	return nil
}

// leave has a module not begun. The first reason counts.
func (m *member) leave(code int, format string, args ...any) {
	if m.why == "" {
		m.why, m.left = fmt.Sprintf(format, args...), code
	}
}

// next returns the module whose turn it is and marks it as begun, or nil if none can be begun now.
func (all *roster) next() *member {
	for _, m := range all.members {
		if !m.begun && m.why == "" && all.free(m) {
			m.begun = true
			return m
		}
	}
	return nil
}

// free says whether what a module comes after is done. What cannot be done any more leaves the
// module out.
func (all *roster) free(m *member) bool {
	free := true
	for _, name := range m.turn.After {
		before := all.member(name)
		switch {
		case before == nil: // finished
		case before.why != "" || before.over && before.err != nil:
			m.leave(loop.ExitUser, "it comes after %s, which is not done", name)
			return false
		case !before.over:
			free = false
		}
	}
	return free
}

// leaveRest leaves out all modules that were not begun.
func (all *roster) leaveRest(why string, code int) {
	for _, m := range all.members {
		if !m.begun {
			m.leave(code, "%s", why)
		}
	}
}

// code is the exit code of the module's run, 0 while there is none.
func (m *member) code() int {
	switch {
	case m.why != "":
		return m.left
	case !m.over || m.err == nil:
		return 0
	}
	return exitCode(m.err)
}

// how is how the module's run ended, or why it was not begun.
func (m *member) how() string {
	switch {
	case m.why != "":
		return m.why
	case m.err != nil:
		return m.err.Error()
	}
	return "done"
}

// urgency has the exit codes of a work, the most urgent first. What else a run ends with needs a
// person.
var urgency = []int{loop.ExitInterrupted, loop.ExitStorage, loop.ExitUser, loop.ExitLimit, loop.ExitBusy}

// exit returns how the work ended, with the code of the most urgent end, or nil if all is done.
func (all *roster) exit() error {
	var undone []string
	worst := len(urgency)
	for _, m := range all.members {
		code := m.code()
		if code == 0 {
			continue
		}
		undone = append(undone, m.module)
		i := slices.Index(urgency, code)
		if i < 0 {
			i = slices.Index(urgency, loop.ExitUser)
		}
		worst = min(worst, i)
	}
	if len(undone) == 0 {
		return nil
	}
	return &loop.Exit{Code: urgency[worst], Reason: fmt.Sprintf("%d of %s not done: %s", len(undone), plain.Some(len(all.members), "module"), strings.Join(undone, ", "))}
}
