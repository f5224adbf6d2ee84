package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A lastFailure is the data of last_failure.
type lastFailure struct {
	noted
	chosen
	Attempt *record.Attempt `json:"attempt,omitempty"` // none where none failed
	// DoneSince says that a later attempt at the same task succeeded.
	DoneSince bool `json:"doneSince"`
	// Output is the command that prints all of the output.
	Output string `json:"output,omitempty"`
	Cut    string `json:"cut,omitempty"`
}

const (
	// maxLooked bounds the sessions whose logs are read for the newest failure of all.
	maxLooked = 100
	// late is how much later than its session says an attempt may have ended. It is generous: state.json is
	// behind the log for moments.
	late = time.Hour
)

func (t *toolAnswer) lastFailure(ctx context.Context, in mcp.LastFailure) (answerData, error) {
	found := &lastFailure{}
	if in.Session == "" {
		return found, t.readStore(func(store *lifecycle.Store) error { return t.newestFailure(ctx, store, in.Task, found) })
	}
	return found, t.readLog(in.Session, in.Task, func(store *lifecycle.Store, id session.ID, task string) error {
		f, err := failureOf(store, id, task, true)
		if err != nil {
			return err
		}
		found.chosen, found.Attempt, found.DoneSince = t.about, f.attempt, f.doneSince
		return t.printFailure(store, found, id, atTask(task)+"in session "+id.String())
	})
}

// newestFailure finds the newest failure of all sessions. An attempt that a person interrupted is none: the
// newest session is often the agent's own, in which that is no news.
func (t *toolAnswer) newestFailure(ctx context.Context, store *lifecycle.Store, task string, found *lastFailure) error {
	infos, err := notImported(store)
	if err == nil && len(infos) == 0 {
		_, err = store.Latest("") // which says so
	}
	if err != nil {
		return err
	}
	read, best, all, err := t.failures(ctx, store, infos, task)
	if err != nil {
		return err
	}
	if !all {
		found.Cut = fmt.Sprintf("only the %d newest of %d sessions were looked at: name another one", maxLooked, len(infos))
		fmt.Fprintln(t.stdout, found.Cut)
	}
	if best == nil {
		found.chosen, t.which = besides(infos, "", "")
		fmt.Fprint(t.stdout, t.which)
		return t.printFailure(store, found, session.ID{}, atTask(task)+"in "+plain.Some(len(read), "session"))
	}
	found.chosen, t.which = besides(infos, best.id.String(), "the one with the newest failure")
	fmt.Fprint(t.stdout, t.which)
	found.Attempt, found.DoneSince = best.attempt, best.doneSince
	for _, f := range read {
		if at, done := f.done[best.attempt.Task]; done && f.id.Module == best.id.Module && at.After(endOfAttempt(best.attempt)) {
			found.DoneSince = true
		}
	}
	return t.printFailure(store, found, best.id, "")
}

// failures reads the logs of sessions, the newest first, until no older one can have a newer failure. It
// returns what they have, the newest failure of them, nil for none, and whether that is of all sessions. The
// error says why no session has the task.
func (t *toolAnswer) failures(ctx context.Context, store *lifecycle.Store, infos []lifecycle.Info, task string) (read []*failure, best *failure, all bool, err error) {
	var unread, others []lifecycle.Info
	for _, i := range infos {
		if i.Err != nil {
			unread = append(unread, i)
		} else {
			others = append(others, i)
		}
	}
	infos = slices.Concat(unread, others) // one that cannot be read may have the newest
	var unknown error
	for n, i := range infos {
		if err := ctx.Err(); err != nil {
			return nil, nil, false, err
		}
		if n == maxLooked {
			return read, best, false, unlessRead(read, unknown)
		}
		if best != nil && i.Err == nil && endOfAttempt(best.attempt).After(i.UpdatedAt.Add(late)) {
			break
		}
		f, err := t.failureIn(store, i.ID, task)
		if several := (*plan.AmbiguousError)(nil); errors.Is(err, plan.ErrUnknownTask) || errors.As(err, &several) {
			unknown = cmp.Or(unknown, err)
			continue
		}
		if err != nil { // of one session of many
			fmt.Fprintf(t.stderr, "warning: session %s is left out: %v\n", i.ID, err)
			continue
		}
		read = append(read, f)
		if f.attempt != nil && (best == nil || endOfAttempt(f.attempt).After(endOfAttempt(best.attempt))) {
			best = f
		}
	}
	return read, best, true, unlessRead(read, unknown)
}

// unlessRead is why no session has the task, nil where one has.
func unlessRead(read []*failure, unknown error) error {
	if len(read) > 0 {
		return nil
	}
	return unknown
}

// failureIn is failureOf for one of all sessions. task is found among those that its log knows.
func (t *toolAnswer) failureIn(store *lifecycle.Store, id session.ID, task string) (*failure, error) {
	if err := t.warnOfDamage(store, id); err != nil {
		return nil, err
	}
	if task != "" {
		var err error
		if task, err = loggedTask(store, id, task); err != nil {
			return nil, err
		}
	}
	return failureOf(store, id, task, false)
}

// printFailure bounds what was found and prints it. where is for the sentence that none was.
func (t *toolAnswer) printFailure(store *lifecycle.Store, found *lastFailure, id session.ID, where string) error {
	if found.Attempt == nil {
		_, err := fmt.Fprintf(t.stdout, "no attempt %s failed\n", where)
		return err
	}
	found.Output = outputCommand(*found.Attempt, id)
	whole := *found.Attempt
	if _, err := fits(func(items, bytes int) any {
		*found.Attempt = boundedAttempt(whole, items, bytes)
		return found
	}, mcp.MaxText*3/4, bound{100, 6 << 10}, bound{20, 6 << 10}, bound{5, 2 << 10}, bound{2, 200}); err != nil {
		return err
	}
	t.printAttempts(store, id, []record.Attempt{*found.Attempt})
	if found.DoneSince {
		fmt.Fprintln(t.stdout, "  a later attempt at this task succeeded")
	}
	return nil
}

// atTask names a task in a sentence; "" for every task.
func atTask(task string) string {
	if task == "" {
		return ""
	}
	return "at " + plain.Line(task) + " "
}

// A failure is the newest attempt in a session that did not get its task done.
type failure struct {
	id        session.ID
	attempt   *record.Attempt // nil for none
	doneSince bool
	done      map[string]time.Time // when the tasks that are done were
}

// failureOf finds the newest attempt that did not get its task done, "" for one at any task. One that a person
// interrupted counts only with interrupted set.
func failureOf(store *lifecycle.Store, id session.ID, task string, interrupted bool) (*failure, error) {
	f := &failure{id: id, done: map[string]time.Time{}}
	return f, store.Log(id, 0, func(r record.Record) error {
		for _, a := range attemptsOf(r, task) {
			switch {
			case a.Then == record.Done:
				f.done[a.Task] = endOfAttempt(&a)
				f.doneSince = f.doneSince || f.attempt != nil && a.Task == f.attempt.Task
			case a.Then != record.Interrupted || interrupted:
				f.attempt, f.doneSince = &a, false
			}
		}
		return nil
	})
}

// endOfAttempt is when an attempt ended or, of one that was killed, when it began.
func endOfAttempt(a *record.Attempt) time.Time {
	if a.EndedAt.IsZero() {
		return a.StartedAt
	}
	return a.EndedAt
}
