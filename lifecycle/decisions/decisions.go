package decisions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// The files in a module's folder.
const (
	planFile = "plan.md"
	lockFile = ".plan.lock"
	noteFile = "decisions.json"
)

// format is that of the note. A decision about all tasks of a plan names each of them.
var format = envelope.Format{Key: "schemaVersion", Version: 1, Max: 16 << 20, File: true}

// note is the content of the note: the decisions that no session has yet, by Seq.
type note struct {
	Decisions []tasks.Decision `json:"decisions"`
}

// ErrTooMany says that the note has no room for one more decision.
var ErrTooMany = errors.New("too many decisions wait for the run: pause it, and start it again")

// Edit changes the plan in a module's folder, durably; see plan.Apply.
func Edit(dir writer.FS, owner writer.Owner, base *plan.Plan, change plan.Change) (p *plan.Plan, err error) {
	unlock, err := lock(dir, owner)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return plan.Apply(dir, planFile, base, change)
}

// Alone calls fn while nothing else changes the plan, or what belongs to it.
func Alone(dir writer.FS, owner writer.Owner, fn func() error) error {
	unlock, err := lock(dir, owner)
	if err != nil {
		return err
	}
	defer unlock()
	return fn()
}

// A Change is what a person's command does: how it changes the plan that it finds, and which
// states it decides on, by task, given the plan before and after.
type Change interface {
	Edit(p *plan.Plan) (plan.Change, error)
	Decide(before, after *plan.Plan) map[string]session.TaskState
}

// Decide carries a person's command out, durably: it notes what the command decides, and then
// changes the plan. After an error neither counts, unless the error says so. now is the clock.
func Decide(dir writer.FS, owner writer.Owner, now func() time.Time, c Change) (before, after *plan.Plan, err error) {
	unlock, err := lock(dir, owner)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if before, err = plan.Load(dir, planFile, nil); err != nil {
		return nil, nil, err
	}
	change, err := c.Edit(before)
	if err != nil {
		return nil, nil, err
	}
	if after, err = change(before, before); err != nil {
		return nil, nil, err
	}
	all, err := Read(dir)
	if err != nil {
		return nil, nil, err
	}
	with := add(all, now(), c.Decide(before, after)) // the time while the lock is held: so the numbers grow
	if len(with) > len(all) {
		err = write(dir, with)
	}
	wrote := err == nil
	if wrote {
		after, err = plan.Apply(dir, planFile, before, change)
	}
	if err == nil {
		return before, after, nil
	}
	var failed *writer.Error
	if wrote && errors.As(err, &failed) && failed.Outcome != writer.NotCommitted {
		return nil, nil, fmt.Errorf("%w; the plan may have it, and then it counts", err)
	}
	if undo := keep(dir, func(d tasks.Decision) bool { return len(all) > 0 && d.Seq <= all[len(all)-1].Seq }); undo != nil {
		err = fmt.Errorf("%w; the decision stays noted, and counts: %w", err, undo)
	}
	return nil, nil, err
}

// lock takes the plan's lock. Its holders have it for a moment.
func lock(dir writer.FS, owner writer.Owner) (unlock func(), err error) {
	l, err := writer.LockWait(context.Background(), dir, lockFile, owner)
	if err != nil {
		return nil, fmt.Errorf("lock plan: %w", err)
	}
	_ = writer.RemoveTemps(dir, ".", func(of string) bool { return of == planFile || of == noteFile }) // of a crash
	return func() { _ = l.Unlock() }, nil
}

// add returns all decisions with those of one more command.
func add(all []tasks.Decision, now time.Time, want map[string]session.TaskState) []tasks.Decision {
	// The time makes the numbers grow even if the file was removed.
	seq := uint64(max(now.UnixNano(), 0))
	if len(all) > 0 {
		seq = max(seq, all[len(all)-1].Seq)
	}
	byState := map[session.TaskState][]string{}
	for id, state := range want {
		byState[state] = append(byState[state], id)
	}
	all = slices.Clip(all)
	for _, state := range decidable {
		if ids := byState[state]; len(ids) > 0 {
			slices.Sort(ids)
			seq++
			all = append(all, tasks.Decision{Seq: seq, At: now.UTC().Round(0), State: state, Tasks: ids})
		}
	}
	return all
}

// decidable are the states that a person can decide on.
var decidable = []session.TaskState{session.TaskComplete, session.TaskPending, session.TaskSkipped, session.TaskFailed}

// Read returns the decisions that were noted, by Seq, and nil if there are none.
func Read(dir writer.FS) ([]tasks.Decision, error) {
	data, err := writer.ReadFile(dir, noteFile, int64(format.Max))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		if info, lerr := dir.Lstat(noteFile); lerr == nil && info.Mode().IsRegular() && info.Size() > int64(format.Max) {
			err = fmt.Errorf("%w; %s", err, wayOut)
		}
		return nil, fmt.Errorf("read decisions: %w", err)
	}
	var n note
	if err = format.Decode(data, &n); err == nil {
		err = valid(n.Decisions)
	}
	if err == nil {
		return n.Decisions, nil
	}
	class := writer.ClassFutureVersion
	if !errors.Is(err, envelope.ErrFutureVersion) {
		class, err = writer.ClassCorrupt, fmt.Errorf("%w; %s", err, wayOut)
	}
	return nil, &writer.Error{Op: "read decisions", Path: filepath.Join(dir.Name(), noteFile), Class: class, Err: err}
}

// wayOut is what to do about a note that cannot be used.
const wayOut = "move it away, and decide again what no run has taken"

func valid(all []tasks.Decision) error {
	last := uint64(0)
	for i := range all {
		d := &all[i]
		if d.Seq <= last || !slices.Contains(decidable, d.State) || len(d.Tasks) == 0 {
			return fmt.Errorf("decision %d: %w", i+1, envelope.ErrCorrupt)
		}
		last = d.Seq
	}
	return nil
}

// Forget removes decisions that were read, and that the State of a session has durably. It
// keeps those about the tasks that are named.
func Forget(dir writer.FS, owner writer.Owner, taken []tasks.Decision, but []string) error {
	unlock, err := lock(dir, owner)
	if err != nil {
		return err
	}
	defer unlock()
	return keep(dir, func(d tasks.Decision) bool {
		return !Among(taken, d) || slices.ContainsFunc(d.Tasks, func(id string) bool { return slices.Contains(but, id) })
	})
}

// Among reports whether a decision is one of those that were read before.
func Among(all []tasks.Decision, d tasks.Decision) bool {
	return slices.ContainsFunc(all, func(each tasks.Decision) bool { return each.Seq == d.Seq })
}

// keep removes the decisions for which fn returns false. The caller holds the lock.
func keep(dir writer.FS, fn func(tasks.Decision) bool) error {
	all, err := Read(dir)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(d tasks.Decision) bool { return !fn(d) })
	if len(left) == len(all) {
		return nil
	}
	return write(dir, left)
}

// write replaces the note. There is no note without decisions: on a full disk as well, what is
// done can be forgotten.
func write(dir writer.FS, all []tasks.Decision) error {
	if len(all) == 0 {
		err := dir.Remove(noteFile)
		if err == nil {
			err = dir.SyncDir(".")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget decisions: %w", writer.NewError("remove", filepath.Join(dir.Name(), noteFile), writer.NotCommitted, err))
		}
		return nil
	}
	data, err := format.Encode(note{all})
	if err != nil {
		return fmt.Errorf("note decision: %w: %w", ErrTooMany, err)
	}
	if err := writer.ReplaceFile(dir, noteFile, data, 0o600); err != nil {
		return fmt.Errorf("note decision: %w", err)
	}
	return nil
}
