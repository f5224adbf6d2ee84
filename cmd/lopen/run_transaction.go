package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/sidecar"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A runTransaction is the transaction of a run; see [loop.Transaction].
type runTransaction struct {
	*transactions
	stderr io.Writer
	sess   *lifecycle.Session
	at     *sidecar.Transaction // the one in progress; nil before Begin
	origin string               // the committed one that it continues
}

// transactional has a run work in the transaction of its session, or in a new one: with
// --transaction, and where that of the session was committed. It refuses a session whose
// transaction was rolled back. The function that it returns is called after the run.
func (r *runCall) transactional(ctx context.Context, store *lifecycle.Store, sess *lifecycle.Session, cfg *loop.Config) (end func(), err error) {
	id := sess.State().Header().TransactionID
	if id == "" && !r.transaction {
		return func() {}, nil
	}
	all, err := r.transactions(store, 0)
	if err != nil {
		return nil, err
	}
	t := &runTransaction{transactions: all, stderr: r.stderr, sess: sess, origin: id}
	if err := r.continueTransaction(ctx, t); err != nil {
		return nil, errors.Join(err, all.Close())
	}
	if t.at != nil || t.origin != "" || r.transaction {
		cfg.Transaction = t
	}
	return func() {
		if t.at != nil {
			fmt.Fprintf(r.stderr, "transaction %s is in progress; end it: lopen transaction commit %s, or rollback\n", t.at.ID, plain.Quote(t.at.ID))
		}
		_ = all.Close()
	}, nil
}

// continueTransaction finds the transaction of a session that is resumed.
func (r *runCall) continueTransaction(ctx context.Context, t *runTransaction) error {
	if t.origin == "" {
		return nil
	}
	at, err := t.ofSession(t.origin, t.sess.ID().String())
	if errors.Is(err, lifecycle.ErrNotFound) {
		fmt.Fprintf(r.stderr, "warning: transaction %s of this session is not known here, as after an import: its side-car stays where it was begun, and the run is in none; --transaction begins one\n", plain.Line(t.origin))
		t.origin = ""
		return nil
	}
	if err != nil {
		return err
	}
	switch st := t.Status(ctx, at, t.chain()); st.State {
	case sidecar.RolledBack:
		return rolledBack(at)
	case sidecar.InProgress:
		if st.Gone {
			return branchGone(st)
		}
		t.at, t.origin = at, ""
	}
	return nil
}

// rolledBack is why a session is not resumed, and what to do instead.
func rolledBack(t *sidecar.Transaction) error {
	module := moduleOf(t.Session)
	why := fmt.Sprintf("transaction %s of session %s was rolled back\n", t.ID, t.Session)
	if t.Before > 0 {
		why += fmt.Sprintf("  take that back and go on: lopen undo --session %s\n", plain.Quote(t.Session))
	}
	return &loop.Exit{Code: loop.ExitUser, Reason: why + "  start a new session:      lopen run " + module + " --no-resume --transaction -- CMD"}
}

// branchGone is why a session is not resumed whose transaction has lost its branch, and what to do.
func branchGone(st sidecar.Status) error {
	return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf(`the branch %s of transaction %s is not in the side-car any more: nothing can be added to it
  make it again from the checkpoints and commit it: lopen transaction commit %[3]s --remake
  or take back what it changed:                     lopen transaction rollback %[3]s
  or leave both as they are, in a new session:      lopen run %[4]s --no-resume -- CMD`, st.Branch, st.ID, plain.Quote(st.ID), plain.Quote(moduleOf(st.Session)))}
}

// firstOf is the first few paths, and how many more there are.
func firstOf(paths []string) string {
	const few = 3
	text := ""
	for i, p := range paths[:min(few, len(paths))] {
		if i > 0 {
			text += ", "
		}
		text += shown(p)
	}
	if n := len(paths) - few; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// warnLeft names what git refused.
func (t *transactions) warnLeft(w io.Writer) {
	if left := t.Left(); len(left) > 0 {
		fmt.Fprintf(w, "warning: the side-car does not hold what git takes for .git, the checkpoints do: %s\n", firstOf(left))
	}
}

func (t *runTransaction) InProgress() bool { return t.at != nil }

// Begin pins the checkpoint first: the transaction cannot be rolled back without it.
func (t *runTransaction) Begin(ctx context.Context, at *checkpoint.Entry) (string, error) {
	if err := sidecar.HasGit(ctx); err != nil {
		return "", err
	}
	if err := t.sess.PinCheckpoint(ctx, at.ID, true); err != nil {
		return "", err
	}
	src, done, err := t.source(t.sess)
	if err != nil {
		return "", err
	}
	defer done()
	begun, err := t.Store.Begin(ctx, src, at, t.origin)
	if err != nil {
		return "", errors.Join(fmt.Errorf("begin a transaction: %w", err), t.sess.PinCheckpoint(ctx, at.ID, false))
	}
	t.at = begun
	t.Left() // is among the following
	if left, err := sidecar.LeftOut(src.Chain.Tree(at.Root)); err == nil && len(left) > 0 {
		fmt.Fprintf(t.stderr, "the side-car does not hold empty folders, names like .git and what a checkpoint cannot record: %s\n", firstOf(left))
	}
	return begun.ID, nil
}

func (t *runTransaction) Record(ctx context.Context) error {
	if t.at == nil {
		return nil
	}
	src, done, err := t.source(t.sess)
	if err != nil {
		return err
	}
	defer done()
	err = t.Store.Record(ctx, t.at, src)
	t.warnLeft(t.stderr)
	return err
}
