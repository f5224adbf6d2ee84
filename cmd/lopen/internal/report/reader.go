package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/failing"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

// Bounds of what a report keeps.
const (
	maxDenied      = 50
	maxDeniedTasks = 5
	maxTakenBack   = 100
	maxUnstored    = 20 // of a task
	maxWaits       = 1000
	maxLines       = 8 // of a failure
)

// A Reader takes the records of a session's log. The zero value takes all of them.
// It is for one goroutine.
type Reader struct {
	Since time.Time // records before it are not counted

	from, last, over time.Time // over is the end of the last run, zero while one works
	units            map[string]*unit
	order            []*unit
	waits            []Wait
	waiting          bool // the last wait has no end yet
	taken            []Attempt
	denied           []Denied
	totals           Totals
	kills            int
	forked           bool // the log begins with a fork
	resting          bool // the last record of a status is not active
	streak           []streaked
	then, problem    string // of the last attempt
	said             string
}

// streaked is an attempt that failed without anything to show for it: the circuit breaker
// may take it back. Its record stays, the State has forgotten it.
type streaked struct {
	Attempt
	u      *unit
	before judgement
}

// judgement is what the last attempt at a unit that counted came to.
type judgement struct {
	then, message string
	check         *Check
	lines         []string
}

// unit is what is known of a task, or of a unit of several.
type unit struct {
	Failure
	judgement
	to    string          // the checkpoint that its files were set back to
	files map[string]bool // nil after its last attempt was done
}

// Add takes the next record.
func (r *Reader) Add(rec record.Record) {
	rested := r.resting
	for _, op := range rec.Ops {
		if op.Name == record.OpStatusChanged {
			r.resting = op.To != string(session.StatusActive)
		}
	}
	if rec.At.Before(r.Since) {
		return
	}
	if r.units == nil {
		r.units, r.from, r.totals.Then = map[string]*unit{}, rec.At, map[string]int{}
	}
	r.forked = r.forked || rec.Event == record.EventForked
	if rec.Event == record.EventResumed {
		if !rested {
			r.kills++
		}
		r.endWait(rec.At, true)
	}
	r.last = rec.At
	for i := range rec.Attempts {
		r.attempt(&rec.Attempts[i])
	}
	for _, op := range rec.Ops {
		r.op(op, rec.At)
	}
	if w := rec.Rewind; w != nil && rec.Event == record.EventRewindEnd && w.After != "" {
		if u := r.units[w.Task]; u != nil {
			u.Left, u.Kept, u.to = "", "failed:"+w.Task, w.To
		}
	}
}

// op takes a change of the State: the end of a run, or why files stay as a failed task left them.
func (r *Reader) op(op record.Op, at time.Time) {
	switch op.Name {
	case record.OpStatusChanged:
		r.over = time.Time{}
		if op.To != string(session.StatusActive) {
			r.over = at
			r.endWait(at, false)
		}
	case record.OpFilesKept:
		if u := r.units[op.Task]; u != nil {
			u.Stayed = append(u.Stayed, stayed(op)...)
		}
	case record.OpNotSetBack:
		if u := r.units[op.Task]; u != nil {
			u.Left, u.Kept, u.Stayed, u.to = op.To, "", nil, ""
		}
	}
}

// stayed returns the first files that a rewind left as they are, each with the reason.
func stayed(op record.Op) (lines []string) {
	for _, path := range op.Paths {
		lines = append(lines, path+" ("+op.To+")")
	}
	if more := op.Count - len(op.Paths); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more (%s)", more, op.To))
	}
	return lines
}

// endWait ends the wait that is not over, if there is one. A run that was killed does not wait
// beyond the time that it was to wait.
func (r *Reader) endWait(at time.Time, killed bool) {
	if !r.waiting {
		return
	}
	r.waiting = false
	w := &r.waits[len(r.waits)-1]
	if killed && w.To.Before(at) {
		at = w.To
	}
	w.end(at)
	w.Open = false
}

func (w *Wait) end(at time.Time) {
	if at.Before(w.From) {
		at = w.From
	}
	w.To, w.Seconds = at, at.Sub(w.From).Seconds()
}

func (r *Reader) attempt(a *record.Attempt) {
	if a.Then != record.Killed { // nobody knows when it was started
		r.endWait(a.StartedAt, false)
	}
	r.then, r.problem, r.said = a.Then, a.Problem, a.AgentError
	r.totals.add(a)
	r.totals.Then[a.Then]++
	for _, text := range a.Denied {
		r.deny(text, a.Task)
	}
	u := r.unit(a.Task)
	u.add(a)
	u.At = a.EndedAt
	if a.Then == record.Uncounted {
		r.takeBack(u, a)
	}
	if a.Then == record.Failed || a.Then == record.Done {
		if a.Then == record.Failed && a.Check == nil && a.Output == 0 && len(a.Files) == 0 {
			r.streak = append(r.streak, streaked{Attempt{a.Task, a.EndedAt, cmp.Or(a.AgentError, a.Failure)}, u, u.judgement})
		} else {
			r.streak = nil
		}
		u.judged(a)
	}
	if a.Then == record.Waits || a.Then == record.Uncounted && a.RetryAt != nil {
		r.wait(a)
	}
}

// unit is that of a task, a new one where there is none.
func (r *Reader) unit(task string) *unit {
	u := r.units[task]
	if u == nil {
		u = &unit{files: map[string]bool{}}
		u.Task.Task = task
		r.units[task] = u
		r.order = append(r.order, u)
	}
	return u
}

// takeBack notes an attempt that does not count. Where it opens the circuit breaker, those
// before it do not count either.
func (r *Reader) takeBack(u *unit, a *record.Attempt) {
	others := slices.ContainsFunc(r.streak, func(s streaked) bool { return s.u != r.streak[0].u || s.u != u })
	if len(r.streak) > 1 && others && a.Output == 0 && len(a.Files) == 0 {
		for _, s := range slices.Backward(r.streak) {
			s.u.judgement = s.before
			s.u.Attempts--
		}
		for _, s := range r.streak {
			r.takenBack(s.Attempt)
		}
	}
	r.streak = nil
	r.takenBack(Attempt{a.Task, a.EndedAt, cmp.Or(a.AgentError, a.Failure)})
}

func (r *Reader) takenBack(a Attempt) {
	if len(r.taken) < maxTakenBack {
		r.taken = append(r.taken, a)
	}
}

// judged notes an attempt that counts.
func (u *unit) judged(a *record.Attempt) {
	if u.files == nil { // it was done before
		u.files, u.Files, u.Attempts = map[string]bool{}, 0, 0
	}
	for _, f := range a.Files {
		u.files[f.Path] = true
		if line := fmt.Sprintf("%s %s (%s)", f.Change, f.Path, f.Unstored); f.Unstored != "" && len(u.Unstored) < maxUnstored && !slices.Contains(u.Unstored, line) {
			u.Unstored = append(u.Unstored, line)
		}
	}
	u.Files = max(u.Files, len(u.files)+a.MoreFiles)
	u.Attempts++
	u.Kept, u.Left, u.Stayed, u.to = "", "", nil, ""
	u.judgement = judgement{then: a.Then}
	if a.Then == record.Done {
		u.files = nil
		return
	}
	u.message = a.Failure
	if c := a.Check; c != nil {
		u.check = &Check{c.Exit, float64(c.Ms) / 1000}
	}
	if u.lines = failing.Last(a.CheckTail, maxLines); len(u.lines) == 0 {
		u.lines = failing.Last(a.Tail, maxLines)
	}
}

func (r *Reader) wait(a *record.Attempt) {
	if len(r.waits) == maxWaits {
		return
	}
	problem := cmp.Or(a.Problem, "limit")
	if a.Then == record.Uncounted {
		problem = "circuit breaker"
	}
	w := Wait{Problem: problem, Agent: a.Agent, Task: a.Task, Said: a.AgentError, From: a.EndedAt, To: a.EndedAt, Open: true}
	if a.RetryAt != nil && a.RetryAt.After(w.From) {
		w.To = *a.RetryAt
	}
	r.waits, r.waiting = append(r.waits, w), true
}

func (r *Reader) deny(text, task string) {
	i := slices.IndexFunc(r.denied, func(d Denied) bool { return d.Text == text })
	if i < 0 {
		if len(r.denied) == maxDenied {
			return
		}
		i = len(r.denied)
		r.denied = append(r.denied, Denied{Text: text})
	}
	d := &r.denied[i]
	d.Times++
	if len(d.Tasks) < maxDeniedTasks && !slices.Contains(d.Tasks, task) {
		d.Tasks = append(d.Tasks, task)
	}
}

// Report sums up the records so far, with the State that they lead to. held says that
// a process holds the session; now is the time.
func (r *Reader) Report(st *session.State, held bool, now time.Time) *Report {
	if st.Header().Origin != session.OriginRun {
		r.kills = 0 // between two hooks nobody has the session open
	}
	rep := &Report{
		Session: st.ID().String(), Module: st.ID().Module, Status: string(st.Status().Seen(held)),
		From: r.from, To: r.last, Kills: r.kills, Active: st.ActiveTask(),
		Progress: st.Progress(), Blocked: blocked(st), origin: st.Header().Origin,
		Failures: []Failure{}, Waits: append([]Wait{}, r.waits...), Waited: []Waited{}, TakenBack: append([]Attempt{}, r.taken...),
		Denied: append([]Denied{}, r.denied...), Limits: Limits(st), Windows: Windows(st), Done: []Task{}, Unchanged: []string{}, Totals: r.totals,
	}
	if !r.over.IsZero() {
		rep.To = r.over
	}
	rep.Totals.Then = map[string]int{}
	maps.Copy(rep.Totals.Then, r.totals.Then)
	for _, u := range r.order {
		rep.judge(st, u)
	}
	r.addLost(rep, st)
	if r.waiting {
		w := &rep.Waits[len(rep.Waits)-1]
		switch {
		case held && w.To.After(now): // Seconds are those until now
			w.Seconds = now.Sub(w.From).Seconds()
		case held:
			w.end(now)
		default:
			w.Open = false
			if now.Before(w.To) {
				w.To = now
			}
			w.end(w.To)
		}
	}
	for _, w := range rep.Waits {
		rep.waited(Waited{w.Problem, 1, w.Seconds})
	}
	if rep.Status == string(session.StatusInterrupted) {
		rep.Ended = string(session.ExitCrashed)
		rep.Kills++
	} else if rep.Status != string(session.StatusActive) {
		rep.Ended = string(st.Header().ExitReason)
	}
	rep.Why = r.why(rep, st)
	rep.Next = next(rep, st)
	return rep
}

// waited adds to the sums of waits.
func (rep *Report) waited(w Waited) {
	i := slices.IndexFunc(rep.Waited, func(s Waited) bool { return s.Problem == w.Problem })
	if i < 0 {
		rep.Waited = append(rep.Waited, w)
		return
	}
	rep.Waited[i].Waits += w.Waits
	rep.Waited[i].Seconds += w.Seconds
}

// blocked is how many tasks wait for one that failed, or for one that does.
func blocked(st *session.State) int {
	if st.Progress().Failed == 0 {
		return 0
	}
	_, waiting := tasks.Order(st)
	stuck := map[string]bool{}
	on := func(item string) bool {
		return slices.ContainsFunc(tasks.Leaves(st, item), func(id string) bool {
			t, _ := st.Task(id)
			return t.State == session.TaskFailed || stuck[id]
		})
	}
	for more := true; more; {
		more = false
		for _, w := range waiting {
			if !stuck[w.Task] && slices.ContainsFunc(w.For, on) {
				stuck[w.Task], more = true, true
			}
		}
	}
	return len(stuck)
}

// addLost adds what the State alone has, where the session was made again and its log is
// lost: tasks that failed, and how many starts there were.
func (r *Reader) addLost(rep *Report, st *session.State) {
	if !r.Since.IsZero() {
		return
	}
	if !r.forked && st.Header().Origin == session.OriginRun { // else what came before is in the log of the other session
		rep.Lost = max(st.NumIterations()-rep.Totals.Starts, 0)
	}
	for t := range st.All() {
		if len(t.Children) > 0 || t.State != session.TaskFailed || slices.ContainsFunc(rep.Failures, func(f Failure) bool { return f.Task.Task == t.ID }) {
			continue
		}
		rep.Failures = append(rep.Failures, Failure{
			Task:    Task{Task: t.ID, Name: t.Name, State: string(t.State), Attempts: t.Attempts},
			Message: t.LastError, Lines: []string{}, Stayed: []string{}, Commands: []string{},
		})
	}
}

// judge puts a unit where it belongs: with what failed or with what is done.
func (rep *Report) judge(st *session.State, u *unit) {
	t, ok := st.Task(u.Task.Task)
	f := u.Failure
	f.Name, f.State, f.Message, f.Check = t.Name, string(t.State), u.message, u.check
	complete := t.State == session.TaskComplete
	switch {
	case u.then == record.Failed && ok && !complete && t.State != session.TaskSkipped:
		f.Lines, f.Stayed, f.Commands = append([]string{}, u.lines...), append([]string{}, u.Stayed...), []string{}
		if f.Kept != "" {
			f.Commands = []string{loop.ShowFailed(st.ID(), f.Task.Task, u.to[:min(len(u.to), 8)]), loop.RestoreFailed(st.ID(), f.Task.Task)}
		}
		rep.Failures = append(rep.Failures, f)
	case complete, u.then == record.Done:
		rep.Done = append(rep.Done, f.Task)
		if complete && u.then == record.Done && f.Files == 0 {
			rep.Unchanged = append(rep.Unchanged, f.Task.Task)
		}
	}
}
