package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
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

// A context that is nil is an error as well, and nothing is changed or locked by it.
func TestNilContextsAreErrors(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	put(t, store.Project(), "a", "a")
	e, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	put(t, store.Project(), "a", "b")
	cps, err := store.Checkpoints(nil)
	require.NoError(t, err)
	defer cps.Close()
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "a")
	require.NoError(t, err)
	var ctx context.Context
	was := sess.State()
	id, tree, why := sess.ID(), cps.Tree(e.Root), checkpoint.Manual
	for name, do := range map[string]func() error{
		"Store.Export": func() error {
			_, err := store.Export(ctx, carry.ExportOptions{All: true}, func(bundle.Header) (carry.Sink, error) { return nil, nil })
			return err
		},
		"Store.NoteBackup":      func() error { return store.NoteBackup(ctx, lifecycle.BackupNote{}) },
		"Store.Import":          func() error { _, err := store.Import(ctx, nil); return err },
		"Store.Copy":            func() error { _, err := store.Copy(ctx, id); return err },
		"VerifyBundle":          func() error { _, err := lifecycle.VerifyBundle(ctx, nil, t.TempDir()); return err },
		"Store.Batch":           func() error { _, err := store.Batch(ctx, []string{"auth"}); return err },
		"Session.Look":          func() error { _, err := sess.Look(ctx); return err },
		"Session.Patch":         func() error { _, err := sess.Patch(ctx, "a", 1); return err },
		"Session.Past":          func() error { _, err := sess.Past(ctx); return err },
		"Store.Checkpoint":      func() error { _, err := store.Checkpoint(ctx, nil, true); return err },
		"Session.Checkpoint":    func() error { _, _, err := sess.Checkpoint(ctx, why, ""); return err },
		"Session.PinCheckpoint": func() error { return sess.PinCheckpoint(ctx, e.ID, true) },
		"Store.Watch":           func() error { return store.Watch(ctx, id, 0, func(record.Record) error { return nil }) },
		"Store.Create":          func() error { _, err := store.Create(ctx, "auth"); return err },
		"Store.CreateWith": func() error {
			_, err := store.CreateWith(ctx, "auth", func(session.ID, *session.Header) {})
			return err
		},
		"Store.Fork": func() error { _, err := store.Fork(ctx, id, lifecycle.ForkOptions{}); return err },
		"Store.OpenOfAgent": func() error {
			_, _, err := store.OpenOfAgent(ctx, "auth", "a", "b", func(*session.Header) {})
			return err
		},
		"Store.SetMeta":     func() error { return store.SetMeta(ctx, id, func(*lifecycle.Meta) error { return nil }) },
		"Store.Prune":       func() error { _, err := store.Prune(ctx, lifecycle.Retention{}, false); return err },
		"Store.VerifyData":  func() error { return store.VerifyData(ctx, &repair.Report{ID: id}) },
		"Store.VerifyBlobs": func() error { _, _, err := store.VerifyBlobs(ctx); return err },
		"Store.Accept":      func() error { return store.Accept(ctx, id) },
		"Session.Rewind":    func() error { _, err := sess.Rewind(ctx, e.ID, rewind.Options{Files: true}); return err },
		"Store.PlanRewind":  func() error { _, err := store.PlanRewind(ctx, id, e.ID, rewind.Options{Files: true}); return err },
		"Store.Doctor": func() error {
			if all := store.Doctor(ctx); len(all) == 1 && all[0].Problem {
				return errors.New(all[0].Found)
			}
			return nil
		},
		"Session.SetBack":       func() error { _, _, err := sess.SetBack(ctx, "a"); return err },
		"Store.GiveUpRewind":    func() error { _, err := store.GiveUpRewind(ctx, id); return err },
		"Session.Sync":          func() error { return sess.Sync(ctx) },
		"Session.Flush":         func() error { return sess.Flush(ctx) },
		"Session.Unpause":       func() error { return sess.Unpause(ctx) },
		"Session.Close":         func() error { return sess.Close(ctx) },
		"Session.Complete":      func() error { return sess.Complete(ctx) },
		"Session.Pause":         func() error { return sess.Pause(ctx, session.TriggerPaused, session.ExitPaused) },
		"Store.RequestPause":    func() error { _, err := store.RequestPause(ctx, id); return err },
		"Store.RequestWake":     func() error { _, err := store.RequestWake(ctx, id); return err },
		"Store.Close":           func() error { return store.Close(ctx) },
		"Store.Restore":         func() error { return store.Restore(ctx, id) },
		"Store.Delete":          func() error { _, err := store.Delete(ctx, id); return err },
		"Store.DeleteCompleted": func() error { _, err := store.DeleteCompleted(ctx, id); return err },
		"checkpoint.Pin":        func() error { return cps.Pin(ctx, e.ID, true) },
		"checkpoint.Forget":     func() error { _, err := cps.Forget(ctx, "", func(*checkpoint.Entry) bool { return true }); return err },
		"checkpoint.Apply":      func() error { _, err := cps.Apply(ctx, &checkpoint.Plan{}); return err },
		"checkpoint.Ask":        func() error { _, err := cps.Ask(ctx, &checkpoint.Plan{}); return err },
		"checkpoint.Create":     func() error { _, err := cps.Create(ctx, checkpoint.Meta{Reason: why}); return err },
		"checkpoint.Look":       func() error { _, _, err := cps.Look(ctx, checkpoint.Meta{Reason: why}); return err },
		"checkpoint.Bring":      func() error { _, err := cps.Bring(ctx, nil, false); return err },
		"checkpoint.LostMoves":  func() error { _, err := cps.LostMoves(ctx, store.Project()); return err },
		"checkpoint.Drop":       func() error { return cps.Drop(ctx) },
		"checkpoint.Plan":       func() error { _, err := cps.Plan(ctx, e, e, tree, 0, checkpoint.RewindOptions{}); return err },
		"files.Take":            func() error { _, err := files.Take(ctx, store.Project(), nil, files.Options{}); return err },
		"blob.Hold":             func() error { _, err := blob.New(store.Project()).Hold(ctx); return err },
		"writer.LockWait":       func() error { _, err := writer.LockWait(ctx, store.Project(), "l", writer.Owner{}); return err },
		"files.Measure":         func() error { _, err := files.Measure(ctx, store.Project(), "a", "a", nil); return err },
	} {
		t.Run(name, func(t *testing.T) { require.NotPanics(t, func() { require.ErrorContains(t, do(), "context is nil") }) })
	}
	require.Same(t, was, sess.State())
	require.NoError(t, sess.Close(t.Context()))
	_, _, err = store.Read(id)
	require.NoError(t, err)
}
