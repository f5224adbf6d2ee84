package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// minHex is how many digits of an ID name a checkpoint at least.
const minHex = 4

// chain is the project's checkpoints for a command that looks at them, and which of them
// are on the line of a session: its own, and those of the session that it comes from up
// to there.
type chain struct {
	*lifecycle.Checkpoints
	all  []*checkpoint.Entry // those that were removed left out; the oldest first
	line map[uint64]bool     // nil where there is no session
}

// lookingAt opens the project's checkpoints, with the line of a session, for a command
// that only reads. Lines of the chain that cannot be read are warnings, and so is a
// session that cannot be: its checkpoints are the project's.
func (a *app) lookingAt(name string, fn func(store *lifecycle.Store, id session.ID, cps *chain) error) error {
	return a.reading([]string{name}, func(store *lifecycle.Store, id session.ID) error {
		cps, err := a.chain(store)
		if err != nil {
			return err
		}
		if cps.line, err = store.CheckpointLine(cps.Checkpoints, id); err != nil {
			fmt.Fprintf(a.stderr, "warning: which checkpoints session %s goes on from is not known: %v\n", id, err)
		}
		return errors.Join(fn(store, id, cps), cps.Close())
	})
}

// chain opens the project's checkpoints without a session's line.
func (a *app) chain(store *lifecycle.Store) (*chain, error) {
	cps, err := store.Checkpoints()
	if err != nil {
		return nil, err
	}
	all, faults, err := cps.List()
	if err != nil {
		return nil, errors.Join(err, cps.Close())
	}
	for _, fault := range faults {
		fmt.Fprintf(a.stderr, "warning: %v\n", fault)
	}
	return &chain{Checkpoints: cps, all: slices.DeleteFunc(all, func(e *checkpoint.Entry) bool { return e.Removed != "" })}, nil
}

// find turns a name into a checkpoint: a number, the begin of an ID (of four digits or
// more; a number goes first), last, before:TASK, after:TASK or failed:TASK, where TASK is an ID
// or the end of one. Of a task with others beneath it that is before the first of them and
// after the last; failed is as a task left the files that were set back then. What is no
// number or ID is looked for on the session's line.
func (c *chain) find(name string) (*checkpoint.Entry, error) {
	if when, task, ok := strings.Cut(name, ":"); ok {
		switch when {
		case "before", "after":
		case "failed":
			return orMissing(c.onLine(func(e *checkpoint.Entry) bool { return e.SetBack() && strings.HasSuffix("/"+e.Task, "/"+task) }), name)
		default:
			return nil, usagef("%q names no checkpoint: give a number, an ID, last, before:TASK, after:TASK or failed:TASK", name)
		}
		return orMissing(c.ofTask(checkpoint.Reason(when+"-task"), task), name)
	}
	if name == "last" {
		return orMissing(c.onLine(func(*checkpoint.Entry) bool { return true }), name)
	}
	if number, err := strconv.ParseUint(name, 10, 64); err == nil {
		for _, e := range c.all {
			if e.Number == number {
				return e, nil
			}
		}
	}
	var found *checkpoint.Entry
	for _, e := range c.all {
		if len(name) < minHex || !strings.HasPrefix(e.ID.String(), name) {
			continue
		}
		if found != nil {
			return nil, usagef("%q is the begin of several checkpoints' IDs: give more of it, or a number", name)
		}
		found = e
	}
	return orMissing(found, name)
}

func orMissing(e *checkpoint.Entry, name string) (*checkpoint.Entry, error) {
	if e == nil {
		return nil, fmt.Errorf("%q: %w: lopen checkpoint list shows them", name, checkpoint.ErrNotFound)
	}
	return e, nil
}

// onLine is the newest checkpoint on the session's line that fn accepts, nil for none.
func (c *chain) onLine(fn func(*checkpoint.Entry) bool) *checkpoint.Entry {
	for _, e := range slices.Backward(c.all) {
		if c.line[e.Number] && fn(e) {
			return e
		}
	}
	return nil
}

func (c *chain) ofTask(why checkpoint.Reason, task string) *checkpoint.Entry {
	var beneath *checkpoint.Entry
	exact := c.onLine(func(e *checkpoint.Entry) bool {
		if e.Reason == why && strings.Contains("/"+e.Task, "/"+task+"/") && (beneath == nil || why == checkpoint.BeforeTask) {
			beneath = e
		}
		return e.Reason == why && strings.HasSuffix("/"+e.Task, "/"+task)
	})
	if exact != nil {
		return exact
	}
	return beneath
}

// setBack are the paths that were set back from the tree of a failed task.
func (c *chain) setBack(failed *checkpoint.Entry) (paths []string, err error) {
	for _, e := range c.all {
		if e.Reason != checkpoint.AfterRewind || e.Parent != failed.Number {
			continue
		}
		changes, err := checkpoint.Diff(c.Tree(e.Root), c.Tree(failed.Root))
		if err != nil {
			return nil, err
		}
		for _, ch := range changes {
			if ch.From != "" {
				paths = append(paths, ch.From)
			}
			if f := cmp.Or(ch.New, ch.Old); !f.Mode.IsDir() {
				paths = append(paths, ch.Path) // with a folder would come what others put into it since
			}
		}
	}
	return paths, nil
}

// numbered is a checkpoint as a message has it.
func numbered(e *checkpoint.Entry) string { return fmt.Sprintf("%d (%s)", e.Number, e.ID.Short()) }

// shortID is a checkpoint's ID as messages show it; what is none is as it is.
func shortID(text string) string {
	id, err := checkpoint.ParseID(text)
	if err != nil {
		return text
	}
	return id.Short()
}
