package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// message is one of a user, of about so many bytes on the disk.
func message(size int) *session.Message {
	return &session.Message{Role: session.RoleUser, Content: session.Text(strings.Repeat("word ", size/5))}
}

// say appends a message, and waits for the disk when too much waits for it.
func say(b *testing.B, sess *lifecycle.Session, m session.Message) {
	err := sess.Append(&m)
	if errors.Is(err, lifecycle.ErrBacklogFull) {
		require.NoError(b, sess.Sync(b.Context()))
		err = sess.Append(&m)
	}
	if err != nil {
		require.NoError(b, err)
	}
}

// conversation is a session with so many messages of 200 bytes.
func conversation(b *testing.B, n int) (*lifecycle.Store, *lifecycle.Session) {
	b.Helper()
	store, _, err := lifecycle.Init(b.TempDir(), lifecycle.Options{})
	require.NoError(b, err)
	sess, err := store.Create(b.Context(), "bench")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close(context.Background())) })
	m := message(200)
	for range n {
		say(b, sess, *m)
	}
	require.NoError(b, sess.Flush(b.Context()))
	return store, sess
}

// BenchmarkAppendMessage is one message: /append is what its caller waits for while
// commits go on, /durable that and the Sync, /floor one append and fdatasync of as
// many bytes.
func BenchmarkAppendMessage(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		m := message(size)
		b.Run(fmt.Sprintf("append/bytes=%d", size), func(b *testing.B) {
			_, sess := conversation(b, 1)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				say(b, sess, *m)
			}
		})
		b.Run(fmt.Sprintf("durable/bytes=%d", size), func(b *testing.B) {
			_, sess := conversation(b, 1)
			for b.Loop() {
				say(b, sess, *m)
				require.NoError(b, sess.Sync(b.Context()))
			}
		})
		b.Run(fmt.Sprintf("floor/bytes=%d", size), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
			require.NoError(b, err)
			defer f.Close()
			record := make([]byte, size)
			for off := int64(0); b.Loop(); off += int64(size) {
				_, err := f.WriteAt(record, off)
				require.NoError(b, err)
				require.NoError(b, datasync(f))
			}
		})
	}
}

// BenchmarkReadMessages reads a conversation from end to end.
func BenchmarkReadMessages(b *testing.B) {
	for _, n := range usual(1_000, 100_000) {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			_, sess := conversation(b, n)
			b.ReportAllocs()
			for b.Loop() {
				got := 0
				for _, err := range sess.Messages() {
					if err != nil {
						require.NoError(b, err)
					}
					got++
				}
				require.Equal(b, n, got)
			}
		})
	}
}

// BenchmarkFork forks a session; its cost must not follow the conversation.
func BenchmarkFork(b *testing.B) {
	for _, n := range usual(100, 100_000) {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			store, sess := conversation(b, n)
			for b.Loop() {
				fork, err := store.Fork(b.Context(), sess.ID(), lifecycle.ForkOptions{})
				require.NoError(b, err)
				b.StopTimer()
				require.NoError(b, fork.Close(b.Context()))
				b.StartTimer()
			}
		})
	}
}
