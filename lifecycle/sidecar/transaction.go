package sidecar

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// A Source is a session and the checkpoints, which the commits are made from.
type Source struct {
	Session     session.ID
	Incarnation string
	Chain       *checkpoint.Store
	// Log calls fn with each record of the session above a number, in order.
	Log func(id session.ID, above uint64, fn func(record.Record) error) error
	// Name returns what a message says of a task.
	Name func(task string) string
}

// squashed begins the message of a transaction's commit on main.
const squashed = "Commit transaction "

// Begin begins a transaction of a session at a checkpoint. The branch begins at main, which
// first gets what was changed outside of transactions, unless another one is in progress.
// origin is the committed transaction that this one continues. When Begin returns nil, branch
// and manifest are durable.
func (s *Store) Begin(ctx context.Context, src Source, begin *checkpoint.Entry, origin string) (*Transaction, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := s.make(); err != nil {
		return nil, err
	}
	t := &Transaction{Session: src.Session.String(), Incarnation: src.Incarnation, Begun: s.opts.Now().UTC(), Begin: begin.ID, Seq: begin.Seq, Origin: origin, State: InProgress}
	if t.ID, err = s.newID(t.Session); err != nil {
		return nil, err
	}
	if err := s.base(ctx, src, t, begin); err != nil {
		return nil, err
	}
	if err := s.setRef(refOf(t.ID), t.Base); err != nil {
		return nil, err
	}
	return t, s.save(t)
}

// base makes the commit that a branch begins at.
func (s *Store) base(ctx context.Context, src Source, t *Transaction, begin *checkpoint.Entry) error {
	d := draft{entry: begin, at: begin.At, message: t.message("Files before transaction "+t.ID, nil, begin, begin.Seq)}
	tip, err := s.ref(mainRef)
	if err == nil && tip != "" {
		d.parent, err = s.commit(ctx, tip)
	}
	if err != nil {
		return err
	}
	if d.parent != nil && d.parent.root == begin.Root {
		t.Base = tip
		return nil
	}
	if t.Base, err = s.write(ctx, src.Chain, d); err != nil {
		return err
	}
	chain, _, err := src.Chain.List()
	if err != nil {
		return err
	}
	others, err := s.others(ctx, chain)
	if err != nil || others && tip != "" {
		return err
	}
	return s.setRef(mainRef, t.Base)
}

// Record writes the checkpoints of the tasks that were completed since the last time to the
// branch, each as a commit, and those after rewinds. It may be called at any time: what an
// earlier call could not write is in the session's log.
func (s *Store) Record(ctx context.Context, t *Transaction, src Source) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.record(ctx, t, src)
}

// record is Record under the lock.
func (s *Store) record(ctx context.Context, t *Transaction, src Source) error {
	tip, err := s.tip(t)
	var on []Commit // the branch's, and the one that it begins at
	if err == nil {
		on, err = s.commits(ctx, tip, t.Base+"^@")
	}
	if err == nil {
		err = s.unlocked(refOf(t.ID))
	}
	if err != nil {
		return err
	}
	above, last := t.Seq, t.Begin
	if i := slices.IndexFunc(on, func(c Commit) bool { return c.Transaction == t.ID && c.Record > 0 }); i >= 0 {
		above, last = on[i].Record, on[i].Checkpoint // a person may have committed since
	}
	all, err := t.steps(src, above, last)
	if err != nil {
		return fmt.Errorf("read the log of session %s: %w", src.Session, err)
	}
	parent := &on[0]
	for _, step := range all {
		id, err := s.write(ctx, src.Chain, draft{parent: parent, entry: step.entry, at: step.entry.At, message: t.message(step.subject, nil, step.entry, step.seq)})
		if err == nil {
			err = s.setRef(refOf(t.ID), id)
		}
		if err != nil {
			return err
		}
		parent = &Commit{ID: id, root: step.entry.Root}
	}
	return nil
}

// A step is a checkpoint that becomes a commit.
type step struct {
	entry   *checkpoint.Entry
	subject string
	seq     uint64
}

// steps returns the checkpoints after completed tasks and after rewinds, from the session's log.
// A checkpoint that was removed meanwhile is left out: the next one has its changes too.
func (t *Transaction) steps(src Source, above uint64, last checkpoint.ID) (all []step, err error) {
	written := last
	add := func(seq uint64, subject string) error {
		e, err := src.Chain.Find(last)
		if last == written || errors.Is(err, checkpoint.ErrNotFound) {
			return nil
		}
		written, all = last, append(all, step{e, subject, seq})
		return err
	}
	err = src.Log(src.Session, above, func(r record.Record) error {
		if id, err := checkpoint.ParseID(r.Checkpoint); err == nil {
			last = id
		}
		if r.Rewind != nil {
			if id, err := checkpoint.ParseID(r.Rewind.After); err == nil {
				last = id
				return add(r.Seq, "Rewind to checkpoint "+r.Rewind.To[:min(len(r.Rewind.To), 8)])
			}
		}
		if task := completed(r); task != "" {
			return add(r.Seq, src.Name(task))
		}
		return nil
	})
	return all, err
}

// completed returns a task that a record completes, or "".
func completed(r record.Record) string {
	for _, a := range r.Attempts {
		if a.Then == record.Done {
			return a.Task
		}
	}
	for _, op := range r.Ops {
		if op.Name == record.OpTaskStatusChanged && op.To == string(session.TaskComplete) {
			return op.Task
		}
	}
	return ""
}

// Remake makes what is missing of the side-car again from the checkpoints: the repository, main,
// and the branch of a transaction that is in progress.
func (s *Store) Remake(ctx context.Context, t *Transaction, src Source) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.make(); err != nil {
		return err
	}
	begin, err := src.Chain.Find(t.Begin)
	if err != nil {
		return fmt.Errorf("make transaction %s again: %w", t.ID, err)
	}
	if _, err := s.commit(ctx, t.Base); err != nil {
		if err = s.base(ctx, src, t, begin); err == nil {
			err = s.save(t)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range []string{mainRef, refOf(t.ID)} {
		oid, err := s.ref(name)
		if err == nil && oid == "" {
			err = s.setRef(name, t.Base)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RolledBack notes that the session was rewound to the begin. before is the checkpoint that the
// rewind made first, by number; 0 if it had nothing to change.
func (s *Store) RolledBack(ctx context.Context, t *Transaction, before uint64) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	ended := *t
	ended.State, ended.Ended, ended.Before = RolledBack, s.opts.Now().UTC(), before
	return s.save(&ended)
}
