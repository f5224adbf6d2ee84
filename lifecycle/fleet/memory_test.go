package fleet_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
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
