package noop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
)

// before is the counter before the first one: no store on a disk gets there.
const before = 1_000_000_000

// A Store makes sessions and keeps none.
type Store struct {
	project writer.FS // Immutable after Open.
	opts    lifecycle.Options
	sup     actors.Supervisor

	mu    sync.Mutex
	given uint64                // how many IDs. Guarded by mu.
	plans map[string]*plan.Plan // by module. Guarded by mu.
}

var _ lifecycle.Sessions[*Session] = (*Store)(nil)

// Open opens a project's folder, to look at its files. It needs no .lopen, reads
// none and makes none.
func Open(project string, opts lifecycle.Options) (*Store, error) {
	dir, err := writer.OpenFS(project)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Store{project: dir, opts: opts, plans: map[string]*plan.Plan{}}, nil
}

// Create makes a session of a module.
func (s *Store) Create(_ context.Context, module string) (*Session, error) {
	now := s.opts.Now()
	s.mu.Lock()
	s.given++
	id, err := session.NewID(module, now, before+s.given)
	s.mu.Unlock()
	if err != nil {
		return nil, invalid("create session", module, err)
	}
	st, err := session.New(id, now)
	if err != nil {
		return nil, err
	}
	said := &said{}
	a, err := s.sup.Start(st, said, actors.Options{Logger: s.opts.Logger})
	if err != nil {
		return nil, err
	}
	return &Session{Live: lifecycle.NewLive(a, s.opts), project: s.project, said: said}, nil
}

// Open finds nothing.
func (s *Store) Open(id session.ID) (*Session, error) {
	return nil, missing("open session %s", id)
}

// Latest finds nothing.
func (s *Store) Latest(module string) (session.ID, error) {
	return session.ID{}, missing("latest session of module %q", module)
}

// List is empty.
func (s *Store) List() ([]lifecycle.Info, error) { return nil, nil }

// Fork finds nothing to fork.
func (s *Store) Fork(_ context.Context, id session.ID, _ lifecycle.ForkOptions) (*Session, error) {
	return nil, missing("fork session %s", id)
}

// Delete finds nothing to delete.
func (s *Store) Delete(_ context.Context, id session.ID) (int64, error) {
	return 0, missing("delete session %s", id)
}

// Close closes every session.
func (s *Store) Close(ctx context.Context) error {
	err := s.sup.Close(ctx)
	if !s.sup.Ended() {
		return err
	}
	return errors.Join(err, s.project.Close())
}

// Plan is a module's plan as CreatePlan and EditPlan left it; before, an
// fs.ErrNotExist.
func (s *Store) Plan(module string) (*plan.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.plans[module]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("read plan of module %s: %w", module, fs.ErrNotExist)
}

// CreatePlan takes a module's plan, unless there is one: errors.Is(err, fs.ErrExist).
func (s *Store) CreatePlan(module string, content []byte) error {
	if err := session.ValidateModule(module); err != nil {
		return invalid("create plan", module, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plans[module] != nil {
		return fmt.Errorf("create plan of module %s: %w", module, fs.ErrExist)
	}
	s.plans[module] = plan.Parse(content)
	return nil
}

// ReloadPlan is Plan: nobody else edits it.
func (s *Store) ReloadPlan(module string, _ *plan.Plan) (*plan.Plan, error) { return s.Plan(module) }

// EditPlan carries a change out on a module's plan, in memory. What the caller knew of
// it does not matter: nobody else edits it.
func (s *Store) EditPlan(module string, _ *plan.Plan, change plan.Change) (*plan.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.plans[module]
	if now == nil {
		return nil, fmt.Errorf("edit plan of module %s: %w", module, fs.ErrNotExist)
	}
	p, err := change(now, now)
	if p != nil {
		s.plans[module] = p
	}
	return p, err
}

func missing(format string, what any) error {
	return fmt.Errorf(format+": nothing is kept here: %w", what, lifecycle.ErrNotFound)
}

func invalid(op, path string, err error) error {
	return &lifecycle.Error{Op: op, Path: path, Class: writer.ClassInvalid, Err: err}
}
