package lifecycle_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

const oneDay = 24 * time.Hour

var week = lifecycle.Retention{Trash: 7 * oneDay}

// at prunes as a command does whose clock says that.
func at(t *testing.T, store *lifecycle.Store, now time.Time, r lifecycle.Retention) []lifecycle.Retired {
	t.Helper()
	s, err := lifecycle.Open(filepath.Dir(store.Path()), lifecycle.Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.Background())) }()
	gone, err := s.Prune(t.Context(), r, false)
	require.NoError(t, err)
	return gone
}

// emptied prunes as the commands of three days do, and returns what was deleted for good.
func emptied(t *testing.T, store *lifecycle.Store) (gone []lifecycle.Retired) {
	t.Helper()
	for _, days := range []time.Duration{10, 12, 14} {
		gone = append(gone, at(t, store, day.Add(days*oneDay), week)...)
	}
	return gone
}

// Clocks are wrong for one command, in either direction. No session is deleted for good before two
// commands that are a day apart agree, and in the end each one is.
func TestNothingIsDeletedOnTheWordOfOneClock(t *testing.T) {
	t.Parallel()
	long := time.Unix(0, 0)
	for name, c := range map[string]struct {
		moved time.Time   // the clock of the command that moves the session to the trash, on the first day
		wrong []time.Time // those of the commands on the second day
		kept  int         // days for which the session stays at least
		gone  int         // and at most
	}{
		"right":                  {day, nil, 9, 11},
		"ten days ahead":         {day, []time.Time{day.Add(10 * oneDay)}, 9, 11},
		"ahead, and right again": {day, []time.Time{day.Add(10 * oneDay), day.Add(oneDay)}, 9, 11},
		"ahead for two commands": {day, []time.Time{day.Add(10 * oneDay), day.Add(12 * oneDay)}, 9, 11},
		"ahead now and then": {day, []time.Time{
			day.Add(10 * oneDay), day.Add(oneDay), day.Add(12 * oneDay), day.Add(oneDay), day.Add(12*oneDay + time.Hour),
		}, 9, 11},
		"ten years ahead":           {day, []time.Time{day.Add(3650 * oneDay)}, 9, 11},
		"1970":                      {day, []time.Time{long}, 9, 11},
		"moved in 1970":             {long, []time.Time{day.Add(oneDay)}, 7, 11},
		"moved ten years ahead":     {day.Add(3650 * oneDay), nil, 9, 13},
		"moved ten days ahead":      {day.Add(10 * oneDay), nil, 9, 22},
		"moved ahead, then in 1970": {day.Add(3650 * oneDay), []time.Time{long}, 3, 13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			id := completed(t, store, "auth")
			require.Len(t, at(t, store, c.moved.Add(time.Minute), lifecycle.Retention{Bytes: 1}), 1)
			for _, now := range c.wrong {
				require.Empty(t, at(t, store, now, week))
			}
			for days := 1; ; days++ {
				gone := at(t, store, day.Add(time.Duration(days)*oneDay+2*time.Minute), week)
				if len(gone) > 0 {
					require.Equal(t, []session.ID{id}, retiredIDs(gone))
					require.GreaterOrEqual(t, days, c.kept)
					return
				}
				require.LessOrEqual(t, days, c.gone, "clean-up goes on")
			}
		})
	}
}

// A mark of a clock that was ahead does not keep for years what is due.
func TestMarkInTheFuture(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	_ = completed(t, store, "auth")
	require.Len(t, at(t, store, day.Add(time.Minute), lifecycle.Retention{Bytes: 1}), 1)
	require.Empty(t, at(t, store, day.Add(3650*oneDay), week))
	require.Len(t, emptied(t, store), 1)
}

// Of twenty random histories with a wrong clock now and then, but never in two commands in a row,
// none deletes a session for good that is not due by the true clock.
func TestRandomClocks(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	store := initStore(t)
	for range 20 {
		id := completed(t, store, "auth")
		require.Len(t, at(t, store, day.Add(time.Minute), lifecycle.Retention{Bytes: 1}), 1)
		truth, wrong, done := day.Add(time.Minute), false, false
		for n := 0; n < 60 && !done; n++ {
			truth = truth.Add(time.Duration(rnd.IntN(40)) * time.Hour)
			now := truth
			if wrong = !wrong && n < 40 && rnd.IntN(3) == 0; wrong {
				now = truth.Add(time.Duration(rnd.IntN(2*4000*24)-4000*24) * time.Hour)
			}
			if done = len(at(t, store, now, week)) > 0; done {
				require.Greater(t, truth.Sub(day), 7*oneDay, "the session %s", id)
			}
		}
		require.True(t, done, "clean-up goes on")
	}
}

// A session that was completed in the future takes nobody's slot.
func TestCompletedInTheFuture(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	first := completed(t, store, "auth")
	ahead, err := lifecycle.Open(filepath.Dir(store.Path()), lifecycle.Options{Now: func() time.Time { return day.Add(3650 * oneDay) }})
	require.NoError(t, err)
	future := completed(t, ahead, "auth")
	require.NoError(t, ahead.Close(t.Context()))
	require.Equal(t, []session.ID{future}, retiredIDs(at(t, store, day.Add(time.Hour), lifecycle.Retention{Sessions: 1})))
	require.DirExists(t, path(store, "sessions", first.String()))
}

// Doctor and a dry run say why a session that is due is not deleted yet.
func TestDoctorSaysWhatIsMarked(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := completed(t, store, "auth")
	require.Len(t, at(t, store, day.Add(time.Minute), lifecycle.Retention{Bytes: 1}), 1)
	require.Empty(t, at(t, store, day.Add(10*oneDay), week))
	later, err := lifecycle.Open(filepath.Dir(store.Path()), lifecycle.Options{Now: func() time.Time { return day.Add(10*oneDay + time.Hour) }})
	require.NoError(t, err)
	defer func() { require.NoError(t, later.Close(context.Background())) }()
	found := ""
	for _, c := range later.Doctor(t.Context()) {
		if c.Name == id.String() {
			found = c.Found
		}
	}
	require.Contains(t, found, "marked on "+day.Add(10*oneDay).Local().Format("2006-01-02 15:04"))
	stays, err := later.Prune(t.Context(), week, true)
	require.NoError(t, err)
	require.Equal(t, []session.ID{id}, retiredIDs(stays))
	require.Equal(t, day.Add(10*oneDay).UTC(), stays[0].Marked.UTC())
}
