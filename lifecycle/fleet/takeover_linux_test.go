package fleet_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// takes waits until a machine may take a session, and pulls it. Until then it is held by a host.
func (m *machine) takes(t *testing.T, name, host string) (p fleet.Pulled) {
	t.Helper()
	until(t, "the lease is over", func() bool {
		x, err := m.Find(t.Context(), name)
		require.NoError(t, err)
		var held *fleet.HeldError
		if p, err = m.Pull(t.Context(), m.store, &x); err != nil {
			require.ErrorAs(t, err, &held)
			require.Equal(t, host, held.Host)
			return false
		}
		return true
	})
	return p
}

func (r *runner) signal(t *testing.T, s unix.Signal) {
	t.Helper()
	require.NoError(t, unix.Kill(r.Process.Pid, s))
}

// TestKill9 kills runners at random moments, as often as -rounds says: another machine continues when
// the lease is over, and whatever was acknowledged is there; the machine that died ships the rest
// when nobody took the session.
func TestKill9(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a lease")
	}
	for round := range *rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			a, b := hasty(t, "a", url), hasty(t, "b", url)
			require.NoError(t, a.store.Close(t.Context())) // the runner has the folder
			r := startRunner(t, orders{Host: "a", URL: url, Dir: a.dir, Module: "auth", Lease: quick})
			id := parse(t, r.last(t, saysBegun, 1))
			r.last(t, saysAcked, 5+round%20)
			time.Sleep(time.Duration(round%7) * time.Millisecond) // the moment is the round's own
			require.NoError(t, r.Process.Kill())
			<-r.ended
			acked, err := strconv.Atoi(r.last(t, saysAcked, 1))
			require.NoError(t, err)

			p := b.takes(t, "auth", "a")
			require.Equal(t, id, p.ID)
			texts := said(t, b, id)
			require.GreaterOrEqual(t, len(texts), acked)
			for i, text := range texts {
				require.Equal(t, fmt.Sprintf("a-%d", i), text)
			}
			sess := b.resume(t, id)
			say(t, sess, "b-0")
			arrives(t, sess)
			require.Equal(t, append(texts, "b-0"), textsOf(t, there(t, url, id, sess.Incarnation())))
			require.NoError(t, sess.Close(t.Context()))
		})
	}
}

func parse(t *testing.T, text string) session.ID {
	t.Helper()
	id, err := session.ParseID(text)
	require.NoError(t, err, "%q", text)
	return id
}

// A runner that is started again after a kill resumes its own session at once.
func TestResumesItsOwn(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	require.NoError(t, a.store.Close(t.Context()))
	r := startRunner(t, orders{Host: "a", URL: url, Dir: a.dir, Module: "auth", Lease: fleet.Lease})
	id := r.last(t, saysBegun, 1)
	r.last(t, saysAcked, 3)
	require.NoError(t, r.Process.Kill())
	<-r.ended
	again := startRunner(t, orders{Host: "again", URL: url, Dir: a.dir, ID: id, Lease: fleet.Lease})
	again.last(t, saysAcked, 3)
	require.Empty(t, again.says(saysFenced))
	require.NoError(t, again.Process.Kill())
	<-again.ended
	said := r.says(saysSaid)
	var err error
	a.store, err = lifecycle.Open(a.dir, lifecycle.Options{})
	require.NoError(t, err)
	texts := textsOf(t, there(t, url, parse(t, id), a.store.Incarnation(parse(t, id))))
	require.Contains(t, texts, fmt.Sprintf("a-%d", len(said)-1), "the last one that it said before the kill")
	require.Contains(t, texts, "again-2")
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(texts))), len(texts))
}

// A runner that was stopped for longer than its lease, and then goes on, finds out that another one took
// the session: it is fenced, ships nothing over, and what it did is kept as a fork.
func TestStoppedRunnerIsFenced(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a lease")
	}
	url := pgtest.Database(t)
	a, b := hasty(t, "a", url), hasty(t, "b", url)
	require.NoError(t, a.store.Close(t.Context()))
	proxy := pgtest.NewProxy(t, addr(t, url))
	r := startRunner(t, orders{Host: "a", URL: proxy.URL(url), Dir: a.dir, Module: "auth", Lease: quick})
	id := parse(t, r.last(t, saysBegun, 1))
	r.last(t, saysAcked, 5)
	proxy.Drop() // so that it does something of which the database does not know
	r.last(t, saysSaid, len(r.says(saysSaid))+5)
	r.signal(t, unix.SIGSTOP)
	acked := len(r.says(saysAcked))

	b.takes(t, "auth", "a")
	sess := b.resume(t, id)
	say(t, sess, "b-0", "b-1")
	arrives(t, sess)
	taken := there(t, url, id, sess.Incarnation())

	proxy.Heal()
	r.signal(t, unix.SIGCONT)
	require.Contains(t, r.last(t, saysFenced, 1), "was taken by b")
	fork := parse(t, r.last(t, saysFork, 1))
	<-r.ended
	require.Len(t, r.says(saysAcked), acked)

	requireLines(t, taken, there(t, url, id, sess.Incarnation()))
	say(t, sess, "b-2")
	arrives(t, sess)
	texts := textsOf(t, there(t, url, id, sess.Incarnation()))
	require.Equal(t, []string{"b-0", "b-1", "b-2"}, texts[len(texts)-3:])
	require.GreaterOrEqual(t, len(texts)-3, acked)

	var err error
	a.store, err = lifecycle.Open(a.dir, lifecycle.Options{})
	require.NoError(t, err)
	kept := said(t, a, fork)
	require.GreaterOrEqual(t, len(kept), len(r.says(saysSaid)), "what it said is in the fork")
	for i, text := range kept {
		require.Equal(t, fmt.Sprintf("a-%d", i), text)
	}
	meta, err := a.store.Meta(fork)
	require.NoError(t, err)
	require.Contains(t, meta.Name, "as a had it when b took it")
	// A pull brings what the other one did, and makes no second fork.
	require.NoError(t, sess.Close(t.Context()))
	p := a.pull(t, "auth")
	require.Equal(t, fleet.Diverged, p.Was)
	require.Equal(t, fork, p.Fork)
	require.Equal(t, texts, said(t, a, id))
	s := a.resume(t, fork) // and the fork is a session like others
	arrives(t, s)
	requireSame(t, url, a, fork)
}

// A session whose lease ended while its machine was away, and that nobody took, goes on.
func TestNobodyTookIt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a lease")
	}
	url := pgtest.Database(t)
	proxy := pgtest.NewProxy(t, addr(t, url))
	a := hasty(t, "a", proxy.URL(url))
	sess := a.create(t, "auth")
	say(t, sess, "1")
	arrives(t, sess)
	proxy.Hang()
	say(t, sess, "2")
	until(t, "the lease ends", func() bool { return !find(t, hastyLooker(t, url), "auth").Held })
	proxy.Heal()
	arrives(t, sess)
	requireSame(t, url, a, sess.ID())
	require.NoError(t, sess.Err())
}

func hastyLooker(t *testing.T, url string) *machine { return &machine{Fleet: open(t, "looks", url)} }

// Of a module each runner claims another one, and one that dies gives its own back.
func TestClaimsOfManyProcesses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for a lease")
	}
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	const runners, modules = 4, 10
	var want []string
	for i := range modules {
		want = append(want, fmt.Sprintf("module%02d", i))
		plans(t, a, want[i])
		_, err := a.PushPlan(t.Context(), a.store, want[i], false)
		require.NoError(t, err)
	}
	var all []*runner
	for i := range runners {
		all = append(all, startRunner(t, orders{Host: fmt.Sprint("r", i), URL: url, Dir: t.TempDir(), Lease: quick, Claim: true}))
	}
	for range modules {
		for _, r := range all {
			_, err := fmt.Fprintln(r.in)
			require.NoError(t, err)
		}
	}
	var got []string
	for _, r := range all {
		r.last(t, saysClaim, modules)
		got = append(got, r.claimed()...)
	}
	slices.Sort(got)
	require.Equal(t, want, got, "each module once")
	dead := slices.IndexFunc(all, func(r *runner) bool { return len(r.claimed()) > 0 })
	back := all[dead].claimed()
	require.NoError(t, all[dead].Process.Kill())
	<-all[dead].ended
	var again []string
	until(t, "the modules of the runner that died come back", func() bool {
		c, held, err := a.Claim(t.Context(), nil, nil)
		require.NoError(t, err)
		if c != nil {
			again = append(again, c.Module)
			return len(again) == len(back)
		}
		require.True(t, held)
		return false
	})
	require.ElementsMatch(t, back, again)
	require.Nil(t, firstClaim(t, a), "the others are held")
}

// claimed returns the modules that a runner has.
func (r *runner) claimed() []string {
	return slices.DeleteFunc(slices.Clone(r.says(saysClaim)), func(s string) bool { return strings.TrimSpace(s) == "" })
}
