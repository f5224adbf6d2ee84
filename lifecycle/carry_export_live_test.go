package lifecycle_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// TestExportWhileItRuns exports a session again and again while its holder saves, rewrites
// segments, and drops records and snapshots. Each export is the session as it was at some
// record, and no Save waits for one.
func TestExportWhileItRuns(t *testing.T) {
	t.Parallel()
	store := storeWith(t, t.TempDir(), lifecycle.Policy{JournalBytes: 32 << 10, Interval: 3, Retention: 2})
	store.Shrink(4<<10, 8<<10)
	store.ShowAtOnce()
	sess := create(t, store, "auth")
	const exports, saves = 8, 48 // while each one runs
	more, ended := make(chan struct{}, exports*saves), make(chan error, 1)
	go func() {
		n := 0
		for range more {
			n++
			size := 100
			if n%16 == 0 {
				size = 5 << 10 // a snapshot takes the place of its record
			}
			err := sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(fmt.Sprint(n))})
			err = cmp.Or(err, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
				e.Header().TurnCount, e.Header().Data = n, strictjson.Value(fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", size)))
				return nil
			}))
			if err = cmp.Or(err, sess.Sync(context.Background())); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	var last uint64
	reader := storeIn(t, filepath.Dir(store.Path()))
	check := func() {
		t.Helper()
		_, other, out := export(t, reader, carry.ExportOptions{Sessions: []session.ID{sess.ID()}})
		seq := out.Header.Sessions[0].Seq
		require.GreaterOrEqual(t, seq, last)
		last = seq
		requireSame(t, other, other, sess.ID(), seq)
		st, _, err := other.Read(sess.ID())
		require.NoError(t, err)
		n := st.Header().TurnCount
		all := messagesOf(t, other, sess.ID())
		require.Contains(t, []int{n, n + 1}, len(all), "a message is written before the State that was saved after it")
		again, err := other.Open(sess.ID())
		require.NoError(t, err)
		require.Equal(t, n, again.State().Header().TurnCount)
		require.NoError(t, again.Close(t.Context()))
	}
	for range exports {
		for range saves {
			more <- struct{}{}
		}
		check()
	}
	close(more)
	require.NoError(t, <-ended)
	check()
	require.GreaterOrEqual(t, last, uint64(exports*saves))
}

// A stuck sink takes nothing and waits until it is let go.
type stuck struct {
	reached chan struct{}
	once    sync.Once
	letGo   chan struct{}
}

func (s *stuck) Add(string, int64, io.Reader) error {
	s.once.Do(func() { close(s.reached) })
	<-s.letGo
	return nil
}

func (s *stuck) Object(blob.Hash, int64, func() (io.ReadCloser, error)) error { return nil }
func (s *stuck) Close() error                                                 { return nil }

// TestAnExportHoldsNobodyUp does all that a run does while an export stands still.
func TestAnExportHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, cps := agentWorked(t, store, "auth")
	sink := &stuck{reached: make(chan struct{}), letGo: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		_, err := store.Export(context.Background(), carry.ExportOptions{All: true}, func(bundle.Header) (carry.Sink, error) { return sink, nil })
		ended <- err
	}()
	<-sink.reached
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(9)))
	require.NoError(t, sess.Flush(t.Context()))
	put(t, store.Project(), "more", "x")
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	_, err = sess.Rewind(t.Context(), cps[0], both)
	require.NoError(t, err)
	blobs, err := writer.OpenFS(path(store, "blobs"))
	require.NoError(t, err)
	defer blobs.Close()
	_, err = blob.New(blobs).Sweep(func() (map[blob.Hash]struct{}, error) { return nil, nil })
	require.Equal(t, writer.ClassBusy, writer.ClassOf(err), "no content is taken away")
	id := made(t, store, "other")
	require.NoError(t, store.SetMeta(t.Context(), id, func(m *lifecycle.Meta) error { m.Pinned = true; return nil }))
	require.NoError(t, sess.Close(t.Context()))
	close(sink.letGo)
	require.NoError(t, <-ended)
}

// TestAnExportEndsWithItsContext ends one in the middle of a content.
func TestAnExportEndsWithItsContext(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, _ := agentWorked(t, store, "auth")
	ctx, cancel := context.WithCancel(t.Context())
	u := unpack(t)
	_, err := store.Export(ctx, carry.ExportOptions{Sessions: []session.ID{sess.ID()}}, func(h bundle.Header) (carry.Sink, error) {
		cancel()
		return u.open(h)
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, u.names)
	require.False(t, u.done)
}
