package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// brokenStore is a store in files with one defect, by name; "" is none.
type brokenStore struct {
	*lifecycle.Store
	how string
}

type brokenSession struct {
	*lifecycle.Session
	how string
}

func (s brokenStore) wrap(sess *lifecycle.Session, err error) (brokenSession, error) {
	return brokenSession{sess, s.how}, err
}

func (s brokenStore) Create(ctx context.Context, module string) (brokenSession, error) {
	if s.how == "any module" && session.ValidateModule(module) != nil {
		module = "auth"
	}
	return s.wrap(s.Store.Create(ctx, module))
}

func (s brokenStore) Open(id session.ID) (brokenSession, error) {
	sess, err := s.Store.Open(id)
	switch {
	case s.how == "forgets" && err == nil,
		s.how == "steals" && errors.Is(err, lifecycle.ErrBusy),
		s.how == "makes up" && errors.Is(err, lifecycle.ErrNotFound):
		return s.wrap(s.Store.Create(context.Background(), id.Module))
	}
	return s.wrap(sess, err)
}

func (s brokenStore) Latest(module string) (session.ID, error) {
	if s.how == "latest of all" {
		module = ""
	}
	return s.Store.Latest(module)
}

func (s brokenStore) List() ([]lifecycle.Info, error) {
	if s.how == "lists nothing" {
		return nil, nil
	}
	return s.Store.List()
}

func (s brokenStore) Delete(ctx context.Context, id session.ID) (int64, error) {
	if s.how == "keeps all" {
		return 0, nil
	}
	return s.Store.Delete(ctx, id)
}

func (s brokenStore) Fork(ctx context.Context, id session.ID, at lifecycle.ForkOptions) (brokenSession, error) {
	if s.how == "forks the newest" {
		at = lifecycle.ForkOptions{Continue: at.Continue}
	}
	return s.wrap(s.Store.Fork(ctx, id, at))
}

func (s brokenStore) Transcript(id session.ID) iter.Seq2[json.RawMessage, error] {
	if s.how != "tells backwards" {
		return s.Store.Transcript(id)
	}
	return func(yield func(json.RawMessage, error) bool) {
		var all []json.RawMessage
		for e := range s.Store.Transcript(id) {
			all = append(all, slices.Clone(e))
		}
		for _, e := range slices.Backward(all) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (s brokenSession) ID() session.ID {
	if s.how == "one ID" {
		return session.ID{Module: "auth", Day: "20260214", Counter: 1}
	}
	return s.Session.ID()
}

func (s brokenSession) Save(st *session.State, t session.Trigger) error {
	switch {
	case s.how == "saves a copy" && st != nil && st.ID() == s.Session.ID():
		st, _ = st.Edit().State()
	case s.how == "takes any" && st != nil && st.ID() != s.Session.ID():
		return nil
	case s.how == "misses the last" && st != nil && st.Header().TurnCount == 10_000:
		return nil
	}
	err := s.Session.Save(st, t)
	if s.how == "never closed" && errors.Is(err, lifecycle.ErrClosed) {
		return nil
	}
	return err
}

func (s brokenSession) Update(fn func(*session.State) (*session.State, error)) error {
	if s.how == "loses updates" && s.State().Header().TurnCount == 7 {
		_ = s.Session.Update(func(st *session.State) (*session.State, error) { return turns(6)(st) })
	}
	return s.Session.Update(fn)
}

func (s brokenSession) Sync(ctx context.Context) error {
	err := s.Session.Sync(ctx)
	if s.how == "own words" && ctx.Err() != nil {
		return errors.New("gave up")
	}
	return err
}

func (s brokenSession) Messages() iter.Seq2[session.Message, error] {
	return func(yield func(session.Message, error) bool) {
		var all []session.Message
		for m := range s.Session.Messages() {
			all = append(all, m)
		}
		if s.how == "says backwards" {
			slices.Reverse(all)
		}
		for _, m := range all {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func (s brokenSession) Rewind(ctx context.Context, to checkpoint.ID, opts lifecycle.RewindOptions) (lifecycle.Rewound, error) {
	switch s.how {
	case "rewinds dry":
		opts.DryRun = false
	case "rewinds files":
		opts.State = false
	case "rewinds all":
		opts.State = true
	}
	return s.Session.Rewind(ctx, to, opts)
}

// fails is a T that remembers that it failed.
type fails struct {
	*testing.T
	failed bool
}

func (f *fails) Errorf(string, ...any) { f.failed = true }
func (f *fails) FailNow()              { f.failed = true; runtime.Goexit() }

// passes runs a check on a store with a defect.
func passes(t *testing.T, check func(*place[brokenSession]), how string) bool {
	dir := t.TempDir()
	project, err := writer.OpenFS(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = project.Close() })
	f := &fails{T: t}
	p := &place[brokenSession]{T: f, Place: Place[brokenSession]{Project: project, Open: func() (lifecycle.Sessions[brokenSession], error) {
		store, _, err := lifecycle.Init(dir, lifecycle.Options{})
		return brokenStore{store, how}, err
	}}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(p)
	}()
	<-done
	return !f.failed
}

// TestEachCheckCanFail gives each check stores with a defect that it is there to
// find.
func TestEachCheckCanFail(t *testing.T) {
	t.Parallel()
	defects := map[string][]string{
		"save":       {"saves a copy", "takes any", "one ID"},
		"update":     {"loses updates"},
		"burst":      {"misses the last"},
		"close":      {"never closed"},
		"contexts":   {"own words"},
		"ids":        {"one ID"},
		"modules":    {"any module"},
		"messages":   {"says backwards"},
		"unknown":    {"makes up", "keeps all"},
		"reopen":     {"forgets", "says backwards"},
		"busy":       {"steals", "forgets", "keeps all"},
		"latest":     {"latest of all", "keeps all"},
		"list":       {"lists nothing"},
		"delete":     {"keeps all", "makes up"},
		"transcript": {"tells backwards"},
		"fork":       {"forks the newest"},
		"rewind":     {"rewinds dry", "rewinds files", "rewinds all"},
	}
	all := checks[brokenSession]()
	require.ElementsMatch(t, slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(defects)))
	for name, check := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.True(t, passes(t, check, ""))
			for _, how := range defects[name] {
				require.False(t, passes(t, check, how), how)
			}
		})
	}
}
