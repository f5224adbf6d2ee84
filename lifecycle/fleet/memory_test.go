package fleet_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// heap is how many bytes are in use, in this whole process.
func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// However long the database is away, the backlog is on the disk, and not in memory; neither is it when it
// is shipped. The test is not parallel, since it looks at the memory of the process.
func TestBacklogIsNotInMemory(t *testing.T) { //nolint:paralleltest // see above
	if testing.Short() {
		t.Skip("it writes a log of 40 MB")
	}
	s := pgtest.Start(t, pgtest.Options{}) // a proxy would be in this process
	url := s.Create("fleet")
	m := newMachineWith(t, "a", url, logsNothing)
	sess := m.create(t, "auth")
	arrives(t, sess)
	// A batch of 1 MiB, or 4 MiB of objects, takes several times that on its way: as hexadecimal text.
	const backlog, idle, busy = 40 << 20, 16 << 20, 64 << 20
	before := heap()
	s.Pause()
	text := strings.Repeat("0123456789", 20_000)
	for range backlog / len(text) {
		say(t, sess, text)
	}
	m.write(t, "large.bin", strings.Repeat(text, 150)) // an object of 29 chunks
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.Less(t, heap()-before, int64(idle), "while the database is away")
	s.Resume()
	most := int64(0)
	until(t, "all arrives", func() bool {
		most = max(most, heap()-before)
		acked, here := sess.Lag()
		return acked == here
	})
	require.Less(t, most, int64(busy), "while it is shipped")
	t.Logf("%d KiB more at most", most>>10)
	require.Len(t, there(t, url, sess.ID(), sess.Incarnation()), ask[int](t, url, "SELECT head_seq FROM lopen_data.sessions"))
}

// Of many sessions with a backlog four have a batch in memory, however long the database does not answer.
// The test is not parallel, since it looks at the memory of the process.
func TestFourBatchesInMemory(t *testing.T) { //nolint:paralleltest // see above
	if testing.Short() {
		t.Skip("it waits for a database that does not answer")
	}
	s := pgtest.Start(t, pgtest.Options{})
	url := s.Create("fleet")
	m := newMachineWith(t, "a", url, logsNothing)
	var all []*fleet.Session
	for i := range 24 {
		all = append(all, m.create(t, fmt.Sprintf("module%02d", i)))
	}
	for _, sess := range all {
		arrives(t, sess)
	}
	s.Pause()
	text := strings.Repeat("0123456789", 100_000) // a batch of its own
	before, used := heap(), int64(0)
	for _, sess := range all {
		say(t, sess, text)
	}
	until(t, "the first one gives up", func() bool {
		used = max(used, heap()-before)
		return slices.ContainsFunc(all, func(s *fleet.Session) bool { return s.Err() != nil })
	})
	s.Resume()
	t.Logf("%d KiB more at most", used>>10)
	require.Less(t, used, int64(16<<20))
	for _, sess := range all {
		arrives(t, sess)
		requireSame(t, url, m, sess.ID())
	}
}

// A session with little to ship does not wait until others have shipped their backlogs.
func TestBacklogsTakeTurns(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	proxy := pgtest.NewProxy(t, addr(t, url))
	m := newMachine(t, "a", proxy.URL(url))
	small := m.create(t, "small")
	arrives(t, small)
	var local []*lifecycle.Session
	for i := range 4 {
		s, err := m.store.Create(t.Context(), fmt.Sprintf("large%d", i))
		require.NoError(t, err)
		for range 60 { // twelve batches
			require.NoError(t, s.Append(message(strings.Repeat("0123456789", 20_000))))
		}
		require.NoError(t, s.Sync(t.Context()))
		local = append(local, s)
	}
	proxy.Delay(10 * time.Millisecond)
	for _, s := range local {
		m.ship(t, s)
	}
	until(t, "each one ships", func() bool {
		return ask[int](t, url, "SELECT count(*) FROM lopen_data.sessions WHERE head_seq > 0 AND module <> 'small'") == len(local)
	})
	say(t, small, "hello")
	arrives(t, small)
	most := ask[int](t, url, "SELECT max(head_seq) FROM lopen_data.sessions WHERE module <> 'small'")
	t.Logf("the others have shipped %d of their records at most", most)
	require.LessOrEqual(t, most, 60)
	proxy.Heal()
}
