package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Of any number of sessions those that were made last are listed; that there are more is said, and so is, of rows that are
// none of ours, what some of them have.
func TestListIsBounded(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	newMachine(t, "a", url)
	var log lockedBuffer
	f, err := fleet.Open(fleet.Options{URL: url, Project: "p", Logger: zerolog.New(&log)})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	const rows = `INSERT INTO lopen_data.sessions (project, id, incarnation, module, term, host, lease_until, updated)
		SELECT 'p', $1::text || i, '00', 'auth', 0, '', now(), now() - i * interval '1 s' FROM generate_series(1, $2::int) i`
	execute(t, url, rows, "auth-20260101-", 200)
	execute(t, url, rows, "auth-20260102-", 9_900)
	execute(t, url, rows, "n\x1bne ", 50)
	for _, module := range []string{"", "auth"} {
		all, err := f.List(t.Context(), module)
		require.NoError(t, err)
		require.Len(t, all, 9_950, module)
		require.Equal(t, "auth-20260102-1", all[0].ID.String(), "the one that was received last")
		n := 0
		for _, x := range all {
			if x.ID.Day == "20260101" {
				n++
			}
		}
		require.Equal(t, 51, n, "those that were made last, but for the one that was received first of these")
	}
	require.Contains(t, log.String(), "the fleet has more than 10000 sessions: only the newest are looked at")
	require.Equal(t, 2*3, strings.Count(log.String(), `a session \"n\\x1bne `), log.String()[:300])
	require.NotContains(t, log.String(), "\x1b")
}

// A plan that is larger than one of a fleet may be is not sent; one that is there can be replaced.
func TestPlanIsBounded(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	large := "- [ ] one\n" + strings.Repeat(strings.Repeat("text ", 20)+"\n", 10_500)
	require.NoError(t, a.store.CreatePlan("large", []byte(large)))
	_, err := a.PushPlan(t.Context(), a.store, "large", false)
	require.ErrorContains(t, err, "the plan of large is not sent: a plan in a fleet has at most 524288 bytes")
	require.NoError(t, a.store.CreatePlan("many", []byte(strings.Repeat("- [ ] t\n", 10_001))))
	_, err = a.PushPlan(t.Context(), a.store, "many", false)
	require.ErrorContains(t, err, "the plan of many is not sent")
	sess := a.create(t, "large")
	say(t, sess, "hello")
	arrives(t, sess) // the session is sent all the same
	require.NoError(t, sess.Err())
	plans(t, a, "auth")
	_, err = a.PushPlan(t.Context(), a.store, "auth", false)
	require.NoError(t, err)
	execute(t, url, "UPDATE lopen_data.plans SET bytes = $1, revision = 7", []byte(large))
	p, err := a.Plan(t.Context(), "auth")
	require.ErrorContains(t, err, "the plan of auth in the fleet, revision 7 by a: it has 1060510 bytes")
	require.Empty(t, p.Bytes)
	_, err = a.PullPlan(t.Context(), a.store, "auth")
	require.ErrorContains(t, err, "has 1060510 bytes")
	execute(t, url, "UPDATE lopen_data.plans SET bytes = $1", []byte(strings.Repeat("- [ ] t\n", 10_001)))
	_, err = a.PullPlan(t.Context(), a.store, "auth")
	require.ErrorContains(t, err, "it has 10001 tasks: a plan in a fleet has at most")
	execute(t, url, "UPDATE lopen_data.plans SET bytes = $1", []byte(large))
	_, err = a.PushPlan(t.Context(), a.store, "auth", false)
	require.ErrorContains(t, err, "has 1060510 bytes")
	p, err = a.PushPlan(t.Context(), a.store, "auth", true)
	require.NoError(t, err)
	require.Equal(t, uint64(8), p.Revision)
	all, err := a.Plans(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Empty(t, all[0].Bytes)
}

// A session with more tasks than one of a fleet may have, or with a larger snapshot, is not sent, and none is taken.
func TestSessionIsBounded(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := newMachineWith(t, "a", url, logsNothing), newMachine(t, "b", url)
	sess := a.create(t, "auth")
	more := func(from, to int, name string) {
		require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
			roots := slices.Clone(e.Roots())
			for i := from; i < to; i++ {
				id := fmt.Sprintf("t%05d", i)
				roots = append(roots, id)
				e.Put(session.Task{ID: id, Kind: session.KindTask, Name: name, State: session.TaskPending})
			}
			e.SetRoots(roots)
			return nil
		}))
		require.NoError(t, sess.Sync(t.Context()))
	}
	more(0, 10_000, "t")
	arrives(t, sess)
	reads(t, a.Fleet, "auth")
	more(10_000, 10_001, "t")
	until(t, "it is not sent", func() bool { return sess.Err() != nil })
	require.ErrorContains(t, sess.Err(), "has 10001 tasks: a session in a fleet has at most 10000 tasks")
	require.NoError(t, sess.Close(t.Context()))

	a.SendsTasks(20_000)
	sess = a.resume(t, sess.ID())
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	x := find(t, b, "auth")
	_, err := b.Pull(t.Context(), b.store, &x)
	require.ErrorAs(t, err, new(*fleet.SessionError))
	require.ErrorContains(t, err, "make 10001 tasks: a session in a fleet has at most 10000 tasks")

	sess = a.create(t, "large")
	more(0, 5_000, strings.Repeat("x", 1_000))
	until(t, "it is not sent", func() bool { return sess.Err() != nil })
	require.ErrorContains(t, sess.Err(), "and one of a fleet has at most 4194304")
}
