package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

// minHex is how many digits of an ID name a checkpoint at least.
const minHex = 4

// checkpointHelp explains CP, the same for every command that takes one.
const checkpointHelp = "CP is a number, the begin of an ID, last, before:TASK, after:TASK or failed:TASK; prompt:N is\nbefore the Nth prompt of an agent's own session.\n" + taskHelp

// find turns a name into a checkpoint: a number, the begin of an ID (of four digits or
// more; a number goes first), last, before:TASK, after:TASK or failed:TASK. TASK is looked for in
// the plan and among the tasks of the session's line. Of a task with others beneath it that is
// before the first of them and after the last; failed is as a task left the files that were set
// back then. What is no number or ID is looked for on the session's line. The error says if a
// checkpoint was made and is not there any more.
func (c *chain) find(name string) (*checkpoint.Entry, error) {
	e, err := c.match(name)
	if !missing(err) {
		return e, err
	}
	lost := c.lost()
	if name != "last" || len(lost) == 0 {
		if e, err := c.match(name); err == nil {
			return e, nil
		}
		if err := c.removedError(name); err != nil {
			return nil, err
		}
	}
	if err := c.lostError(name, lost); err != nil {
		return nil, err
	}
	return nil, err
}

// match is find among the checkpoints that the chain has.
func (c *chain) match(name string) (*checkpoint.Entry, error) {
	if task := turns.Named(name); task != name {
		return c.ofPrompt(task, name)
	}
	if when, task, ok := strings.Cut(name, ":"); ok {
		if !slices.Contains([]string{"before", "after", "failed"}, when) {
			return nil, usagef("%q names no checkpoint: give a number, an ID, last, prompt:N, before:TASK, after:TASK or failed:TASK", name)
		}
		task, err := findKnownTask(c.plan, task, c.tasks)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		name = when + ":" + task
		if when == "failed" {
			return orMissing(c.onLine(func(e *checkpoint.Entry) bool { return e.SetBack() && e.Task == task }), name)
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
	for _, e := range slices.Concat(c.all, c.others) {
		if !begins(e.ID, name) {
			continue
		}
		if found != nil {
			return nil, usagef("%q is the begin of several checkpoints' IDs: give more of it, or a number", name)
		}
		found = e
	}
	return orMissing(found, name)
}

// begins reports whether a name is the begin of an ID.
func begins(id checkpoint.ID, name string) bool {
	return len(name) >= minHex && strings.HasPrefix(id.String(), name)
}

// ofPrompt is the checkpoint before a prompt of an agent's own session.
func (c *chain) ofPrompt(task, name string) (*checkpoint.Entry, error) {
	if e := c.ofTask(checkpoint.BeforeTask, task); e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("%q: %w: lopen session show numbers the prompts; --session ID is for another session", name, checkpoint.ErrNotFound)
}

func orMissing(e *checkpoint.Entry, name string) (*checkpoint.Entry, error) {
	if e == nil {
		return nil, fmt.Errorf("%q: %w: lopen checkpoint list shows them", name, checkpoint.ErrNotFound)
	}
	return e, nil
}

// onLine is the newest checkpoint on the session's line that fn accepts, nil for none.
func (c *chain) onLine(fn func(*checkpoint.Entry) bool) *checkpoint.Entry {
	for _, e := range slices.Backward(slices.Concat(c.others, c.all)) {
		if (c.line == nil || c.line[e.ID]) && fn(e) {
			return e
		}
	}
	return nil
}

// tasks yields the tasks on the session's line and what they are beneath.
func (c *chain) tasks(yield func(id string) bool) {
	for _, e := range slices.Concat(c.others, c.all) {
		for id := e.Task; c.line[e.ID] && id != ""; id = id[:max(strings.LastIndexByte(id, '/'), 0)] {
			if !yield(id) {
				return
			}
		}
	}
}

func (c *chain) ofTask(why checkpoint.Reason, task string) *checkpoint.Entry {
	var beneath *checkpoint.Entry
	exact := c.onLine(func(e *checkpoint.Entry) bool {
		if e.Reason == why && strings.HasPrefix(e.Task, task+"/") && (beneath == nil || why == checkpoint.BeforeTask) {
			beneath = e
		}
		return e.Reason == why && e.Task == task
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
