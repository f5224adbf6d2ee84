package main

import (
	"fmt"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// A lastFailure is the data of last_failure.
type lastFailure struct {
	noted
	Session string          `json:"session"`
	Attempt *record.Attempt `json:"attempt,omitempty"` // none where none failed
	// DoneSince says that a later attempt at the same task succeeded.
	DoneSince bool `json:"doneSince"`
	// Output is the command that prints all of the output.
	Output string `json:"output,omitempty"`
}

func (t *toolAnswer) lastFailure(in mcp.LastFailure) (answerData, error) {
	var found *lastFailure
	err := t.readLog(in.Session, in.Task, func(store *lifecycle.Store, id session.ID, task string) (err error) {
		if found, err = failureOf(store, id, task); err != nil {
			return err
		}
		if found.Attempt == nil {
			fmt.Fprintf(t.stdout, "no attempt %sin session %s failed\n", atTask(task), id)
			return nil
		}
		t.printAttempts(store, id, []record.Attempt{*found.Attempt})
		if found.DoneSince {
			fmt.Fprintln(t.stdout, "  a later attempt at this task succeeded")
		}
		return nil
	})
	return found, err
}

// atTask names a task in a sentence; "" for every task.
func atTask(task string) string {
	if task == "" {
		return ""
	}
	return "at " + plain.Line(task) + " "
}

// failureOf finds the newest attempt that did not get its task done, "" for one at any task.
func failureOf(store *lifecycle.Store, id session.ID, task string) (*lastFailure, error) {
	f := &lastFailure{Session: id.String()}
	err := store.Log(id, 0, func(r record.Record) error {
		for _, a := range attemptsOf(r, task) {
			switch {
			case a.Then != record.Done:
				f.Attempt, f.DoneSince = &a, false
			case f.Attempt != nil && a.Task == f.Attempt.Task:
				f.DoneSince = true
			}
		}
		return nil
	})
	if err != nil || f.Attempt == nil {
		return f, err
	}
	f.Output = outputCommand(*f.Attempt, id)
	_, err = fits(func(items, bytes int) any {
		*f.Attempt = boundedAttempt(*f.Attempt, items, bytes)
		return f
	}, mcp.MaxText*3/4, bound{100, 6 << 10}, bound{20, 6 << 10}, bound{5, 2 << 10}, bound{2, 200})
	return f, err
}
