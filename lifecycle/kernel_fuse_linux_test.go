package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// TestFUSE has the kernel answer with an errno, for one call of one kind, the next
// one succeeding. Faults 11 to 15: the session pauses with what happened, a file
// whose sync failed is never used again, and Unpause resumes.
func TestFUSE(t *testing.T) {
	t.Parallel()
	const (
		first   = "journal-1-1.jsonl"
		journal = "journal-*.jsonl"
		temp    = ".tmp-state.json-*"
	)
	for _, tc := range []struct {
		call, file string
		errno      syscall.Errno
		flush      bool // the readable files are waited for
		rotate     bool // the save begins a new segment
		durable    bool // the newest State is durable though the session pauses
	}{
		{call: "fsync", file: first, errno: syscall.EIO},
		{call: "fsync", file: first, errno: syscall.EDQUOT, durable: true}, // on a new segment, with the ballast
		{call: "write", file: first, errno: syscall.EIO},
		{call: "write", file: first, errno: syscall.EDQUOT, durable: true},
		{call: "fsync", file: "journal-1-2.jsonl", errno: syscall.EIO, rotate: true}, // that of the header
		{call: "create", file: "journal-1-2.jsonl", errno: syscall.EIO, rotate: true},
		{call: "create", file: "journal-1-2.jsonl", errno: syscall.EDQUOT, rotate: true, durable: true},
		{call: "flush", file: first, errno: syscall.EIO, rotate: true},
		{call: "syncdir", file: "auth-20260214-1", errno: syscall.EIO, rotate: true},
		{call: "fsync", file: temp, errno: syscall.EIO, flush: true, durable: true},
		{call: "write", file: temp, errno: syscall.EIO, flush: true, durable: true},
		{call: "create", file: temp, errno: syscall.EIO, flush: true, durable: true},
		{call: "create", file: temp, errno: syscall.EDQUOT, flush: true, durable: true},
		{call: "flush", file: temp, errno: syscall.EIO, flush: true, durable: true},
		{call: "rename", file: "state.json", errno: syscall.EIO, flush: true, durable: true},
		{call: "syncdir", file: "auth-20260214-1", errno: syscall.EIO, flush: true, durable: true},
	} {
		t.Run(fmt.Sprintf("%s of %s/%s", tc.call, tc.file, map[syscall.Errno]string{syscall.EIO: "EIO", syscall.EDQUOT: "EDQUOT"}[tc.errno]), func(t *testing.T) {
			t.Parallel()
			b := newFuseBed(t, tc.rotate)
			b.disk.once(tc.call, tc.file, tc.errno)
			accepted(t, b.sess.Change(session.TriggerStepCompleted, bulky(2)))
			wait := b.sess.Sync
			if tc.flush {
				wait = b.sess.Flush
			}
			err := wait(t.Context())
			class := lifecycle.ClassDevice
			if tc.errno == syscall.EDQUOT {
				class = lifecycle.ClassNoSpace
			}
			requirePaused(t, err, class, tc.errno, b.dir)
			requireDurable(t, err, tc.durable)
			requirePaused(t, <-b.sess.Critical(), class, tc.errno, b.dir)
			require.Equal(t, 1, b.disk.failed())
			if tc.durable {
				b.require(t, 2)
			}
			if !tc.flush { // the segment is given up: neither written nor synced nor closed a second time
				before := b.used(first)
				defer func() { require.Equal(t, before, b.used(first)) }()
				if tc.rotate && tc.call != "flush" { // which comes before there is another
					before := b.used("journal-1-2.jsonl")
					defer func() { require.Equal(t, before, b.used("journal-1-2.jsonl")) }()
				}
			}
			requirePaused(t, b.sess.Change(session.TriggerStepCompleted, bulky(3)), class, tc.errno, b.dir)
			requirePaused(t, b.sess.Sync(t.Context()), class, tc.errno, b.dir)
			require.NoError(t, b.sess.Unpause(t.Context()))
			b.require(t, 3)
			b.reopen(t)
		})
	}

	// The disk answers so until it is healed.
	for _, tc := range []struct {
		name  string
		errno syscall.Errno
		class lifecycle.Class
	}{
		{"dead", syscall.EIO, lifecycle.ClassDevice},
		{"over quota", syscall.EDQUOT, lifecycle.ClassNoSpace},
		{"read-only", syscall.EROFS, lifecycle.ClassDenied}, // fault 15
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newFuseBed(t, false)
			b.disk.failing(func(call, _ string) syscall.Errno {
				if call == "flush" || tc.errno != syscall.EIO && (call == "fsync" || call == "syncdir" || call == "unlink" && tc.errno == syscall.EDQUOT) {
					return 0
				}
				return tc.errno
			})
			accepted(t, b.sess.Change(session.TriggerStepCompleted, bulky(2)))
			err := b.sess.Sync(t.Context())
			requirePaused(t, err, tc.class, tc.errno, b.dir)
			requireDurable(t, err, false)
			requirePaused(t, <-b.sess.Critical(), tc.class, tc.errno, b.dir)
			for range 3 {
				requirePaused(t, b.sess.Unpause(t.Context()), tc.class, tc.errno, b.dir)
			}
			b.require(t, 1)
			_, err = b.store.Create(t.Context(), "pay")
			require.ErrorIs(t, err, tc.errno)
			require.Equal(t, tc.class, lifecycle.ClassOf(err))
			require.Equal(t, 2, b.sess.State().Header().TurnCount)
			b.disk.failing(nil)
			require.NoError(t, b.sess.Unpause(t.Context()))
			b.require(t, 2)
			b.reopen(t)
		})
	}
}

// fuseBed is a session on a faulty disk with turn 1 shown.
type fuseBed struct {
	disk  *faultyFS
	store *lifecycle.Store
	sess  *lifecycle.Session
	dir   string
}

func newFuseBed(t *testing.T, rotate bool) *fuseBed {
	t.Helper()
	disk := mountFaulty(t)
	store, _, err := lifecycle.Init(disk.dir, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	segment := int64(1 << 20)
	if rotate {
		segment = 4 << 10
	}
	store.Shrink(1<<20, segment)
	b := &fuseBed{disk: disk, store: store, sess: create(t, store, "auth")}
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	b.dir = path(store, "sessions", b.sess.ID().String())
	require.NoError(t, b.sess.Change(session.TriggerStepCompleted, bulky(1)))
	require.NoError(t, b.sess.Flush(t.Context()))
	require.NotZero(t, disk.called("fsync", "journal-1-1.jsonl"), "the calls pass through the test's hands")
	require.NotZero(t, disk.called("write", "journal-1-1.jsonl"))
	require.FileExists(t, filepath.Join(disk.backing, ".lopen/ballast"))
	return b
}

// used returns how often a file was written and synced.
func (b *fuseBed) used(name string) [2]int {
	return [2]int{b.disk.called("write", name), b.disk.called("fsync", name)}
}

// require says what is found on the file system, and on the disk under it.
func (b *fuseBed) require(t *testing.T, turn int) {
	t.Helper()
	requireTurn(t, b.disk.dir, b.sess.ID(), turn)
	requireTurn(t, b.disk.backing, b.sess.ID(), turn)
}

// reopen saves, closes and opens again.
func (b *fuseBed) reopen(t *testing.T) {
	t.Helper()
	n := b.sess.State().Header().TurnCount + 1
	require.NoError(t, b.sess.Change(session.TriggerStepCompleted, turns(n)))
	require.NoError(t, b.sess.Sync(t.Context()))
	b.require(t, n)
	require.NoError(t, b.store.Close(t.Context()))
	for _, project := range []string{b.disk.dir, b.disk.backing} {
		store, err := lifecycle.Open(project, lifecycle.Options{Now: clock()})
		require.NoError(t, err)
		sess, err := store.Open(b.sess.ID())
		require.NoError(t, err)
		require.Equal(t, n, sess.State().Header().TurnCount)
		n++
		require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(n)))
		require.NoError(t, errors.Join(sess.Flush(t.Context()), store.Close(t.Context())))
		requireTurn(t, project, b.sess.ID(), n)
	}
	left, err := filepath.Glob(filepath.Join(b.disk.backing, ".lopen/sessions/*/.tmp-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	info, err := os.Stat(filepath.Join(b.disk.backing, ".lopen/ballast"))
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, info.Size())
}
