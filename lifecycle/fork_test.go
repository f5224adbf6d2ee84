package lifecycle_test

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

func fork(t *testing.T, store *lifecycle.Store, id session.ID, at lifecycle.ForkOptions) *lifecycle.Session {
	t.Helper()
	sess, err := store.Fork(t.Context(), id, at)
	require.NoError(t, err)
	return sess
}

// A fork of a live session has what the other one has, continues by itself, and
// outlives it.
func TestForkOfALiveSession(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	parent := create(t, store, "auth")
	says(t, parent, "a", "b")
	require.NoError(t, parent.Change(session.TriggerStepCompleted, turns(7)))
	require.NoError(t, parent.Sync(t.Context()))

	_, seq, err := store.Read(parent.ID())
	require.NoError(t, err)
	child := fork(t, store, parent.ID(), lifecycle.ForkOptions{})
	st := child.State()
	require.Equal(t, 7, st.Header().TurnCount)
	require.Equal(t, session.StatusPaused, st.Status())
	require.Equal(t, &session.Lineage{Kind: session.LineageForked, From: parent.ID(), Seq: seq}, st.Header().Lineage)
	says(t, parent, "p")
	says(t, child, "c")
	require.Equal(t, []string{"a", "b", "p"}, messageIDs(t, store, parent.ID()))
	require.Equal(t, []string{"a", "b", "c"}, messageIDs(t, store, child.ID()))
	one, err := os.Stat(path(store, "sessions", parent.ID().String(), "journal-1-1.jsonl"))
	require.NoError(t, err)
	two, err := os.Stat(path(store, "sessions", child.ID().String(), "inherited", "1", "journal-1-1.jsonl"))
	require.NoError(t, err)
	require.True(t, os.SameFile(one, two), "nothing is copied")

	require.NoError(t, parent.Close(t.Context()))
	_, err = store.Delete(t.Context(), parent.ID())
	require.NoError(t, err)
	require.NoError(t, child.Close(t.Context()))
	again, err := store.Open(child.ID())
	require.NoError(t, err)
	says(t, again, "d")
	require.Equal(t, []string{"a", "b", "c", "d"}, messageIDs(t, store, child.ID()))
	report, err := store.Verify(child.ID())
	require.NoError(t, err)
	require.Equal(t, repair.Intact, report.Condition)
}

func TestForkAtAPoint(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	parent := create(t, store, "auth")
	for i := range 6 {
		require.NoError(t, parent.Append(&session.Message{ID: fmt.Sprint("q", i), Role: session.RoleUser}))
		call := []session.ToolCall{{ID: fmt.Sprint("c", i)}}
		require.NoError(t, parent.Append(&session.Message{ID: fmt.Sprint("a", i), Role: session.RoleAssistant, ToolCalls: call}))
		require.NoError(t, parent.Append(&session.Message{ID: fmt.Sprint("r", i), Role: session.RoleTool, ToolCallID: call[0].ID}))
		require.NoError(t, parent.Change(session.TriggerStepCompleted, turns(i+1)))
		require.NoError(t, parent.Sync(t.Context()))
	}
	_, seq, err := store.Read(parent.ID())
	require.NoError(t, err)

	fourth := uint64(1) // how many records a step takes depends on what was coalesced
	for ; ; fourth++ {
		st, err := store.ReadAt(parent.ID(), fourth)
		require.NoError(t, err)
		if st.Header().TurnCount == 4 {
			break
		}
	}
	at := fork(t, store, parent.ID(), lifecycle.ForkOptions{Seq: fourth, Continue: true})
	require.Equal(t, 4, at.State().Header().TurnCount)
	require.Equal(t, session.LineageContinued, at.State().Header().Lineage.Kind)
	require.Equal(t, "r3", last(messageIDs(t, store, at.ID())))

	message := fork(t, store, parent.ID(), lifecycle.ForkOptions{Message: "a1"})
	require.Equal(t, "a1", last(messageIDs(t, store, message.ID())))
	require.NoError(t, message.Close(t.Context()))
	message, err = store.Open(message.ID())
	require.NoError(t, err)
	require.NoError(t, message.Sync(t.Context()))
	all := messageIDs(t, store, message.ID())
	require.Len(t, all, 6, "its open call is answered: %v", all)

	for _, bad := range []lifecycle.ForkOptions{{Seq: seq + 1}, {Message: "x"}} {
		_, err := store.Fork(t.Context(), parent.ID(), bad)
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
	}
	other, err := session.ParseID("auth-20260101-9")
	require.NoError(t, err)
	_, err = store.Fork(t.Context(), other, lifecycle.ForkOptions{})
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

func last(all []string) string { return all[len(all)-1] }

// The power is cut at every call of a fork: the fork is there and whole, or is not there.
func TestPowerCutWhileForking(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		s := newSim(t, mode)
		s.init()
		require.NoError(t, s.create())
		s.talks = true
		require.NoError(t, s.save(10))
		require.NoError(t, s.flush())
		s.capture.Store(true)
		s.watch(nil)
		child, err := s.store.Fork(t.Context(), s.id, lifecycle.ForkOptions{})
		require.NoError(t, err)
		s.take("done")
		s.capture.Store(false)
		s.disk.SetHook(nil)
		for i, p := range s.points {
			if passed(i, len(s.points)) {
				continue
			}
			for _, v := range outcomes(p.disk, i) {
				store, err := lifecycle.OpenOn(p.disk.Crash(v).FS(), simOptions)
				require.NoError(t, err)
				infos, err := store.List()
				require.NoError(t, err)
				require.NotEmpty(t, infos)
				if i == len(s.points)-1 {
					require.Len(t, infos, 2, "it was acknowledged")
				}
				for _, info := range infos {
					require.NoError(t, info.Err)
					messages, events, err := conversationIn(store, info.ID)
					require.NoError(t, err)
					require.Equal(t, s.messages, messages, "%s: %s", p.op, v.Name)
					require.Equal(t, s.events, events)
				}
				crashStates.Add(1)
			}
		}
		require.NoError(t, child.Close(t.Context()))
		require.NoError(t, s.close())
	}
}

// A file that a fork shares was written but not synced. It is durable when the fork is.
func TestForkOfWhatIsNotDurable(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.init()
	require.NoError(t, s.create())
	var killed *crashfs.Disk
	s.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "datasync" { // the last one, where the writer took the event and the message in turn
			killed = s.disk.Snapshot()
		}
		return crashfs.Fault{}
	})
	s.say(10)
	require.NoError(t, s.sync())
	s.disk.SetHook(nil)
	require.NoError(t, s.close())
	store, err := lifecycle.OpenOn(killed.FS(), simOptions)
	require.NoError(t, err)
	fork, err := store.Fork(t.Context(), s.id, lifecycle.ForkOptions{})
	require.NoError(t, err)
	store, err = lifecycle.OpenOn(killed.Crash(crashfs.Variant{}).FS(), simOptions)
	require.NoError(t, err)
	messages, events, err := conversationIn(store, fork.ID())
	require.NoError(t, err)
	require.Equal(t, s.messages, messages)
	require.Equal(t, s.events, events)
	require.NoError(t, fork.Close(t.Context()))
}

// A fork of a complete session has a completion time before its creation. This is no fault.
func TestForkOfACompleteSession(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	parent := create(t, store, "auth")
	require.NoError(t, parent.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		h := e.Header()
		h.Status, h.Phase, h.ExitReason, h.CompletedAt = session.StatusComplete, session.PhaseComplete, session.ExitComplete, h.CreatedAt.Add(-time.Second)
		return nil
	}))
	require.NoError(t, parent.Sync(t.Context()))
	rules := func(id session.ID) int {
		report, err := store.Verify(id)
		require.NoError(t, err)
		return len(report.Rules)
	}
	require.Equal(t, 1, rules(parent.ID()))
	require.Zero(t, rules(fork(t, store, parent.ID(), lifecycle.ForkOptions{}).ID()))
}

// The content that a fork inherits was acknowledged by records of another journal.
func TestForkOfAForkAtAMessage(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	parent := create(t, store, "auth")
	for i := range 5 {
		says(t, parent, fmt.Sprint("p", i))
		require.NoError(t, parent.Change(session.TriggerStepCompleted, turns(i+1)))
	}
	require.NoError(t, parent.Sync(t.Context()))
	child := fork(t, store, parent.ID(), lifecycle.ForkOptions{})
	for i := range 9 {
		says(t, child, fmt.Sprint("c", i))
		require.NoError(t, child.Change(session.TriggerStepCompleted, turns(10+i)))
	}
	require.NoError(t, child.Sync(t.Context()))
	for message, want := range map[string]int{"p1": 5, "p4": 5, "c0": 5, "c8": 17} {
		grandchild := fork(t, store, child.ID(), lifecycle.ForkOptions{Message: message})
		require.Equal(t, message, last(messageIDs(t, store, grandchild.ID())))
		require.LessOrEqual(t, grandchild.State().Header().TurnCount, max(want, 10), message)
		if message[0] == 'p' {
			require.Equal(t, want, grandchild.State().Header().TurnCount, message)
		}
		all := messageIDs(t, store, grandchild.ID())
		require.NoError(t, grandchild.Close(t.Context()))
		gone("state.json")(t, path(store, "sessions", grandchild.ID().String()))
		require.Equal(t, all, messageIDs(t, store, grandchild.ID()), "the log has it")
	}
}

// A fork of a session that lost a message has the rest of it, and loses nothing more when a
// file is lost.
func TestForkOfADamagedSession(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	parent := create(t, store, "auth")
	says(t, parent, "a")
	require.NoError(t, parent.Close(t.Context()))
	parent, err := store.Open(parent.ID())
	require.NoError(t, err)
	says(t, parent, "b")
	name := path(store, "sessions", parent.ID().String(), "journal-1-1.jsonl")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, bytes.Replace(data, []byte("this is a"), []byte("this is x"), 1), 0o600))
	child := fork(t, store, parent.ID(), lifecycle.ForkOptions{})
	says(t, child, "c")
	listen := func() (got []string) {
		for m, err := range store.Messages(child.ID()) {
			if err != nil {
				require.ErrorIs(t, err, folder.ErrDamaged)
				require.ErrorContains(t, err, "inherited/1")
			}
			got = append(got, m.ID)
		}
		return got
	}
	require.Equal(t, []string{"", "b", "c"}, listen())
	for _, gone := range []string{"journal-1-1.jsonl", "segments", "."} {
		require.NoError(t, os.RemoveAll(path(store, "sessions", child.ID().String(), "inherited/1", gone)))
		want := []string{"", "b", "c"}
		if gone == "." {
			want = []string{"", "c"}
		}
		require.Equal(t, want, listen(), "%s is gone", gone)
	}
	require.NoError(t, child.Close(t.Context()))
	child, err = store.Open(child.ID())
	require.NoError(t, err, "it stays")
	says(t, child, "d")
	require.Equal(t, []string{"", "c", "d"}, listen())
	report, err := store.Verify(child.ID())
	require.NoError(t, err)
	require.Equal(t, repair.Flawed, report.Condition)
}

// On a file system without hard links the fork has copies and works the same.
func TestForkWhereLinksAreRefused(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.init()
	require.NoError(t, s.create())
	s.talks = true
	require.NoError(t, s.save(10))
	require.NoError(t, s.sync())
	refused := 0
	s.watch(serial(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "link" {
			refused++
			return crashfs.Fault{Err: syscall.EPERM}
		}
		return crashfs.Fault{}
	}))
	child, err := s.store.Fork(t.Context(), s.id, lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, refused, 2, "a segment and the list at least")
	require.NoError(t, s.save(10))
	require.NoError(t, s.sync())
	store, err := lifecycle.OpenOn(s.disk.Crash(crashfs.Variant{}).FS(), simOptions)
	require.NoError(t, err)
	messages, events, err := conversationIn(store, child.ID())
	require.NoError(t, err)
	require.Equal(t, s.messages[:1], messages)
	require.Equal(t, s.events[:1], events)
	require.NoError(t, child.Close(t.Context()))
	require.NoError(t, s.close())
}
