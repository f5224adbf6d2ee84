package fleet_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// bounded are options of a store whose logs are compacted soon.
var bounded = lifecycle.Options{Policy: lifecycle.Policy{JournalBytes: 1 << 20}}

// A talker is a session, shipped or not.
type talker interface {
	ID() session.ID
	Change(session.Trigger, func(*session.Edit) error) error
	Append(*session.Message) error
	Record(record.Attempt) error
	Sync(ctx context.Context) error
}

// turn changes a session so that its log grows by 200 KB.
func turn(t *testing.T, s talker, i int) {
	t.Helper()
	noise := make([]byte, 100_000)
	_, _ = rand.Read(noise)
	task(t, s, fmt.Sprint("t", i%7), session.TaskComplete)
	require.NoError(t, s.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().TurnCount++
		e.Header().Data = strictjson.Value(`{"noise":"` + hex.EncodeToString(noise) + `"}`)
		return nil
	}))
	if i%10 == 0 {
		require.NoError(t, s.Append(message(fmt.Sprint("turn ", i))))
		require.NoError(t, s.Record(record.Attempt{Task: "t0", Attempt: i + 1, Iteration: i + 1, Then: record.Done}))
	}
	require.NoError(t, s.Sync(t.Context()))
}

// compacted changes a session until the oldest records of its log were dropped.
func compacted(t *testing.T, m *machine, s talker) (turns int, began uint64) {
	t.Helper()
	until(t, "the log is compacted", func() bool {
		turn(t, s, turns)
		turns++
		var err error
		began, err = m.store.Began(s.ID())
		return err == nil && began > 1
	})
	return turns, began
}

// Of a log that was compacted what is left is shipped, and reads there and elsewhere.
func TestCompactedLogIsShipped(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it writes a log of 60 MB")
	}
	url := pgtest.Database(t)
	a, b := newMachineWith(t, "a", url, bounded), newMachine(t, "b", url)
	s, err := a.store.Create(t.Context(), "auth")
	require.NoError(t, err)
	_, began := compacted(t, a, s)
	sess := a.ship(t, s)
	arrives(t, sess)
	requireSame(t, url, a, sess.ID())
	require.EqualValues(t, began, ask[int64](t, url, "SELECT base_seq FROM lopen_data.sessions"))
	reads(t, a.Fleet, "auth")
	require.NoError(t, sess.Close(t.Context()))

	p := b.pull(t, "auth")
	require.Equal(t, said(t, a, p.ID), said(t, b, p.ID))
	require.NotEmpty(t, said(t, b, p.ID))
	there, err := b.store.Began(p.ID)
	require.NoError(t, err)
	require.Equal(t, began, there)
	sess = b.resume(t, p.ID)
	require.Equal(t, s.State().Header().TurnCount, sess.State().Header().TurnCount)
	say(t, sess, "more")
	arrives(t, sess)
	requireSame(t, url, b, p.ID)
	reads(t, b.Fleet, "auth")
}

// A log that is above its bound keeps what was not shipped.
func TestBacklogIsNotCompacted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it writes a log of 60 MB")
	}
	url := pgtest.Database(t)
	proxy := pgtest.NewProxy(t, addr(t, url))
	a := newMachineWith(t, "a", proxy.URL(url), bounded)
	proxy.Drop() // from the beginning: nothing but Ship itself has kept the log
	sess := a.create(t, "auth")
	root, err := writer.OpenFS(filepath.Join(a.store.Path(), folder.Path(sess.ID())))
	require.NoError(t, err)
	defer root.Close()
	passed, unread, err := folder.Passed(root)
	require.NoError(t, err)
	require.Zero(t, passed, "Ship returned before the cursor was there %s", unread)
	other, err := a.store.Create(t.Context(), "other")
	require.NoError(t, err)
	turns, _ := compacted(t, a, other)
	for i := range turns {
		turn(t, sess, i)
	}
	began, err := a.store.Began(sess.ID())
	require.NoError(t, err)
	require.EqualValues(t, 1, began, "a record was dropped before it was shipped")
	proxy.Heal()
	arrives(t, sess)
	require.EqualValues(t, 1, ask[int64](t, url, "SELECT base_seq FROM lopen_data.sessions"))
	require.Len(t, there(t, url, sess.ID(), sess.Incarnation()), ask[int](t, url, "SELECT head_seq FROM lopen_data.sessions"))
}
