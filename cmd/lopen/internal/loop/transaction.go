package loop

import (
	"context"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Transaction is the transaction that a run works in.
type Transaction interface {
	// InProgress reports whether an earlier run began it.
	InProgress() bool
	// Begin begins it at a checkpoint and returns its ID. When it returns nil, the transaction
	// is durable.
	Begin(ctx context.Context, at *checkpoint.Entry) (id string, err error)
	// Record writes the checkpoints of the tasks that were completed since it last succeeded.
	Record(ctx context.Context) error
}

// beginTransaction begins the run's transaction, or continues the one that an earlier run began.
func (r *runner) beginTransaction(ctx context.Context) error {
	t := r.cfg.Transaction
	if t == nil {
		return nil
	}
	if t.InProgress() {
		r.recordTransaction(ctx)
		return nil
	}
	var begin *checkpoint.Entry
	look := func(ctx context.Context) (err error) {
		if err = r.unpauseIfPaused(ctx); err == nil {
			var changes []files.Change
			begin, changes, err = r.sess.Checkpoint(ctx, checkpoint.Manual, "")
			r.since = append(r.since, changes...)
		}
		return err
	}
	err := look(ctx)
	if err != nil && ctx.Err() == nil && holdsFiles(lifecycle.ClassOf(err)) {
		err = r.waitStorage(ctx, err, look)
	}
	if err != nil {
		return err
	}
	id, err := t.Begin(ctx, begin)
	if err != nil {
		return err
	}
	if err := r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().TransactionID = id
		return nil
	}); err != nil {
		return err
	}
	r.cfg.UI.Say("transaction %s begins", id)
	r.log.Info().Str("transaction", id).Stringer("checkpoint", begin.ID).Msg("transaction begins")
	return r.sync(ctx)
}

// recordTransaction writes completed tasks to the transaction. What it writes is durable
// elsewhere, and the next time writes what this one did not: so an error is a warning.
func (r *runner) recordTransaction(ctx context.Context) {
	if r.cfg.Transaction == nil {
		return
	}
	err := r.cfg.Transaction.Record(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	r.warnOnce("transaction: "+err.Error(), "the transaction lacks what was just done, the run goes on, and the next task or lopen transaction commit adds it: "+err.Error())
}
