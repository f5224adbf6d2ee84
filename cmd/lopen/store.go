package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/seen"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// readStore runs fn on the project's store, for a command that only reads.
func (a *app) readStore(fn func(store *lifecycle.Store) error) error {
	store, err := a.open()
	if err != nil {
		return err
	}
	defer release(store)
	return fn(store)
}

// open opens the project's store, which has to be there.
func (a *app) open() (*lifecycle.Store, error) {
	project, err := a.project()
	if err != nil {
		return nil, err
	}
	return lifecycle.Open(project, a.storeOptions(project))
}

func (a *app) storeOptions(project string) lifecycle.Options {
	trees := a.trees()
	return lifecycle.Options{
		Logger: a.logger, Command: a.invoked, Memory: a.memory(project),
		Outside:    func(ctx context.Context, folder string) []files.IgnoreFile { return trees(folder).Outside(ctx) },
		Repository: func(ctx context.Context, folder, path string) string { return trees(folder).Repository(ctx, path) },
		Git: func(ctx context.Context, folder string) checkpoint.Git {
			s := git.Head(ctx, folder, a.environ)
			return checkpoint.Git{Head: s.Head, Branch: s.Branch}
		},
		Worktree: func(folder string) error { return worktreeOf(project, folder) },
	}
}

// memory returns what the user's own state has of the snapshots in a project. Without it nothing that
// was remembered is believed.
func (a *app) memory(project string) files.Memory {
	state, err := trust.DefaultDir(a.getenv)
	if err == nil {
		project, err = filepath.EvalSymlinks(project)
	}
	if err != nil {
		a.logger.Info().Err(err).Msg("every file is read, because what was remembered of them cannot be verified")
		return nil
	}
	return seen.Of(state, project, a.logger)
}

// trees returns the function that returns what git says of a folder. Git is asked once for each folder
// where the person's own ignore file is.
func (a *app) trees() func(folder string) *git.Tree {
	var all sync.Map // of a *git.Tree for each folder
	return func(folder string) *git.Tree {
		of, known := all.Load(folder)
		if !known {
			of, _ = all.LoadOrStore(folder, git.Of(folder, a.environ, a.logger))
		}
		return of.(*git.Tree)
	}
}

// initStore runs fn on the project's store, which is made where there is none.
func (a *app) initStore(fn func(project string, store *lifecycle.Store) error) error {
	return a.changeStore(lifecycle.Policy{}, a.create, fn)
}

// changeStore runs fn on the project's store as open opens it.
func (a *app) changeStore(policy lifecycle.Policy, open func(string, lifecycle.Options) (*lifecycle.Store, error), fn func(project string, store *lifecycle.Store) error) (err error) {
	project, err := a.project()
	if err != nil {
		return err
	}
	opts := a.storeOptions(project)
	opts.Policy = policy
	store, err := open(project, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	return fn(project, store)
}

// create makes the project's store, where there is none, and says where.
func (a *app) create(project string, opts lifecycle.Options) (*lifecycle.Store, error) {
	store, made, err := lifecycle.Init(project, opts)
	if err != nil {
		return nil, err
	}
	if made {
		fmt.Fprintf(a.stderr, "created %s\n", store.Path())
	}
	return store, nil
}

// closeTimeout bounds what the end of a command waits for the disk.
const closeTimeout = 10 * time.Second

// closeStore closes a store or a session within closeTimeout.
func closeStore(store interface {
	Close(ctx context.Context) error
}) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return store.Close(ctx)
}

// release closes the store of a command that only read.
func release(store *lifecycle.Store) { _ = closeStore(store) }

// editStore runs fn on the project's store, for a command that changes what is stored about
// sessions but no State.
func (a *app) editStore(fn func(store *lifecycle.Store) error) error {
	return a.editStoreWith(lifecycle.Policy{}, fn)
}

// editNamed is editStore with the session that is named, or the newest one.
func (a *app) editNamed(args []string, fn func(store *lifecycle.Store, id session.ID) error) error {
	return a.editStore(func(store *lifecycle.Store) error {
		id, err := resolveArg(store, args)
		if err != nil {
			return err
		}
		return fn(store, id)
	})
}

// editStoreWith is editStore with a policy.
func (a *app) editStoreWith(policy lifecycle.Policy, fn func(store *lifecycle.Store) error) error {
	return a.changeStore(policy, lifecycle.Open, func(_ string, store *lifecycle.Store) error { return fn(store) })
}

// hookGrace is how long a command waits for a hook of lopen. At the end of a turn the agent waits for
// it no more, and what was said is still taken over.
const hookGrace = 5 * time.Second

// afterHook calls fn, and calls it again while a hook of lopen has the session. It waits for no other
// holder: a run, or the turn of an agent, may take hours.
func afterHook(ctx context.Context, fn func() error) error {
	grace, cancel := context.WithTimeout(ctx, hookGrace)
	defer cancel()
	tick := time.NewTicker(pollHeld)
	defer tick.Stop()
	for {
		err := fn()
		var busy *lifecycle.BusyError
		if !errors.As(err, &busy) || !ofHook(busy.Owner) {
			return err
		}
		select {
		case <-tick.C:
		case <-grace.Done():
			return cmp.Or(context.Cause(ctx), err)
		}
	}
}

// ofHook reports whether a session is held by a hook of lopen itself, and not for an agent.
func ofHook(o lifecycle.Owner) bool { return strings.HasPrefix(o.Command, "lopen hook ") }
