package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// What a caller leaves out where it may not is an error, and nothing is changed or locked by it.
func TestNilArgumentsAreErrors(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	put(t, store.Project(), "a", "a")
	e, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	cps, err := store.Checkpoints(nil)
	require.NoError(t, err)
	defer cps.Close()
	ctx, id, tree := t.Context(), sess.ID(), cps.Tree(e.Root)
	for name, do := range map[string]func() error{
		"Session.Append":              func() error { return sess.Append(nil) },
		"Session.AppendEvent":         func() error { return sess.AppendEvent(nil) },
		"Session.Update":              func() error { return sess.Update(nil) },
		"Session.Update to nil":       func() error { return sess.Update(func(*session.State) (*session.State, error) { return nil, nil }) },
		"Session.Save of another":     func() error { return sess.Save(&session.State{}, session.TriggerStepCompleted) },
		"Session.Change":              func() error { return sess.Change(session.TriggerStepCompleted, nil) },
		"Store.CreateWith":            func() error { _, err := store.CreateWith(ctx, "auth", nil); return err },
		"Store.Log":                   func() error { return store.Log(id, 0, nil) },
		"Store.Watch":                 func() error { return store.Watch(ctx, id, 0, nil) },
		"Store.SetMeta":               func() error { return store.SetMeta(ctx, id, nil) },
		"Store.RememberSpecification": func() error { return store.RememberSpecification("auth", nil) },
		"Store.Recorded":              func() error { _, err := store.Recorded(nil); return err },
		"Store.Export":                func() error { _, err := store.Export(ctx, carry.ExportOptions{All: true}, nil); return err },
		"Store.VerifyData":            func() error { return store.VerifyData(ctx, nil) },
		"checkpoint.Plan": func() error {
			_, err := cps.Plan(ctx, nil, e, tree, 0, checkpoint.RewindOptions{})
			return err
		},
		"checkpoint.Plan, now": func() error {
			_, err := cps.Plan(ctx, e, nil, tree, 0, checkpoint.RewindOptions{})
			return err
		},
		"checkpoint.Plan, tree": func() error { _, err := cps.Plan(ctx, e, e, nil, 0, checkpoint.RewindOptions{}); return err },
		"checkpoint.Apply":      func() error { _, err := cps.Apply(ctx, nil); return err },
		"checkpoint.Diff":       func() error { _, err := checkpoint.Diff(tree, nil); return err },
		"checkpoint.Content":    func() error { _, err := cps.Content(nil); return err },
		"checkpoint.Extract":    func() error { _, err := cps.Extract(nil); return err },
		"checkpoint.Objects":    func() error { return cps.Objects(e, nil) },
		"checkpoint.Objects of": func() error { return cps.Objects(nil, checkpoint.Unseen(nil)) },
		"checkpoint.Missing":    func() error { return cps.Missing(nil, nil, nil) },
		"checkpoint.Rules":      func() error { _, err := cps.Rules(nil); return err },
		"checkpoint.Forget":     func() error { _, err := cps.Forget(ctx, "", nil); return err },
	} {
		require.NotPanics(t, func() { require.Error(t, do(), name) }, name)
	}
	require.NoError(t, sess.Save(nil, session.TriggerStepCompleted), "without a State the newest one is saved")
	require.NoError(t, sess.Close(ctx))
	_, _, err = store.Read(id)
	require.NoError(t, err)
	_, err = lifecycle.Open(store.Project().Name(), lifecycle.Options{})
	require.NoError(t, err)
}
