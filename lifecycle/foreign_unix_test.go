//go:build unix

package lifecycle_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// furnished makes a project whose store has a file of each kind, and returns its
// sessions: one that is at work, and one in the trash.
func furnished(t *testing.T, project string) []session.ID {
	t.Helper()
	store := storeWith(t, project, lifecycle.Policy{Interval: 2})
	sess, cps := agentWorked(t, store, "auth")
	require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("hello")}))
	require.NoError(t, sess.AppendEvent(strictjson.Value(`{"a":1}`)))
	_, err := sess.Rewind(t.Context(), cps[1], both)
	require.NoError(t, err)
	require.NoError(t, sess.PinCheckpoint(t.Context(), cps[0], true))
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, bulky(600)))
	child, err := sess.HoldChild()
	require.NoError(t, err)
	require.NoError(t, child.Release())
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, store.SetConfig([]byte("{}\n")))
	require.NoError(t, store.SetMeta(t.Context(), sess.ID(), func(m *lifecycle.Meta) error { m.Name = "name"; return nil }))
	lock, err := store.LockModule("auth")
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
	fork, err := store.Fork(t.Context(), sess.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, fork.Close(t.Context()))
	gone := completed(t, store, "auth")
	_, err = store.Prune(t.Context(), lifecycle.Retention{Age: 1}, false)
	require.NoError(t, err)
	bad := made(t, store, "auth")
	write(t, path(store, "sessions", bad.String(), "state.json"), "damage")
	_ = os.Remove(path(store, "sessions", bad.String(), "journal-1-1.jsonl"))
	_, err = store.Open(bad)
	require.Error(t, err)
	write(t, path(store, "sessions", sess.ID().String(), "pause-request"), "")
	require.NoError(t, store.Close(t.Context()))
	return []session.ID{sess.ID(), gone}
}

var numbers = regexp.MustCompile(`[0-9a-f]{6,}|[0-9]+`)

// placesIn returns the files and folders below a store, one of each kind.
func placesIn(t *testing.T, lopen string) (places []string) {
	t.Helper()
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir(lopen, func(full string, d fs.DirEntry, err error) error {
		if err != nil || full == lopen || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		name, err := filepath.Rel(lopen, full)
		if err != nil {
			return err
		}
		kind := name
		if !strings.Contains(name, "journal-") { // the first one and the newest
			kind = numbers.ReplaceAllString(name, "0")
		}
		// Of what was moved away the folders and the lock do: its files are those of a session.
		quarantined := strings.Count(name, "/") > 1 && (strings.HasPrefix(name, "trash/") || strings.HasPrefix(name, "corrupted/"))
		if !seen[kind] && (!quarantined || d.IsDir() || filepath.Base(name) == ".lock") {
			places = append(places, name)
		}
		seen[kind] = true
		return nil
	}))
	return append([]string{"."}, places...)
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dst := to + strings.TrimPrefix(full, from)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeDir:
			return os.Mkdir(dst, info.Mode().Perm())
		case fs.ModeSymlink:
			target, err := os.Readlink(full)
			if err != nil {
				return err
			}
			return os.Symlink(target, dst)
		}
		data, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		return os.WriteFile(dst, data, info.Mode().Perm())
	}))
}

// look tells everything of a folder that a foreign hand may change.
func look(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %d %v\n", full, info.Mode(), info.Size(), info.ModTime())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(full)
			if err != nil {
				return err
			}
			b.Write(data)
		}
		return nil
	}))
	return b.String()
}

// within fails the test if a call takes too long.
func within(t *testing.T, name string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		require.FailNow(t, "it hangs", name)
	}
}

type operation struct {
	name string
	do   func()
}

// everything returns an operation for each call that the library offers. The store may be
// anything, so errors are expected.
func everything(project string, ids []session.ID) []operation {
	ctx := context.Background()
	id, gone := ids[0], ids[1]
	var store *lifecycle.Store
	var sess *lifecycle.Session
	var once sync.Once
	all := []operation{{"open store", func() { store, _ = lifecycle.Open(project, lifecycle.Options{Now: clock()}) }}}
	add := func(name string, do func()) {
		all = append(all, operation{name, func() {
			if store != nil {
				do()
			}
		}})
	}
	held := func(name string, do func()) {
		add(name, func() {
			if sess != nil {
				do()
			}
		})
	}
	first := func(store *lifecycle.Store) (id checkpoint.ID) {
		if cps, err := store.Checkpoints(nil); err == nil {
			if e, err := cps.At(1); err == nil {
				id = e.ID
			}
			_ = cps.Close()
		}
		return id
	}
	drain := func(cps *lifecycle.Checkpoints) {
		all, _, _ := cps.List()
		var last *checkpoint.Tree
		for _, e := range all {
			now := cps.Tree(e.Root)
			if last != nil {
				changes, _ := checkpoint.Diff(last, now)
				for _, c := range changes {
					_, _ = cps.Patch(c.Old, c.New)
				}
			}
			last = now
		}
		_ = cps.Close()
	}
	add("checkpoints", func() {
		if cps, err := store.Checkpoints(nil); err == nil {
			drain(cps)
		}
	})
	add("usage", func() { _, _ = store.CheckpointUsage() })
	add("list", func() { _, _ = store.List() })
	add("latest", func() { _, _ = store.Latest("") })
	add("resolve", func() { _, _ = store.Resolve("auth") })
	add("unfinished", func() { _, _, _ = store.Unfinished("auth") })
	add("quarantined", func() { _, _ = store.Quarantined() })
	add("trash", func() { _, _ = store.Trash() })
	add("config", func() { _, _ = store.Config() })
	add("plan", func() { _, _ = store.Plan("auth") })
	add("preflight", func() { store.Preflight() })
	add("doctor", func() { store.Doctor(ctx) })
	add("module free", func() { _ = store.ModuleFree("auth") })
	add("verify blobs", func() { _, _, _ = store.VerifyBlobs(ctx) })
	for _, id := range []session.ID{id, gone} {
		add("read", func() { _, _, _ = store.Read(id) })
		add("read at", func() { _, _ = store.ReadAt(id, 2) })
		add("verify", func() {
			if r, err := store.Verify(id); err == nil {
				_ = store.VerifyData(ctx, &r)
			}
		})
		add("log", func() { _ = store.Log(id, 0, func(record.Record) error { return nil }) })
		add("gaps", func() { _, _ = store.Gaps(id) })
		add("messages", func() {
			for range store.Messages(id) {
				once.Do(func() {})
			}
			for range store.Transcript(id) {
				once.Do(func() {})
			}
		})
		add("snapshots", func() { _, _ = store.Snapshots(id) })
		add("meta", func() { _, _ = store.Meta(id) })
		add("holder", func() { _, _ = store.Holder(id) })
		add("orphan", func() { _, _ = store.Orphan(id) })
		add("abandoned", func() { _, _ = store.Abandoned(id) })
		add("bytes", func() { _, _ = store.Bytes(id), store.Incarnation(id) })
		add("plan undo", func() { _, _ = store.PlanRewind(ctx, id, checkpoint.ID{}, both) })
		add("plan rewind", func() { _, _ = store.PlanRewind(ctx, id, first(store), both) })
		add("recover dry", func() { _, _ = store.Recover(ctx, id.String(), "", true) })
	}
	add("prune dry", func() { _, _ = store.Prune(ctx, lifecycle.Retention{Age: 1, Trash: 1}, true) })
	add("lock module", func() {
		if lock, err := store.LockModule("auth"); err == nil {
			_ = lock.Unlock()
		}
	})
	add("edit plan", func() {
		if p, err := store.Plan("auth"); err == nil {
			_, _ = store.EditPlan("auth", p, plan.Boxes(map[string]bool{"one": true}))
		}
		_ = store.CreatePlan("other", []byte("- [ ] a\n"))
	})
	add("set config", func() { _ = store.SetConfig([]byte("{ }\n")) })
	add("set meta", func() { _ = store.SetMeta(ctx, id, func(m *lifecycle.Meta) error { m.Pinned = true; return nil }) })
	add("request pause", func() { _, _ = store.RequestPause(ctx, id) })
	add("request wake", func() { _, _ = store.RequestWake(ctx, id) })
	add("open", func() { sess, _ = store.Open(id) })
	held("hold child", func() {
		if child, err := sess.HoldChild(); err == nil {
			_ = child.Record(os.Getpid(), "sh")
			_ = child.Release()
		}
	})
	held("change", func() { _ = sess.Change(session.TriggerStepCompleted, bulky(1)) })
	held("append", func() {
		_ = sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("hello")})
		_ = sess.AppendEvent(strictjson.Value(`{"a":1}`))
	})
	held("checkpoint", func() { _, _, _ = sess.Checkpoint(ctx, checkpoint.Manual, "") })
	held("rewind", func() { _, _ = sess.Rewind(ctx, first(store), both) })
	held("undo", func() { _, _ = sess.Undo(ctx, both) })
	held("close", func() { _ = sess.Close(ctx) })
	add("fork", func() {
		if fork, err := store.Fork(ctx, id, lifecycle.ForkOptions{}); err == nil {
			_ = fork.Close(ctx)
		}
	})
	add("create", func() {
		if s, err := store.Create(ctx, "other"); err == nil {
			_, _, _ = s.Checkpoint(ctx, checkpoint.Manual, "")
			_ = s.Complete(ctx)
			_ = s.Close(ctx)
		}
	})
	add("recover", func() { _, _ = store.Recover(ctx, id.String(), "", false) })
	add("restore", func() { _ = store.Restore(ctx, gone) })
	add("prune", func() { _, _ = store.Prune(ctx, lifecycle.Retention{Age: 1, Trash: 1}, false) })
	add("delete", func() { _, _ = store.Delete(ctx, id); _, _ = store.Delete(ctx, gone) })
	add("close store", func() { _ = store.Close(ctx) })
	return all
}
