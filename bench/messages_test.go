package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/turns"
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

// BenchmarkMessage is one message until durable, by its size.
func BenchmarkMessage(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			m := message(size)
			_, sess := conversation(b, 1)
			turns.Run(b, turns.Side{Name: "lopen", Do: func() {
				say(b, sess, *m)
				require.NoError(b, sess.Sync(b.Context()))
			}}, appendFloor(b, size))
		})
	}
}

// BenchmarkMessages is 1,000 messages as fast as they come: lopen from the first one, last
// from the last one, until all are durable.
func BenchmarkMessages(b *testing.B) {
	const messages = 1000
	for _, size := range []int{200, 4 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			m := message(size)
			_, sess := conversation(b, 1)
			all := []*lifecycle.Session{sess}
			flush := quiet(b, &all)
			says := func(n int) {
				for range n {
					say(b, sess, *m)
				}
			}
			until := func(n int) func() {
				return func() { says(n); require.NoError(b, sess.Sync(b.Context())) }
			}
			floor := appendFloor(b, messages*size)
			floor.Before = flush
			turns.Run(b, turns.Side{Name: "lopen", Before: flush, Do: until(messages)},
				turns.Side{Name: "last", Before: func() { flush(); says(messages - 1) }, Do: until(1)}, floor)
		})
	}
}

// BenchmarkAppend is what the caller of Append waits for while commits go on.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			m := message(size)
			_, sess := conversation(b, 1)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				say(b, sess, *m)
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
