package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Of many machines that pull a session at once one has it, and the others learn who.
func TestTwoPullAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	sess := a.create(t, "auth")
	say(t, sess, "hello")
	arrives(t, sess)
	id := sess.ID()
	require.NoError(t, sess.Close(t.Context()))

	const many = 4
	var all [many]*machine
	for i := range all {
		all[i] = newMachine(t, fmt.Sprint("m", i), url)
	}
	var errs [many]error
	var wg sync.WaitGroup
	for i, m := range all {
		wg.Go(func() {
			x, err := m.Find(t.Context(), id.String())
			if errs[i] = err; err == nil {
				_, errs[i] = m.Pull(t.Context(), m.store, &x)
			}
		})
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, won, "two have it")
			won = i
		}
	}
	require.NotEqual(t, -1, won, "%v", errs)
	for i, err := range errs {
		var held *fleet.HeldError
		if i != won {
			require.ErrorAs(t, err, &held)
			require.Equal(t, fmt.Sprint("m", won), held.Host)
			require.Empty(t, all[i].store.Incarnation(id))
		}
	}
	sess = all[won].resume(t, id)
	say(t, sess, "more")
	arrives(t, sess)
	requireSame(t, url, all[won], id)
}

func TestPullOfATakenID(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := newMachine(t, "a", url), newMachine(t, "b", url)
	one, two := a.create(t, "auth"), b.create(t, "auth")
	require.Equal(t, one.ID(), two.ID(), "two machines make the same ID on one day")
	say(t, one, "one")
	arrives(t, one)
	say(t, two, "two")
	arrives(t, two)
	requireSame(t, url, a, one.ID())
	requireSame(t, url, b, two.ID())
	require.NoError(t, one.Close(t.Context()))
	require.NoError(t, two.Close(t.Context()))

	all, err := b.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, all, 2)
	x := all[0]
	if x.Incarnation == two.Incarnation() {
		x = all[1]
	}
	p, err := b.Pull(t.Context(), b.store, &x)
	require.NoError(t, err)
	require.Equal(t, fleet.Absent, p.Was)
	require.NotEqual(t, x.ID, p.ID)
	require.Equal(t, []string{"one"}, said(t, b, p.ID))
	require.Equal(t, []string{"two"}, said(t, b, two.ID()))

	three := b.resume(t, p.ID) // is another session of the fleet
	say(t, three, "three")
	arrives(t, three)
	all, err = b.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, []string{"one"}, textsOf(t, there(t, url, x.ID, x.Incarnation)))
}

// The four relations of a copy that is here.
func TestPullBySituation(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := newMachine(t, "a", url), newMachine(t, "b", url)
	sess := a.create(t, "auth")
	id := sess.ID()
	say(t, sess, "1")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	require.Equal(t, fleet.Absent, b.pull(t, "auth").Was)
	require.Equal(t, fleet.Same, b.pull(t, "auth").Was)

	sess = b.resume(t, id)
	say(t, sess, "2")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	require.Equal(t, fleet.Same, b.pull(t, "auth").Was)
	b.Close()
	p := a.pull(t, "auth")
	require.Equal(t, fleet.Behind, p.Was)
	require.Equal(t, id, p.ID)
	require.Zero(t, p.Fork)
	require.Equal(t, []string{"1", "2"}, said(t, a, id))
	require.Equal(t, fleet.Same, a.pull(t, "auth").Was)

	s, err := a.store.Open(id)
	require.NoError(t, err)
	require.NoError(t, s.Append(message("3")))
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, fleet.Ahead, a.pull(t, "auth").Was)
	require.Equal(t, []string{"1", "2", "3"}, said(t, a, id))
	sess = a.resume(t, id)
	arrives(t, sess)
	requireSame(t, url, a, id)
	require.NoError(t, sess.Close(t.Context()))
	a.Close()

	b.Fleet = open(t, "b", url) // has 1 and 2, and says something else meanwhile
	s, err = b.store.Open(id)
	require.NoError(t, err)
	require.NoError(t, s.Append(message("mine")))
	require.NoError(t, s.Close(t.Context()))
	p = b.pull(t, "auth")
	require.Equal(t, fleet.Diverged, p.Was)
	require.Equal(t, []string{"1", "2", "3"}, said(t, b, p.ID))
	require.Equal(t, []string{"1", "2", "mine"}, said(t, b, p.Fork))
	meta, err := b.store.Meta(p.Fork)
	require.NoError(t, err)
	require.Contains(t, meta.Name, "as b had it when a took it")
	sess = b.resume(t, id)
	say(t, sess, "4")
	arrives(t, sess)
	requireSame(t, url, b, id)
}

func TestForkIsShippedAndPulled(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := newMachine(t, "a", url), newMachine(t, "b", url)
	parent := a.create(t, "auth")
	a.write(t, "main.go", "package main\n")
	say(t, parent, "1", "2")
	_, _, err := parent.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	child, err := a.store.Fork(t.Context(), parent.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, child.Append(message("3")))
	require.NoError(t, child.Sync(t.Context()))
	again, err := a.store.Fork(t.Context(), child.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, child.Close(t.Context()))
	require.NoError(t, parent.Close(t.Context()))

	sess := a.ship(t, again)
	say(t, sess, "4")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	require.Equal(t, []string{"1", "2", "3", "4"}, said(t, a, again.ID()))
	p := b.pull(t, again.ID().String())
	require.Equal(t, []string{"1", "2", "3", "4"}, said(t, b, p.ID))
	_, err = b.store.Verify(p.ID)
	require.NoError(t, err)
	sess = b.resume(t, p.ID)
	say(t, sess, "5")
	arrives(t, sess)
	requireSame(t, url, b, p.ID)
	requireCheckpoints(t, b, p.ID, "main.go", "package main\n")
}

// requireCheckpoints rewinds a session to its newest checkpoint and requires that a file has a content.
func requireCheckpoints(t *testing.T, m *machine, id session.ID, name, content string) {
	t.Helper()
	cps, err := m.store.Checkpoints(nil)
	require.NoError(t, err)
	defer cps.Close()
	line, err := m.store.CheckpointLine(cps, id)
	require.NoError(t, err)
	require.NotEmpty(t, line)
	others, err := cps.Others()
	require.NoError(t, err)
	for _, chain := range append(others, cps.Store) {
		all, _, err := chain.List()
		require.NoError(t, err)
		for _, e := range all {
			if !line[e.ID] || e.Removed != "" {
				continue
			}
			_, err := m.store.PlanRewind(t.Context(), id, e.ID, rewind.Options{Files: true})
			require.NoError(t, err)
			f, _, err := chain.Tree(e.Root).Find(name)
			require.NoError(t, err)
			require.NotNil(t, f, "checkpoint %d has no %s", e.Number, name)
			require.EqualValues(t, len(content), f.Size)
			return
		}
	}
	require.Fail(t, "no checkpoint of the session is here")
}

// Large files come in several chunks, and a folder of many names is itself a large object.
func TestLargeCheckpoint(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it writes 22,000 files")
	}
	url := pgtest.Database(t)
	a, b := newMachine(t, "a", url), newMachine(t, "b", url)
	large := strings.Repeat("0123456789abcdef", 200_000) + "end" // 3.2 MB
	a.write(t, "large.bin", large)
	const names = 22_000
	for i := range names {
		a.write(t, fmt.Sprintf("many/a-rather-long-name-of-a-file-%06d", i), fmt.Sprint(i%100))
	}
	sess := a.create(t, "auth")
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	require.GreaterOrEqual(t, ask[int64](t, url, "SELECT count(*) FROM (SELECT hash FROM lopen_data.chunks GROUP BY hash HAVING count(*) > 1) x"), int64(2),
		"the file and the folder")
	p := b.pull(t, "auth")
	requireCheckpoints(t, b, p.ID, "large.bin", large)
	_, damaged, err := b.store.VerifyBlobs(t.Context())
	require.NoError(t, err)
	require.Empty(t, damaged)
}

// A session that was made again after its folder was removed is another one of the fleet.
func TestMadeAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	sess := a.create(t, "auth")
	say(t, sess, "before")
	arrives(t, sess)
	was := sess.Incarnation()
	until(t, "the folder is removed, though files are made in it", func() bool {
		return os.RemoveAll(filepath.Join(a.store.Path(), "sessions", sess.ID().String())) == nil
	})
	until(t, "the session is made again", func() bool {
		_ = sess.Append(message("after"))
		_ = sess.Sync(t.Context())
		_ = sess.Unpause(t.Context())
		return sess.Incarnation() != was
	})
	arrives(t, sess)
	require.Equal(t, []string{"before"}, textsOf(t, there(t, url, sess.ID(), was)))
	requireSame(t, url, a, sess.ID())
	all, err := a.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.False(t, all[0].Held && all[1].Held, "the lease of what is gone is given back")
}
