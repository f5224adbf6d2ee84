package fleet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// A database that was restored from an older backup is noticed, and what it lacks is shipped again, the
// objects included, though this process knows that they were there.
func TestRestoredFromABackup(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts a server several times")
	}
	s := pgtest.Start(t, pgtest.Options{})
	url := s.Create("fleet")
	o, log := logged()
	a := newMachineWith(t, "a", url, o)
	sess := a.create(t, "auth")
	say(t, sess, "1")
	arrives(t, sess)
	backup := s.Backup()

	later := a.create(t, "later") // the backup has nothing of it
	a.write(t, "main.go", "package main\n")
	say(t, sess, "2", "3")
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	arrives(t, sess)
	say(t, later, "late")
	arrives(t, later)
	acked, _ := sess.Lag()
	require.NotContains(t, log.String(), "older backup")

	s.RestoreFrom(backup)
	say(t, sess, "4")
	arrives(t, sess)
	require.Contains(t, sess.Restored(), fmt.Sprintf("had acknowledged record %d", acked))
	require.Contains(t, log.String(), "an older backup was restored")
	requireSame(t, url, a, sess.ID())
	ld := reads(t, a.Fleet, "auth")
	require.EqualValues(t, 4, ld.At.Messages)
	require.NoError(t, sess.Close(t.Context()))
	b := newMachine(t, "b", url)
	p := b.pull(t, "auth")
	requireCheckpoints(t, b, p.ID, "main.go", "package main\n")

	// Of a session that is gone altogether nothing more is shipped, and the work goes on.
	say(t, later, "more")
	until(t, "the end of shipping is noticed", func() bool { return errors.Is(later.Err(), fleet.ErrGone) })
	require.ErrorIs(t, later.Replicated(t.Context()), fleet.ErrGone)
	say(t, later, "and more")
	require.NoError(t, later.Close(t.Context()))
	require.Zero(t, ask[int](t, url, "SELECT count(*) FROM lopen_data.sessions WHERE module = 'later'"))
	later = a.resume(t, later.ID()) // neither by the next process
	until(t, "the next process notices it as well", func() bool { return errors.Is(later.Err(), fleet.ErrGone) })
}

// Of a session that another machine continued after a backup, and the restored database has as it was
// before, both machines have records of their own: the one that comes second is fenced.
func TestRestoredAndContinuedElsewhere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts a server several times")
	}
	s := pgtest.Start(t, pgtest.Options{})
	url := s.Create("fleet")
	a, b := newMachine(t, "a", url), newMachineWith(t, "b", url, logsNothing)
	sess := a.create(t, "auth")
	say(t, sess, "1")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	b.pull(t, "auth")
	other := b.resume(t, sess.ID())
	arrives(t, other)
	require.NoError(t, other.Close(t.Context()))
	backup := s.Backup()
	other = b.resume(t, sess.ID())
	say(t, other, "b")
	arrives(t, other)

	s.RestoreFrom(backup)
	a.Close()
	a.Fleet = open(t, "a", url) // a connection of before is refused once
	a.pull(t, "auth")
	sess = a.resume(t, sess.ID())
	say(t, sess, "a")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	_ = other.Append(message("b2")) // it may be fenced by now
	_ = other.Sync(t.Context())
	until(t, "the other one finds out", func() bool { return errors.As(other.Err(), new(*fleet.FencedError)) })
	_ = other.Close(t.Context()) // it is fenced
	fork, err := b.Part(t.Context(), b.store, other.ID())
	require.NoError(t, err)
	require.Equal(t, []string{"1", "b"}, said(t, b, fork)[:2])
	requireSame(t, url, a, sess.ID())
	require.Equal(t, "1a", strings.Join(textsOf(t, there(t, url, sess.ID(), a.store.Incarnation(sess.ID()))), ""))
}
