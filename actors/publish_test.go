package actors_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// screen is a disk that records the order of calls. With hold set, a job waits
// until it receives from hold.
type screen struct {
	*disk
	hold chan struct{}

	mu     sync.Mutex
	events []string // Guarded by mu.
	jobs   int      // Guarded by mu: number of running jobs.
}

func (s *screen) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

// seen returns the events since its last call.
func (s *screen) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.events
	s.events = nil
	return got
}

func (s *screen) Commit(b actors.Batch) (actors.Committed, error) {
	c, err := s.disk.Commit(b)
	s.note("commit %d", turns(b.State))
	return c, err
}

func (s *screen) Recover() error {
	s.note("recover, %d jobs", s.running(0))
	return s.disk.Recover()
}

func (s *screen) running(change int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs += change
	return s.jobs
}

func (s *screen) Publication(force bool) func() error {
	job := s.disk.Publication(force)
	if job == nil {
		return nil
	}
	s.note("publish %t", force)
	return func() error {
		if s.running(1) > 1 {
			s.note("two jobs at once")
		}
		defer s.running(-1)
		if s.hold != nil {
			<-s.hold
		}
		return job()
	}
}

func (s *screen) Published(err error) {
	s.note("published %v", err)
	s.disk.Published(err)
}

func (d *disk) count() (shown, forced, batches int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shown, d.forced, len(d.batches)
}

func (d *disk) setUnshown(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unshown = err
}

func (d *disk) setShow(show bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.show = show
}

func (d *disk) setReserve(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reserve = err
}

// requirePaused requires err to be a PausedError with this cause.
func requirePaused(t *testing.T, err, cause error, durable bool) {
	t.Helper()
	var p *actors.PausedError
	require.ErrorAs(t, err, &p)
	require.ErrorIs(t, err, cause)
	require.Equal(t, durable, p.Durable)
}

// atOnce publishes the readable files after each commit.
var atOnce = actors.Options{Quiet: -1, Every: -1}

func TestPublicationFollowsQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &screen{disk: &disk{}}
		a := actors.Start(newState(t), s, actors.Options{})
		n := 0
		save := func() {
			n++
			require.NoError(t, a.Save(turn(t, a.State(), n), session.TriggerPaused))
			require.NoError(t, a.Sync(t.Context()))
			s.seen()
		}
		begun := time.Now()
		until := func() time.Duration { // waits for the next publication
			for shown, _, _ := s.count(); ; time.Sleep(time.Millisecond) {
				synctest.Wait()
				if now, _, _ := s.count(); now > shown {
					return time.Since(begun).Round(10 * time.Millisecond)
				}
			}
		}
		save()
		require.Equal(t, 100*time.Millisecond, until(), "after a moment of quiet")
		time.Sleep(time.Second)
		save()
		require.Equal(t, 2100*time.Millisecond, until(), "not more often than every two seconds")
		time.Sleep(10 * time.Second)
		begun = time.Now()
		go func() {
			for time.Since(begun) < 3*time.Second {
				save()
				time.Sleep(50 * time.Millisecond)
			}
		}()
		require.Equal(t, 2*time.Second, until(), "of a session that is never quiet as well")
		time.Sleep(10 * time.Second)
		synctest.Wait() // for the goroutine that saves
		s.seen()
		require.NoError(t, a.Sync(t.Context()))
		time.Sleep(time.Minute)
		require.Empty(t, s.seen(), "nothing is due any more")
		begun = time.Now()
		save()
		require.Equal(t, 100*time.Millisecond, until())
		s.setShow(true)
		before, _, _ := s.count()
		save()
		synctest.Wait()
		shown, _, _ := s.count()
		require.Equal(t, before+1, shown, "what is to be shown at once does not wait")
		require.NoError(t, a.Close(t.Context()))
	})
}

func TestCommitsDuringAPublication(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &screen{disk: &disk{}, hold: make(chan struct{})}
		a := actors.Start(newState(t), s, atOnce)
		for i := 1; i <= 3; i++ {
			require.NoError(t, a.Save(turn(t, a.State(), i), session.TriggerPaused))
			require.NoError(t, a.Sync(t.Context()), "nobody who waits for the disk waits for the readers' files")
			synctest.Wait()
		}
		require.Equal(t, []string{"commit 1", "publish false", "commit 2", "commit 3"}, s.seen(), "one job at a time")
		s.hold <- struct{}{}
		synctest.Wait()
		require.Equal(t, []string{"published <nil>", "publish false"}, s.seen(), "what came meanwhile is shown next")
		s.hold <- struct{}{}
		synctest.Wait()
		shown, forced, n := s.count()
		require.Equal(t, []int{3, 0, 3}, []int{shown, forced, n})
		require.NoError(t, a.Sync(t.Context()))
		require.Equal(t, []string{"published <nil>"}, s.seen(), "nothing is due any more")
		require.NoError(t, a.Close(t.Context()))
	})
}

func TestFlushShowsAndSyncDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &screen{disk: &disk{}, hold: make(chan struct{})}
		a := actors.Start(newState(t), s, atOnce)
		require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
		synctest.Wait()
		require.NoError(t, a.Save(turn(t, a.State(), 2), session.TriggerPaused))
		require.NoError(t, a.Sync(t.Context()))
		shown, forced, _ := s.count()
		require.Zero(t, forced, "Sync does not force")
		require.Zero(t, shown, "and does not wait for the files")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, a.Flush(ctx), context.DeadlineExceeded, "Flush waits for the job that goes on")
		flushed := make(chan error, 1)
		go func() { flushed <- a.Flush(t.Context()) }()
		s.seen()
		for len(flushed) == 0 {
			synctest.Wait()
			select {
			case s.hold <- struct{}{}:
			default:
			}
		}
		require.NoError(t, <-flushed)
		shown, forced, n := s.count()
		require.Equal(t, 2, n)
		require.Equal(t, n, shown, "the files show the newest State")
		require.Positive(t, forced)
		require.Contains(t, s.seen(), "publish true")
		require.NoError(t, a.Close(t.Context()))
	})
}

func TestFlushForcesEvenWithNothingToCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		a := actors.Start(newState(t), d, atOnce)
		require.NoError(t, a.Flush(t.Context()))
		_, forced, n := d.count()
		require.Equal(t, 1, forced)
		require.Zero(t, n)
		require.NoError(t, a.Update(func(st *session.State) (*session.State, error) { return turn(t, st, 5), nil }))
		require.NoError(t, a.Flush(t.Context()), "it commits what no Save announced")
		shown, forced, n := d.count()
		require.Equal(t, []int{1, 2, 1}, []int{shown, forced, n})
		require.NoError(t, a.Close(t.Context()))
	})
}

// TestAutosave commits what Updates changed, once an interval, and nothing else.
func TestAutosave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		a := actors.Start(newState(t), d, actors.Options{Autosave: time.Minute})
		update := func(n int) {
			require.NoError(t, a.Update(func(st *session.State) (*session.State, error) { return turn(t, st, n), nil }))
		}
		time.Sleep(time.Hour)
		require.Empty(t, d.commits(), "nothing changed")
		for n := 1; n <= 5; n++ { // within one interval
			update(n)
			time.Sleep(10 * time.Second)
		}
		require.Empty(t, d.commits())
		time.Sleep(time.Minute)
		require.Len(t, d.commits(), 1)
		require.Equal(t, 5, turns(d.commits()[0].State))
		update(6)
		require.NoError(t, a.Sync(t.Context()))
		time.Sleep(time.Hour)
		require.Len(t, d.commits(), 2, "what was synced is not saved again")

		d.setFail(errors.New("full"))
		update(7)
		time.Sleep(time.Hour)
		require.Error(t, a.Paused())
		_ = a.Update(func(st *session.State) (*session.State, error) { return turn(t, st, 8), nil })
		time.Sleep(time.Hour)
		d.setFail(nil)
		require.NoError(t, a.Unpause(t.Context()))
		require.Equal(t, 8, turns(d.commits()[2].State))
		require.NoError(t, a.Close(t.Context()))
	})
}
