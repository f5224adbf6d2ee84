package main

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A goneError says that a checkpoint was made and is not there. It wraps
// [checkpoint.ErrNotFound] if the checkpoint was removed, and [lifecycle.ErrCorrupt] if its data
// is lost.
type goneError struct {
	text string
	kind error
}

func (e *goneError) Error() string { return e.text }

func (e *goneError) Unwrap() error { return e.kind }

const (
	// roomHint says why checkpoints are removed for room, and how to keep them.
	roomHint = "the setting checkpoint_bytes is how many bytes they may take, at most a tenth of the free space; lopen checkpoint pin keeps one"
	// doctorHint says where to look after data was lost.
	doctorHint = "lopen doctor says what is wrong"
)

// missing reports whether an error means that a name stands for no checkpoint.
func missing(err error) bool {
	return errors.Is(err, checkpoint.ErrNotFound) || errors.Is(err, plan.ErrUnknownTask)
}

// removedError says that the checkpoint of a name was removed, and why. It returns nil if none was.
func (c *chain) removedError(name string) error {
	removed := *c
	removed.all, removed.others = c.removed, c.othersRemoved
	e, err := removed.match(name)
	if err != nil {
		return nil
	}
	text := fmt.Sprintf("%q: checkpoint %s was removed: %s", name, numbered(e), plain.Line(e.Removed))
	if e.Thinned() {
		text += ": " + roomHint
	}
	return &goneError{text, checkpoint.ErrNotFound}
}

// lostError says that the checkpoint of a name is lost. It returns nil if none is. lost is what
// [chain.lost] returned.
func (c *chain) lostError(name string, lost []madeCheckpoint) error {
	if first := c.oldest(); first != nil && first.Number > 1 {
		older := func(m madeCheckpoint) bool { return m.at.Before(first.At) }
		if c.olderThan(first, name, lost, older) {
			return &goneError{fmt.Sprintf("%q: the chain begins with checkpoint %s: those before it were removed, or are lost: %s", name, numbered(first), roomHint), checkpoint.ErrNotFound}
		}
		lost = slices.DeleteFunc(lost, older)
	}
	if n := len(c.meant(name, lost)); n > 0 {
		return &goneError{fmt.Sprintf("%q: the data of %s that the session's log names is gone or damaged: %s", name, plain.Some(n, "checkpoint"), doctorHint), lifecycle.ErrCorrupt}
	}
	return nil
}

// olderThan reports whether a name stands for a checkpoint that was made before the oldest one of
// the chain. The chain drops the lines of those that were removed.
func (c *chain) olderThan(first *checkpoint.Entry, name string, lost []madeCheckpoint, older func(madeCheckpoint) bool) bool {
	if number, err := strconv.ParseUint(name, 10, 64); err == nil {
		return number > 0 && number < first.Number
	}
	return slices.ContainsFunc(c.meant(name, lost), older)
}

// oldest returns the oldest checkpoint that the chain of the work tree has, removed or not, or nil.
func (c *chain) oldest() (first *checkpoint.Entry) {
	for _, e := range slices.Concat(c.all, c.removed) {
		if first == nil || e.Number < first.Number {
			first = e
		}
	}
	return first
}

// A madeCheckpoint is what a session's log has of a checkpoint.
type madeCheckpoint struct {
	id   checkpoint.ID
	task string    // "" if it was made for none
	at   time.Time // of the record
	line bool      // the session's line goes through it
}

// A sessionLog calls a function with the records of a session, the oldest first.
type sessionLog func(fn func(record.Record) error) error

// made returns what the log has of checkpoints, the oldest first, as far as the log can be read.
func (log sessionLog) made() (all []madeCheckpoint) {
	if log == nil {
		return nil
	}
	_ = log(func(r record.Record) error {
		add := func(text, task string, line bool) {
			if id, err := checkpoint.ParseID(text); err == nil {
				all = append(all, madeCheckpoint{id, task, r.At, line})
			}
		}
		for _, op := range r.Ops {
			if op.Name == record.OpCheckpointMade {
				add(op.To, op.Task, true)
			}
		}
		if r.Rewind != nil {
			add(r.Rewind.Before, r.Rewind.Task, r.Rewind.After != "")
			add(r.Rewind.After, r.Rewind.Task, true)
		}
		return nil
	})
	return all
}

// allGone returns a better error if the checkpoints of the project cannot be opened: whether the
// session made some.
func (log sessionLog) allGone(err error) error {
	if !errors.Is(err, lifecycle.ErrNotFound) {
		return err
	}
	if n := len(log.made()); n > 0 {
		return &goneError{fmt.Sprintf("the data of %s that the session's log names is gone, .lopen/checkpoints or .lopen/blobs: %s", plain.Some(n, "checkpoint"), doctorHint), lifecycle.ErrCorrupt}
	}
	return err
}

// lost returns the checkpoints that the session's log names and no chain has, each once. It adds
// the others to the session's line: from a chain alone the line is not known once the newest
// checkpoint is lost. Of a session that cannot be read the line stays unknown.
func (c *chain) lost() (lost []madeCheckpoint) {
	seen, line := map[checkpoint.ID]bool{}, map[checkpoint.ID]bool{}
	for _, e := range slices.Concat(c.all, c.others, c.removed, c.othersRemoved) {
		seen[e.ID], line[e.ID] = true, c.line[e.ID]
	}
	for _, m := range c.log.made() {
		line[m.id] = line[m.id] || m.line
		if !seen[m.id] {
			seen[m.id] = true
			lost = append(lost, m)
		}
	}
	if c.line != nil {
		c.line = line
	}
	return lost
}

// meant returns those of the lost checkpoints for which a name may stand. A log has no numbers:
// any of them may have had a number.
func (c *chain) meant(name string, lost []madeCheckpoint) []madeCheckpoint {
	_, err := strconv.ParseUint(name, 10, 64)
	if name == "last" || err == nil {
		return lost
	}
	task := turns.Named(name)
	if _, text, ok := strings.Cut(task, ":"); ok {
		if task, err = findKnownTask(c.plan, text, tasksOf(lost)); err != nil {
			return nil
		}
	}
	return slices.DeleteFunc(slices.Clone(lost), func(m madeCheckpoint) bool {
		if task != name {
			return m.task != task && !strings.HasPrefix(m.task, task+"/")
		}
		return !begins(m.id, name)
	})
}

// tasksOf yields the tasks of checkpoints.
func tasksOf(all []madeCheckpoint) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, m := range all {
			if !yield(m.task) {
				return
			}
		}
	}
}

// damagedData adds to an error that the data of a checkpoint is gone or damaged, if that is so.
func damagedData(err error) error {
	var gone *goneError
	var session *lifecycle.DamagedError
	if !errors.Is(err, lifecycle.ErrCorrupt) || errors.As(err, &gone) || errors.As(err, &session) {
		return err
	}
	return &goneError{fmt.Sprintf("%v: the data of a checkpoint is gone or damaged: %s", err, doctorHint), err}
}
