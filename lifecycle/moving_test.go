package lifecycle_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A person removes or empties a copy while the session is held.
func TestCopyThatIsSpoiltMeanwhile(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(file string) error{
		"removed": os.Remove,
		"emptied": func(file string) error { return os.Truncate(file, 0) },
		"cut":     func(file string) error { return os.Truncate(file, 20) },
	} {
		store := initStore(t)
		sess := create(t, store, "auth")
		says(t, sess, "a", "b")
		require.NoError(t, sess.Flush(t.Context()))
		require.NoError(t, spoil(path(store, "sessions", sess.ID().String(), "messages.jsonl")), name)
		says(t, sess, "c")
		require.NoError(t, sess.Flush(t.Context()))
		require.Equal(t, []string{"a", "b", "c"}, copyOf(t, store, sess.ID()), name)
	}
}

// The segments that a fork is about to link are compressed meanwhile.
func TestForkWhileSegmentsAreCompressed(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.talks = true
	s.init()
	s.store.Shrink(1<<20, 4<<10)
	require.NoError(t, s.create())
	for plain := 0; plain < 3; plain, _ = s.logFiles() {
		require.NoError(t, s.save(600))
		require.NoError(t, s.sync())
	}
	want := len(s.messages)
	_, before := s.logFiles()
	var once sync.Once
	s.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "link" && strings.Contains(op.Name, "journal-") && strings.Contains(op.Name, "/inherited/") {
			once.Do(func() {
				for packed := before; packed == before; _, packed = s.logFiles() {
					if err := s.save(600); err != nil {
						panic(err)
					}
					if err := s.sync(); err != nil {
						panic(err)
					}
					if err := s.flush(); err != nil {
						panic(err)
					}
				}
			})
		}
		return crashfs.Fault{}
	})
	fork, err := s.store.Fork(t.Context(), s.id, lifecycle.ForkOptions{})
	require.NoError(t, err)
	_, after := s.logFiles()
	require.NotEqual(t, before, after)
	messages := []string{}
	for m, err := range fork.Messages() {
		require.NoError(t, err)
		messages = append(messages, m.ID)
	}
	require.Len(t, messages, want)
}

// Segments of which the fork needs only the messages are compressed before the list of
// segments is linked.
func TestForkWhileItsSegmentsAreCompressed(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.init()
	s.store.Shrink(1<<20, 4<<10)
	require.NoError(t, s.create())
	var full atomic.Bool
	full.Store(true)
	var once sync.Once
	s.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if full.Load() && op.Call == "write" && strings.Contains(op.Name, ".zst") {
			return crashfs.Fault{Err: syscall.ENOSPC} // nothing is compressed yet
		}
		if op.Call == "link" && strings.Contains(op.Name, "/inherited/") && strings.HasSuffix(op.Name, journal.ListFile) {
			once.Do(func() {
				full.Store(false)
				for plain := 9; plain > 2; plain, _ = s.logFiles() {
					if err := errors.Join(s.save(600), s.sync(), s.flush()); err != nil {
						panic(err)
					}
				}
			})
		}
		return crashfs.Fault{}
	})
	s.talks = true
	for range 4 {
		require.NoError(t, s.save(600))
	}
	require.NoError(t, s.sync())
	s.talks = false
	for plain := 0; plain < 6; plain, _ = s.logFiles() {
		require.NoError(t, s.save(600))
		require.NoError(t, s.sync())
	}
	fork, err := s.store.Fork(t.Context(), s.id, lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.False(t, full.Load())
	messages, events, err := conversationIn(s.store, fork.ID())
	require.NoError(t, err)
	require.Equal(t, s.messages, messages)
	require.Equal(t, s.events, events)
}
