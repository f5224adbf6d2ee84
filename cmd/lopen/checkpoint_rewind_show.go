package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// noTask is who a [checkpoint.Retained] names where no task was active.
const noTask = "nobody's task"

// A summary of a rewind names so many paths of a kind, or of a reason to be kept.
const namedPaths = 10

// rewindRow is a rewind as --json prints it.
type rewindRow struct {
	To      checkpointRef         `json:"to"`
	Before  *checkpointRef        `json:"before,omitempty"`
	Later   bool                  `json:"later"` // commits or branches came after the target
	Changes []checkpoint.Change   `json:"changes"`
	Kept    []checkpoint.Retained `json:"kept"`
	Taken   []checkpoint.Retained `json:"taken,omitempty"` // changes of what somebody has open for writing
	Tasks   []rewindTask          `json:"tasks"`
}

type checkpointRef struct {
	ID     checkpoint.ID `json:"id"`
	Number uint64        `json:"number"`
}

type rewindTask struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

func newRewindRow(r rewind.Result) rewindRow {
	row := rewindRow{To: checkpointRef{r.To.ID, r.To.Number}, Later: r.Later, Changes: append([]checkpoint.Change{}, r.Changes...),
		Kept: append([]checkpoint.Retained{}, r.Retained...), Taken: r.Taken, Tasks: []rewindTask{}}
	if r.Before != nil {
		row.Before = &checkpointRef{r.Before.ID, r.Before.Number}
	}
	for _, t := range r.Tasks {
		row.Tasks = append(row.Tasks, rewindTask{t.ID, string(t.State)})
	}
	return row
}

// A rewindTarget is what a rewind is about, in the words of a person.
type rewindTarget struct {
	session string // its ID and its name
	to      string // the checkpoint, and the task that it was made at
}

// newRewindTarget describes a rewind of a session to a checkpoint, which may be another session's.
func newRewindTarget(store *lifecycle.Store, id session.ID, e *checkpoint.Entry) rewindTarget {
	t := rewindTarget{id.String(), numbered(e)}
	if m, err := store.Meta(id); err == nil && m.Name != "" {
		t.session += " " + inQuotes(m.Name)
	}
	when := map[checkpoint.Reason]string{checkpoint.BeforeTask: "before ", checkpoint.AfterTask: "after ", checkpoint.BeforeRewind: "as it was left by "}[e.Reason]
	if e.Task == "" || when == "" {
		return t
	}
	of := id
	if e.Incarnation != store.Incarnation(id) {
		of, _ = session.ParseID(e.Session) // the zero one is not there
	}
	task := plain.Line(e.Task)
	if e.Incarnation == store.Incarnation(of) { // else another session has that ID here
		if st, _, _ := store.Read(of); st != nil {
			task = taskTitle(st, e.Task)
		}
	}
	if t.to += ", " + when + task; of != id {
		t.to += " of " + plain.Line(e.Session)
	}
	return t
}

func (t rewindTarget) show(w io.Writer) {
	fmt.Fprintf(w, "%-9s %s\n%-9s %s\n", "session", t.session, "to", t.to)
}

// showRewindPlan prints what a rewind would change, each path or a summary, and with patches
// line by line.
func showRewindPlan(w *terminal.Stream, cps *chain, git []string, r rewind.Result, whole, patches bool) error {
	showRewind(w, git, r, whole)
	for _, c := range r.Changes {
		if !patches {
			break
		}
		patch, err := cps.Patch(c.Old, c.New)
		if err != nil {
			return err
		}
		fmt.Fprint(w.Content(), patch)
	}
	return nil
}

// showRewind prints what a rewind changes and keeps: each path with the checkpoint that
// has what it replaces, or the first of each kind. git begins the commands that it names.
func showRewind(w *terminal.Stream, git []string, r rewind.Result, whole bool) {
	l := lister{w: w, whole: whole}
	for _, c := range r.Changes {
		has := ""
		if l, is := cmp.Or(c.Old, c.New).Hidden(); is {
			has = fmt.Sprintf(" (%s)", l)
		} else if c.Old != nil && c.At != 0 {
			has = fmt.Sprintf(" (%d has what is there now)", c.At)
		}
		l.add(string(c.Kind), fmt.Sprintf("%-9s %s%s", c.Kind, shown(c.Path), has))
	}
	l.more()
	showKept(&l, r)
	if slices.ContainsFunc(r.Retained, func(k checkpoint.Retained) bool { return k.Why == checkpoint.Contested }) {
		fmt.Fprintln(w, "what was changed while several were at work, or one that was killed, may be a person's: with --contested it goes back too")
	}
	showUsed(w, r)
	for _, t := range r.Tasks {
		l.add("task", fmt.Sprintf("%-9s %s: %s", "task", t.ID, t.State))
	}
	l.more()
	switch {
	case len(r.Changes)+len(r.Tasks) == 0 && slices.ContainsFunc(r.Retained, func(k checkpoint.Retained) bool { return k.Why == checkpoint.Foreign }):
		fmt.Fprintln(w, "nothing changes; with --force what somebody else changed goes back too, but not what only somebody else made")
	case len(r.Changes)+len(r.Tasks) == 0:
		fmt.Fprintln(w, "nothing changes")
	case l.hidden:
		fmt.Fprintln(w, "in all: "+strings.Join(l.totals(), ", "))
	}
	if oldest, n := commitsOf(r.Tasks); n > 0 {
		fmt.Fprintf(w, "%s of these tasks in git stay; to have that there as well: %s commit -a, or, if nobody else has them, %[2]s reset %[3]s^\n", plain.Some(n, "commit"), quoted(git), plain.Line(oldest))
	}
	if r.Later {
		fmt.Fprintln(w, "git's HEAD or branch is another one than at the checkpoint: commits and branches stay as they are")
	}
}

// showKept prints the paths that a rewind leaves as they are.
func showKept(l *lister, r rewind.Result) {
	for _, k := range r.Retained {
		l.add("kept: "+string(k.Why), fmt.Sprintf("%-9s %s (%s)", "keep", shown(k.Path), whyKept(k)))
	}
	l.more()
}

// openSession opens a session. If that finishes a rewind that was cut off, it says so, and what was kept.
func (a *app) openSession(store *lifecycle.Store, id session.ID) (*lifecycle.Session, error) {
	sess, err := store.Open(id)
	if err != nil {
		return nil, err
	}
	if done := sess.Finished(); done != nil {
		fmt.Fprintf(a.stderr, "the rewind to checkpoint %s was cut off and is finished now\n", numbered(done.To))
		showKept(&lister{w: a.stderr}, *done)
	}
	return sess, nil
}

// showUsed says what becomes of files that somebody has open for writing.
func showUsed(w io.Writer, r rewind.Result) {
	if slices.ContainsFunc(r.Retained, func(k checkpoint.Retained) bool { return k.Why == checkpoint.InUse }) {
		fmt.Fprintln(w, "what is open for writing stays: give the command again once it is closed, or replace it nevertheless with --force")
	}
	for _, k := range r.Taken {
		verb, done, when := "--force replaces", "replaced", "then"
		if slices.ContainsFunc(r.Changes, func(c checkpoint.Change) bool { return c.Path == k.Path && c.Kind == checkpoint.KindDelete }) {
			verb, done = "--force removes", "removed"
		}
		if r.Before != nil {
			verb, when = done, "now"
		}
		who := string(k.Why)
		if k.By != "" {
			who += " in " + plain.Line(k.By)
		}
		fmt.Fprintf(w, "%s %s, which is %s: what is written to it from %s on is lost\n", verb, shown(k.Path), who, when)
	}
}

// commitsOf returns the oldest commit of tasks that are rewound, and how many there are.
func commitsOf(all []session.Task) (oldest string, n int) {
	var at time.Time
	for _, t := range all {
		_, hash := loop.CommitsOf(t)
		if hash == "" || t.State == session.TaskComplete {
			continue
		}
		if n++; oldest == "" || t.Log[len(t.Log)-1].EndedAt.Before(at) {
			oldest, at = hash, t.Log[len(t.Log)-1].EndedAt
		}
	}
	return oldest, n
}

// whyKept says why a path is kept, who changed it, and which checkpoint has it.
func whyKept(k checkpoint.Retained) string {
	why := plain.Line(k.Reason())
	switch {
	case k.By == noTask && k.Why == checkpoint.Foreign:
		why = "changed while no task was at work"
	case k.By == noTask:
		why = string(k.Why)
	}
	if k.Cause != "" {
		why += ": " + plain.Line(k.Cause)
	}
	if k.At != 0 {
		why += fmt.Sprintf("; %d has it", k.At)
	}
	return why
}

// A lister writes lines, of each kind the first ones, and counts them.
type lister struct {
	w      *terminal.Stream
	whole  bool
	kinds  []string
	counts map[string]int
	summed int // kinds whose rest was counted
	hidden bool
}

func (l *lister) add(kind, line string) {
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	if l.counts[kind]++; l.counts[kind] == 1 {
		l.kinds = append(l.kinds, kind)
	}
	if l.whole || l.counts[kind] <= namedPaths {
		fmt.Fprintln(l.w, line)
	}
}

// more says how many lines of the kinds so far were left out.
func (l *lister) more() {
	for _, kind := range l.kinds[l.summed:] {
		if n := l.counts[kind] - namedPaths; n > 0 && !l.whole {
			fmt.Fprintf(l.w, "          and %d more (%s)\n", n, kind)
			l.hidden = true
		}
	}
	l.summed = len(l.kinds)
}

func (l *lister) totals() (all []string) {
	for _, kind := range l.kinds {
		all = append(all, fmt.Sprintf("%d %s", l.counts[kind], kind))
	}
	return all
}
