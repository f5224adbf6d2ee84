package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/sidecar"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newTransaction(a *app) *cobra.Command {
	return group("transaction", "Show, commit or roll back what a run did to the files",
		newTransactionStatus(a), newTransactionLog(a), newTransactionCommit(a), newTransactionRollback(a))
}

// transactions are those of a project.
type transactions struct {
	*sidecar.Store
	store *lifecycle.Store
}

// transactions opens the project's transactions. A start of git may take patience; 0 means long.
func (a *app) transactions(store *lifecycle.Store, patience time.Duration) (*transactions, error) {
	scratch := func() (string, func(), error) {
		dir, err := git.Scratch(a.getenv)
		if err != nil {
			return "", nil, err
		}
		return dir.Path(), dir.Close, nil
	}
	s, err := sidecar.Open(store.Path(), sidecar.Options{Scratch: scratch, Git: git.Program(a.environ), Patience: patience, Alive: func(name string) bool {
		id, err := store.Resolve(name)
		return err == nil && id.String() == name
	}})
	if err != nil {
		return nil, err
	}
	return &transactions{Store: s, store: store}, nil
}

// chain are all entries of the checkpoints, as far as they can be read. Those of one session are
// in the order in which they were made.
func (t *transactions) chain() []*checkpoint.Entry {
	cps, err := t.store.Checkpoints(nil)
	if err != nil {
		return nil
	}
	defer cps.Close()
	all, _, _ := cps.List() // without it a rollback counts as not undone
	others, _ := cps.Others()
	for _, c := range others {
		if some, _, err := c.List(); err == nil && !c.Imported() {
			all = append(all, some...)
		}
	}
	return all
}

// source is what a session's commits are made from. The function that it returns closes it.
func (t *transactions) source(sess *lifecycle.Session) (sidecar.Source, func(), error) {
	cps, err := t.store.Checkpoints(sess.State().Header().Worktree)
	if err != nil {
		return sidecar.Source{}, nil, err
	}
	return sidecar.Source{Session: sess.ID(), Incarnation: sess.Incarnation(), Chain: cps.Store, Log: t.store.Log, Name: func(id string) string {
		task, _ := sess.State().Task(id)
		return sess.Redact(id + ": " + task.Name)
	}}, func() { _ = cps.Close() }, nil
}

// find finds a transaction by its ID, or by its session.
func (t *transactions) find(args []string) (*sidecar.Transaction, error) {
	if len(args) > 0 {
		if at, err := t.Find(args[0]); err == nil || !errors.Is(err, lifecycle.ErrNotFound) {
			return at, err
		}
	}
	id, err := resolveArg(t.store, args)
	if err != nil {
		return nil, err
	}
	st, _, err := t.store.Read(id)
	if err != nil {
		return nil, err
	}
	name := st.Header().TransactionID
	if name == "" {
		return nil, fmt.Errorf("session %s is in no transaction: %w; lopen run %s --transaction begins one", id, lifecycle.ErrNotFound, id.Module)
	}
	return t.ofSession(name, id.String())
}

// ofSession finds a transaction that a session names. An imported session names one of the
// project that it came from; here another session may have a transaction of that name.
func (t *transactions) ofSession(name, id string) (*sidecar.Transaction, error) {
	at, err := t.Find(name)
	if err == nil && at.Session != id {
		return nil, fmt.Errorf("transaction %s of session %s is not known here: %w; transaction %s of this project is that of session %s",
			plain.Line(name), id, lifecycle.ErrNotFound, plain.Line(name), plain.Line(at.Session))
	}
	return at, err
}

// readTransaction finds a transaction for a command that only reads.
func (a *app) readTransaction(args []string, fn func(*transactions, *sidecar.Transaction) error) error {
	return a.readStore(func(store *lifecycle.Store) error {
		all, err := a.transactions(store, 0)
		if err != nil {
			return err
		}
		defer all.Close()
		t, err := all.find(args)
		if err != nil {
			return err
		}
		return fn(all, t)
	})
}

// editTransaction opens the session of a transaction, and finds it again. The session has to
// be in that transaction.
func (a *app) editTransaction(ctx context.Context, t *sidecar.Transaction, force bool, fn func(*transactions, *sidecar.Transaction, *lifecycle.Session) error) error {
	return a.editSession(ctx, t.Session, force, func(store *lifecycle.Store, sess *lifecycle.Session) error {
		all, err := a.transactions(store, 0)
		if err != nil {
			return err
		}
		defer all.Close()
		if is := sess.State().Header().TransactionID; is != t.ID {
			return fmt.Errorf("session %s is in another transaction, %s: %w", sess.ID(), plain.Line(is), lifecycle.ErrNotFound)
		}
		again, err := all.Find(t.ID)
		if err != nil {
			return err
		}
		return fn(all, again, sess)
	})
}

// moduleOf is the module of a session.
func moduleOf(name string) string {
	id, err := session.ParseID(name)
	if err != nil {
		return "MODULE"
	}
	return id.Module
}

// sidecarPath is where the side-car lies.
func (t *transactions) sidecarPath() string { return filepath.Join(t.store.Path(), "sidecar.git") }
