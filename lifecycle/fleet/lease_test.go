package fleet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A session that was closed while the database was away is not held any longer than its lease.
func TestClosedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	proxy := pgtest.NewProxy(t, addr(t, url))
	a, b := hasty(t, "a", proxy.URL(url)), hasty(t, "b", url)
	sess := a.create(t, "auth")
	arrives(t, sess)
	require.Equal(t, 1, a.Renewing())
	proxy.Drop()
	say(t, sess, "not shipped")
	until(t, "the shipper learns that the database is away", func() bool { return sess.Err() != nil })
	require.NoError(t, sess.Close(t.Context()))
	require.Zero(t, a.Renewing())
	proxy.Heal()
	var held *fleet.HeldError
	until(t, "the lease ends", func() bool {
		x, err := b.Find(t.Context(), "auth")
		require.NoError(t, err)
		_, err = b.Pull(t.Context(), b.store, &x)
		if err != nil {
			require.ErrorAs(t, err, &held)
			require.Equal(t, "a", held.Host)
		}
		return err == nil
	})
}

// What was pulled and not shipped others may take once the Fleet is closed.
func TestCloseGivesBack(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b, c := newMachine(t, "a", url), newMachine(t, "b", url), newMachine(t, "c", url)
	sess := a.create(t, "auth")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	b.pull(t, "auth")
	x, err := c.Find(t.Context(), "auth")
	require.NoError(t, err)
	require.True(t, x.Held)
	require.Equal(t, "b", x.Host)
	_, err = c.Pull(t.Context(), c.store, &x)
	require.ErrorAs(t, err, new(*fleet.HeldError))
	b.Close()
	c.pull(t, "auth")
}

// A session that is opened again at once is renewed, though the one before it is being closed.
func TestReopenedAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	a.Hasten(fleet.Lease, quick)
	for range 10 {
		s, err := a.store.Create(t.Context(), "auth")
		require.NoError(t, err)
		first, err := a.Ship(a.store, s)
		require.NoError(t, err)
		arrives(t, first)
		closed := make(chan error, 1)
		go func() { closed <- first.Close(context.Background()) }()
		<-first.Done()
		s, err = a.store.Open(first.ID())
		require.NoError(t, err)
		second := a.ship(t, s)
		task(t, second, "one", session.TaskComplete)
		arrives(t, second)
		require.NoError(t, <-closed)
		require.Equal(t, 1, a.Renewing())
		require.NoError(t, second.Close(t.Context()))
	}
}

// Each try after an error takes the lease again, and one goroutine renews it.
func TestOneGoroutineRenews(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	proxy := pgtest.NewProxy(t, addr(t, url))
	a := newMachineWith(t, "a", proxy.URL(url), lifecycle.Options{})
	sess := a.create(t, "auth")
	for range 5 {
		arrives(t, sess)
		proxy.Drop()
		say(t, sess, "more")
		until(t, "the shipper learns that the database is away", func() bool { return sess.Err() != nil })
		proxy.Heal()
	}
	arrives(t, sess)
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	mine := 0
	for _, one := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(one, "renewAll(") && strings.Contains(one, pointer(a.Fleet)) {
			mine++
		}
	}
	require.Equal(t, 1, mine)
}

// A lease is renewed: it lasts longer than once.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := hasty(t, "a", url), hasty(t, "b", url)
	sess := a.create(t, "auth")
	arrives(t, sess)
	for end := time.Now().Add(2 * quick); time.Now().Before(end); {
		x, err := b.Find(t.Context(), "auth")
		require.NoError(t, err)
		require.True(t, x.Held)
		_, err = b.Pull(t.Context(), b.store, &x)
		require.ErrorAs(t, err, new(*fleet.HeldError))
		time.Sleep(50 * time.Millisecond)
	}
	require.EqualValues(t, 1, ask[int64](t, url, "SELECT term FROM lopen_data.sessions"))
}

// Each part of the guard of a batch keeps a process from shipping over another one that took the session
// without its noticing. A standby that was promoted may give a term twice: the holder decides then.
func TestGuards(t *testing.T) {
	t.Parallel()
	const update = "UPDATE lopen_data.sessions SET "
	const longer = "lease_until = clock_timestamp() + interval '1 minute', host = 'b'"
	for name, by := range map[string]func(t *testing.T, url string, first int64){
		"another term and holder": func(t *testing.T, url string, _ int64) {
			execute(t, url, update+"term = term + 1, holder = 'b', "+longer)
		},
		"another holder with the same term": func(t *testing.T, url string, _ int64) {
			execute(t, url, update+"holder = 'b', "+longer)
		},
		"another record of this number": func(t *testing.T, url string, first int64) {
			back := func(seq int64) {
				execute(t, url, "DELETE FROM lopen_data.records WHERE seq > $1", seq)
				execute(t, url, update+"head_seq = $1, head_sum = (SELECT sum FROM lopen_data.records WHERE seq = $1)", seq)
			}
			last := ask[int64](t, url, "SELECT head_seq FROM lopen_data.sessions")
			back(first)
			continued(t, url)
			back(last)
		},
		"more records": func(t *testing.T, url string, _ int64) { continued(t, url) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			a := newMachineWith(t, "a", url, logsNothing)
			sess := a.create(t, "auth")
			arrives(t, sess)
			first := ask[int64](t, url, "SELECT head_seq FROM lopen_data.sessions")
			say(t, sess, "1")
			arrives(t, sess)
			by(t, url, first)
			was := there(t, url, sess.ID(), sess.Incarnation())
			head := ask[int64](t, url, "SELECT head_seq FROM lopen_data.sessions")
			say(t, sess, "2")
			err := sess.Replicated(t.Context())
			fenced := (*fleet.FencedError)(nil)
			require.ErrorAs(t, err, &fenced)
			require.EqualValues(t, head, fenced.Head)
			requireLines(t, was, there(t, url, sess.ID(), sess.Incarnation()))
			require.EqualValues(t, head, ask[int64](t, url, "SELECT head_seq FROM lopen_data.sessions"))
			var last error
			until(t, "the session is fenced", func() bool {
				last = sess.Save(nil, session.TriggerStepCompleted)
				if last == nil {
					last = sess.Sync(t.Context())
				}
				return last != nil
			})
			require.Equal(t, lifecycle.ClassFenced, lifecycle.ClassOf(last), "%v", last)
			require.Error(t, sess.Unpause(t.Context()), "only a person goes on")
			require.Equal(t, lifecycle.ClassFenced, lifecycle.ClassOf(sess.Close(t.Context())))
			require.Contains(t, said(t, a, sess.ID()), "2", "what was done here is here")
		})
	}
}

// continued has another machine continue the session, and puts the lease back as it was.
func continued(t *testing.T, url string) {
	t.Helper()
	holder, term := ask[string](t, url, "SELECT holder FROM lopen_data.sessions"), ask[int64](t, url, "SELECT term FROM lopen_data.sessions")
	execute(t, url, "UPDATE lopen_data.sessions SET holder = NULL")
	b := newMachine(t, "b", url)
	sess := b.resume(t, b.pull(t, "auth").ID)
	say(t, sess, "other")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	execute(t, url, "UPDATE lopen_data.sessions SET holder = $1, term = $2", holder, term)
}

// A batch is written under the term that the row has, also where this process holds a newer one.
func TestBatchOfAnOlderTerm(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachineWith(t, "a", url, logsNothing)
	sess := a.create(t, "auth")
	say(t, sess, "1")
	arrives(t, sess)
	term := ask[int64](t, url, "UPDATE lopen_data.sessions SET term = term + 1 RETURNING term")
	say(t, sess, "2")
	arrives(t, sess)
	require.Greater(t, ask[int64](t, url, "SELECT term FROM lopen_data.sessions"), term, "the lease was taken again before it")
}

// A folder that was put back from an older copy, with a note that names the newest record, ships nothing
// behind that record.
func TestOlderCopyOfTheFolder(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachineWith(t, "a", url, logsNothing)
	sess := a.create(t, "auth")
	say(t, sess, "1")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	dir := filepath.Join(a.store.Path(), "sessions", sess.ID().String())
	older := filepath.Join(t.TempDir(), "older")
	require.NoError(t, os.CopyFS(older, os.DirFS(dir)))
	sess = a.resume(t, sess.ID())
	say(t, sess, "2", "3", "4", "5")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	there1 := there(t, url, sess.ID(), a.store.Incarnation(sess.ID()))

	newest, err := os.ReadFile(filepath.Join(dir, "fleet.json"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.CopyFS(dir, os.DirFS(older)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fleet.json"), newest, 0o600))
	x := find(t, a, "auth")
	rel, _, err := a.Relate(t.Context(), a.store, &x)
	require.NoError(t, err)
	require.Equal(t, fleet.Behind, rel)
	sess = a.resume(t, sess.ID())
	_ = sess.Append(message("other")) // it may be fenced by now
	_ = sess.Sync(t.Context())
	until(t, "the shipper finds out", func() bool { return errors.As(sess.Err(), new(*fleet.FencedError)) })
	_ = sess.Close(t.Context()) // it is fenced
	requireLines(t, there1, there(t, url, sess.ID(), a.store.Incarnation(sess.ID())))
}

// After the project has left nothing is said to the database of a module that runs: its lease ends by itself.
func TestNothingIsClaimedAfterLeaving(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := hasty(t, "a", url)
	for _, module := range []string{"auth", "web"} {
		plans(t, a, module)
		_, err := a.PushPlan(t.Context(), a.store, module, false)
		require.NoError(t, err)
	}
	var left atomic.Bool
	f, err := fleet.Open(fleet.Options{URL: url, Project: "p", Joined: func() bool { return !left.Load() }})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	f.Hasten(quick, quick)
	c, _, err := f.Claim(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Equal(t, "auth", c.Module)
	left.Store(true)
	_, _, err = f.Claim(t.Context(), nil, nil)
	require.ErrorIs(t, err, fleet.ErrLeft)
	const held = "SELECT count(*) FROM lopen_data.plans WHERE holder IS NOT NULL"
	until(t, "the lease ends", func() bool { return ask[int](t, url, held+" AND lease_until > clock_timestamp()") == 0 })
	require.ErrorIs(t, c.GiveBack(t.Context(), true), fleet.ErrLeft)
	require.Equal(t, 1, ask[int](t, url, held+" AND retry_at <= clock_timestamp()"), "auth is as it was")
}
