package noop_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/noop"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/storetest"
	"github.com/lopen-dev/lopen/plan"
)

func TestStore(t *testing.T) {
	t.Parallel()
	const alone = "no store finds a session again"
	storetest.Run(t, storetest.Config[*noop.Session]{
		New: func(t storetest.T) storetest.Place[*noop.Session] {
			var one *noop.Store // a second one would not know which IDs the first one gave
			return storetest.Place[*noop.Session]{Open: func() (lifecycle.Sessions[*noop.Session], error) {
				if one != nil {
					return one, nil
				}
				var err error
				one, err = noop.Open(t.TempDir(), lifecycle.Options{})
				return one, err
			}}
		},
		Skip: map[string]string{
			"reopen": alone, "busy": alone, "latest": alone, "list": alone, "delete": alone, "fork": alone,
			"transcript": "events are dropped", "rewind": "no files are kept",
		},
	})
}

func open(t *testing.T) (*noop.Store, string) {
	t.Helper()
	dir := t.TempDir()
	store, err := noop.Open(dir, lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	return store, dir
}

// A session that is open is not found either, a checkpoint is no success, and what
// was said is redacted.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	store, dir := open(t)
	sess, err := store.Create(t.Context(), "auth")
	require.NoError(t, err)
	_, err = store.Open(sess.ID())
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = store.Fork(t.Context(), sess.ID(), lifecycle.ForkOptions{})
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = store.Delete(t.Context(), sess.ID())
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = store.Latest("auth")
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	all, err := store.List()
	require.NoError(t, err)
	require.Empty(t, all)
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.ErrorIs(t, err, errors.ErrUnsupported)

	key := "ghp_" + "abcdefghijKLMNOPQRST0123456789abcdEF"
	require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(key)}))
	require.NoError(t, sess.AppendEvent([]byte(`{"a":1}`)))
	require.NoError(t, sess.Record(session.AttemptRecord{Task: "t"}))
	require.NoError(t, sess.Sync(t.Context()))
	n := 0
	for m, err := range sess.Messages() {
		require.NoError(t, err)
		require.NotContains(t, string(m.Content), key)
		n++
	}
	require.Equal(t, 1, n, "only the message")

	hold, err := sess.HoldChild()
	require.NoError(t, err)
	require.Nil(t, hold)
	require.False(t, sess.PauseRequested())
	past, err := sess.Past(t.Context())
	require.NoError(t, err)
	require.Zero(t, *past)
	require.NoError(t, sess.Complete(t.Context()))
	require.Equal(t, session.StatusComplete, sess.State().Status())
	require.NoError(t, store.Close(t.Context()))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLook(t *testing.T) {
	t.Parallel()
	store, dir := open(t)
	sess, err := store.Create(t.Context(), "auth")
	require.NoError(t, err)
	name := filepath.Join(dir, "a")
	look := func() (paths []string) {
		changes, err := sess.Look(t.Context())
		require.NoError(t, err)
		for _, c := range changes {
			paths = append(paths, c.Path)
		}
		return paths
	}
	require.NoError(t, os.WriteFile(name, []byte("1"), 0o600))
	require.Empty(t, look(), "the first time nothing was seen before")
	require.Empty(t, look())
	require.NoError(t, os.WriteFile(name, []byte("22"), 0o600))
	require.Equal(t, []string{"a"}, look())
	require.Empty(t, look())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = sess.Look(gone)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPlan(t *testing.T) {
	t.Parallel()
	store, _ := open(t)
	_, err := store.Plan("auth")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = store.EditPlan("auth", nil, plan.Boxes(map[string]bool{"a": true}))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, store.CreatePlan("A", nil), lifecycle.ErrInvalid)
	require.NoError(t, store.CreatePlan("auth", []byte("- [ ] a\n- [ ] b\n")))
	require.ErrorIs(t, store.CreatePlan("auth", []byte("- [ ] c\n")), fs.ErrExist)
	p, err := store.EditPlan("auth", nil, plan.Boxes(map[string]bool{"b": true, "x": true}))
	var conflict *plan.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, []string{"x"}, conflict.Missing)
	require.Equal(t, "- [ ] a\n- [x] b\n", string(p.Source()))
	_, err = store.EditPlan("auth", nil, plan.Boxes(map[string]bool{"a": true, "b": false}))
	require.NoError(t, err)
	refused := errors.New("no")
	_, err = store.EditPlan("auth", nil, func(_, _ *plan.Plan) (*plan.Plan, error) { return nil, refused })
	require.ErrorIs(t, err, refused)
	p, err = store.ReloadPlan("auth", p)
	require.NoError(t, err)
	require.Equal(t, "- [x] a\n- [ ] b\n", string(p.Source()))
}

func TestOpenNowhere(t *testing.T) {
	t.Parallel()
	_, err := noop.Open(filepath.Join(t.TempDir(), "gone"), lifecycle.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// goOn takes the module's last session up, or begins one, on whatever store.
func goOn[S lifecycle.Conversation](ctx context.Context, store lifecycle.Sessions[S], module string) (sess S, err error) {
	id, err := store.Latest(module)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return store.Create(ctx, module)
	}
	if err != nil {
		return sess, err
	}
	return store.Open(id)
}

// A loop that is written for the interface runs with files and without.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "noop-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 {
		kept, _, err := lifecycle.Init(dir, lifecycle.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		sess, err := goOn(ctx, kept, "auth")
		fmt.Println(sess.ID().Counter, err, kept.Close(ctx))
	}
	for range 2 {
		gone, err := noop.Open(dir, lifecycle.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		sess, err := goOn(ctx, gone, "auth")
		fmt.Println(sess.ID().Counter, err, gone.Close(ctx))
	}
	// Output:
	// 1 <nil> <nil>
	// 1 <nil> <nil>
	// 1000000001 <nil> <nil>
	// 1000000001 <nil> <nil>
}

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "noop-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	day := time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC)
	store, err := noop.Open(dir, lifecycle.Options{Now: func() time.Time { return day }})
	if err != nil {
		fmt.Println(err)
		return
	}
	sess, err := store.Create(ctx, "auth")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error {
		e.Header().Phase = session.PhasePlanning
		return nil
	})
	fmt.Println(sess.ID(), sess.State().Phase(), err, sess.Sync(ctx))
	_, err = store.Latest("auth")
	fmt.Println(errors.Is(err, lifecycle.ErrNotFound), store.Close(ctx))
	// Output:
	// auth-20260214-1000000001 planning <nil> <nil>
	// true <nil>
}
