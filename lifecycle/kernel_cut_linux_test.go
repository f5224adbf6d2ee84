package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
)

// TestPowerCut cuts the power at random moments while a process saves as fast as
// it can, as often as -cuts says, on one file system and in one session. Whatever
// was acknowledged before is there when the file system is mounted again. Of what
// was acknowledged after the cut, when a real machine would have been off, some is
// not: ext4 and xfs that are shut down may still answer an fdatasync that was under
// way with success.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := newImage(t, kind)
			lost := 0
			h := newHammer(t, m.dir, uint64(len(kind)))
			for range *cuts {
				h.strike(t, 150*time.Millisecond, func(s *saver) int64 {
					// The control of this test: what nobody synced must be lost.
					control := filepath.Join(m.dir, fmt.Sprintf("unsynced-%d", h.strikes))
					require.NoError(t, os.WriteFile(control, []byte(strings.Repeat("unsynced", 1<<10)), 0o600))
					at := m.cut(t)
					s.end(t)
					m.again(t)
					if data, _ := os.ReadFile(control); len(data) == 0 {
						lost++
					}
					return at
				})
			}
			t.Logf("%d cuts, %d acknowledged saves, %d records there; %d of %d unsynced files lost; fdatasync lied %d times after the cut", h.strikes, h.acked, h.records, lost, h.strikes, h.late)
			require.NotZero(t, lost, "or the power was never cut")
		})
	}
}

// TestKill9 kills a process that saves as fast as it can at random moments, as
// often as -kills says.
func TestKill9(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		*kills = min(*kills, 5)
	}
	strikes, acked, records := 0, 0, uint64(0)
	for strikes < *kills { // a session each time, as a check reads its whole journal
		h := newHammer(t, t.TempDir(), 9+uint64(strikes))
		for range min(10, *kills-strikes) {
			h.strike(t, 40*time.Millisecond, func(s *saver) int64 {
				require.NoError(t, s.cmd.Process.Kill())
				s.end(t)
				return now()
			})
		}
		strikes, acked, records = strikes+h.strikes, acked+h.acked, records+h.records
	}
	t.Logf("%d kills, %d acknowledged saves, %d records there", strikes, acked, records)
}

// hammer strikes one session again and again while it is saved.
type hammer struct {
	project string
	rnd     *rand.Rand
	turn    int // of the newest State that must be there
	durable int // of the newest State that a process saw acknowledged as durable
	strikes int
	acked   int    // how many must be there, of those that were struck
	late    int    // how many processes got an acknowledgement after the blow that is not there
	records uint64 // of the journal
}

func newHammer(t *testing.T, project string, stream uint64) *hammer {
	t.Helper()
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("go test ./lifecycle -run '%s' -cuts %d -kills %d -seed %d", t.Name(), *cuts, *kills, n)
	store, _, err := lifecycle.Init(project, lifecycle.Options{})
	require.NoError(t, err)
	made(t, store, "auth")
	require.NoError(t, store.Close(t.Context()))
	return &hammer{project: project, rnd: rand.New(rand.NewPCG(n, stream))}
}

// strike starts a process that saves and lets blow end it at a random moment: of
// its saving, or, once in four times, of its life, so that opening is hit as well.
func (h *hammer) strike(t *testing.T, within time.Duration, blow func(*saver) int64) {
	t.Helper()
	s := startSaver(t, h.project)
	if h.rnd.IntN(4) > 0 {
		s.begun(t)
	}
	select {
	case <-time.After(time.Duration(h.rnd.Int64N(int64(within)))):
	case <-s.ended:
		s.end(t)
		require.Fail(t, "the process ended by itself", "%s", s.stderr.String())
	}
	h.strikes++
	at := blow(s)
	for _, a := range s.acks {
		h.durable = max(h.durable, a.turn)
		if a.at <= at {
			h.turn = max(h.turn, a.turn)
			h.acked++
		}
	}
	h.check(t)
}

// check uses what is there as anybody would: it verifies, logs, reads and opens the session,
// and saves it again.
func (h *hammer) check(t *testing.T) {
	t.Helper()
	store, err := lifecycle.Open(h.project, lifecycle.Options{})
	require.NoError(t, err)
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.NoError(t, infos[0].Err)
	id := infos[0].ID
	report, err := store.Verify(id)
	require.NoError(t, err)
	require.Contains(t, []repair.Condition{repair.Intact, repair.Torn}, report.Condition, "%+v", report)
	st, seq, err := store.Read(id)
	require.NoError(t, err)
	got := st.Header().TurnCount
	require.GreaterOrEqual(t, got, h.turn, "an acknowledged save is lost, strike %d", h.strikes)
	require.LessOrEqual(t, got, h.durable+1, "only one save is on its way at a time")
	if got < h.durable {
		h.late++
	}
	requireWhole(t, st)
	requireGapless(t, store, id, seq)

	sess, err := store.Open(id)
	require.NoError(t, err)
	require.Equal(t, got, sess.State().Header().TurnCount)
	requireWhole(t, sess.State())
	h.turn, h.durable = got+1, got+1
	require.NoError(t, saveTurn(sess, h.turn))
	require.NoError(t, sess.Sync(t.Context()))
	require.NoError(t, store.Close(t.Context()))

	store, err = lifecycle.Open(h.project, lifecycle.Options{})
	require.NoError(t, err)
	st, h.records, err = store.Read(id)
	require.NoError(t, err)
	require.Equal(t, h.turn, st.Header().TurnCount)
	requireGapless(t, store, id, h.records)
	report, err = store.Verify(id)
	require.NoError(t, err)
	require.Equal(t, repair.Intact, report.Condition, "%+v", report)
	require.NoError(t, store.Close(t.Context()))
}
