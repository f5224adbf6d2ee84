package lifecycle_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// attempt records an attempt whose output tail has the given number of bytes.
func (b *bed) attempt(n, bytes int) error {
	return b.sess.Record(record.Attempt{Task: fmt.Sprintf("t%d", n), Attempt: n, Command: []string{"true"}, StartedAt: day, EndedAt: day, Then: "failed", Tail: strings.Repeat("x", bytes)})
}

// logged returns the tasks of the attempts that a log holds, in order.
func logged(t *testing.T, store *lifecycle.Store, id session.ID) (tasks []string) {
	t.Helper()
	require.NoError(t, store.Log(id, 0, func(r record.Record) error {
		for _, a := range r.Attempts {
			tasks = append(tasks, a.Task)
		}
		return nil
	}))
	return tasks
}

// Each entry is valid, and all together are too large for one record.
func TestFault39EntriesOfAPauseAboveOneRecord(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	b.store.Shrink(4<<20, 8<<20)
	b.fail(named("write", "journal-"), errnoOf(syscall.ENOSPC))
	var want []string
	for n := 1; n <= 10; n++ {
		accepted(t, b.attempt(n, 930<<10))
		want = append(want, fmt.Sprintf("t%d", n))
	}
	accepted(t, b.save(10))
	pausedBy(t, b.sync(), lifecycle.ClassNoSpace, syscall.ENOSPC)
	b.fail(nil)
	require.NoError(t, b.unpause(), "a pause that can end")
	require.Equal(t, want, logged(t, b.store, b.id), "in order, once")
	require.Equal(t, 2, b.found(t))
	require.NoError(t, b.save(10))
	require.NoError(t, b.sync())
	b.survives(t)
	require.NoError(t, b.close())
	require.NoError(t, b.reopen())
	require.Equal(t, want, logged(t, b.store, b.id))
	require.NoError(t, b.close())
}

// The disk fails at any call of the commit that carries many entries. The power is cut
// at any call where a folder's sync failed, and where nothing did.
func TestFault39CommitOfManyEntriesFailsInTheMiddle(t *testing.T) {
	t.Parallel()
	for fail := 1; ; fail++ {
		b := newBed(t, crashfs.Ext4) // whose records take 2 KiB of entries
		n, failed := 0, ""
		b.watch(serial(func(op crashfs.Op) crashfs.Fault {
			if n++; n != fail {
				return crashfs.Fault{}
			}
			failed = op.Call
			return crashfs.Fault{Err: syscall.EIO}
		}))
		b.capture.Store(true)
		var want []string
		for i := 1; i <= 3; i++ {
			accepted(t, b.attempt(i, 1500))
			want = append(want, fmt.Sprintf("t%d", i))
		}
		accepted(t, b.save(6<<10)) // a State of its own file
		if b.sync() != nil || b.flush() != nil {
			_ = b.unpause()
		}
		require.NoError(t, b.unpause(), "call %d failed", fail)
		require.Equal(t, want, logged(t, b.store, b.id), "call %d failed", fail)
		if failed == "" || failed == "syncdir" {
			b.explore(1)
		}
		b.survives(t)
		require.NoError(t, b.close())
		if failed == "" {
			return
		}
	}
}

func TestFault39OpenCallsAboveOneRecord(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("records of megabytes; -short")
	}
	store := initStore(t)
	sess := create(t, store, "auth")
	call := func(id string) session.ToolCall { return session.ToolCall{ID: id, Name: "read"} }
	huge := &session.Message{Role: session.RoleAssistant, ToolCalls: []session.ToolCall{call(strings.Repeat("i", 5<<20))}}
	require.ErrorIs(t, sess.Append(huge), lifecycle.ErrInvalid, "before anything is accepted")
	many := &session.Message{Role: session.RoleAssistant}
	for n := range session.MaxOpenCalls + 1 {
		many.ToolCalls = append(many.ToolCalls, call(fmt.Sprint("call-", n)))
	}
	require.ErrorIs(t, sess.Append(many), lifecycle.ErrInvalid)
	require.ErrorIs(t, sess.Append(&session.Message{Role: session.RoleTool, ToolCallID: strings.Repeat("i", 1000)}), lifecycle.ErrInvalid)
	require.NoError(t, sess.Sync(t.Context()))

	// As much as is accepted, in as many messages as it takes.
	for round := range 3 {
		m := &session.Message{Role: session.RoleAssistant}
		for n := range session.MaxOpenCalls {
			id := fmt.Sprintf("%d-%d-", round, n)
			m.ToolCalls = append(m.ToolCalls, call(id+strings.Repeat("\x01", 128-len(id))))
		}
		require.NoError(t, sess.Append(m))
	}
	require.NoError(t, sess.Sync(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.NoError(t, again.Sync(t.Context()))
	var answers []string
	for m, err := range store.Messages(sess.ID()) {
		require.NoError(t, err)
		if m.Role == session.RoleTool {
			answers = append(answers, m.ToolCallID[:4])
		}
	}
	require.Len(t, answers, session.MaxOpenCalls, "the newest ones are answered")
	require.Equal(t, "2-0-", answers[0])
	require.NoError(t, again.Close(t.Context()))
}
