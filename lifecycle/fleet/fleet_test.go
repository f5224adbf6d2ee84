package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A machine is a process with a project's folder of its own.
type machine struct {
	*fleet.Fleet
	store *lifecycle.Store
	dir   string
}

// newMachine makes a machine whose database has the tables.
func newMachine(t *testing.T, host, url string) *machine {
	dir := t.TempDir()
	m := &machine{dir: dir}
	var err error
	m.store, _, err = lifecycle.Init(dir, lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.store.Close(context.Background())) })
	m.Fleet = open(t, host, url)
	_, err = m.Migrate(t.Context())
	require.NoError(t, err)
	return m
}

func open(t *testing.T, host, url string) *fleet.Fleet {
	f, err := fleet.Open(fleet.Options{URL: url, Project: "p", Host: host, Linger: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

func (m *machine) write(t *testing.T, name, content string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(m.dir, name)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, name), []byte(content), 0o644))
}

// task sets the state of a task, which is made if it is not there.
func task(t *testing.T, s interface {
	Change(session.Trigger, func(*session.Edit) error) error
}, id string, state session.TaskState) {
	require.NoError(t, s.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		if _, known := e.Task(id); !known {
			e.SetRoots(append(slices.Clone(e.Roots()), id))
		}
		e.Put(session.Task{ID: id, Kind: session.KindTask, Name: "Task " + id, State: state})
		return nil
	}))
}

func message(text string) *session.Message {
	return &session.Message{Role: session.RoleUser, Content: []byte(fmt.Sprintf("%q", text))}
}

func TestAnotherMachineContinues(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := newMachine(t, "a", url), newMachine(t, "b", url)
	a.write(t, "main.go", "package main\n")
	s, err := a.store.Create(t.Context(), "auth")
	require.NoError(t, err)
	sess, err := a.Ship(a.store, s)
	require.NoError(t, err)
	require.NoError(t, sess.Append(message("hello")))
	task(t, sess, "one", session.TaskComplete)
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, sess.Replicated(t.Context()))
	want := sess.State()
	require.NoError(t, sess.Close(t.Context()))

	x, err := b.Find(t.Context(), "auth")
	require.NoError(t, err)
	p, err := b.Pull(t.Context(), b.store, &x)
	require.NoError(t, err)
	require.Equal(t, fleet.Absent, p.Was)
	s, err = b.store.Open(p.ID)
	require.NoError(t, err)
	require.Equal(t, want.Progress(), s.State().Progress())
	sess, err = b.Ship(b.store, s)
	require.NoError(t, err)
	task(t, sess, "two", session.TaskComplete)
	require.NoError(t, sess.Replicated(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
}
