package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

func TestFailedPublicationPauses(t *testing.T) {
	t.Parallel()
	for name, flush := range map[string]bool{"when idle": false, "of a Flush": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				full := errors.New("no space left on device")
				s := &screen{disk: &disk{}}
				a := actors.Start(newState(t), s, atOnce)
				if flush {
					require.NoError(t, a.Update(func(st *session.State) (*session.State, error) { return turn(t, st, 1), nil }))
					s.setUnshown(full)
					requirePaused(t, a.Flush(t.Context()), full, true)
				} else {
					s.setUnshown(full)
					require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
				}
				synctest.Wait()
				requirePaused(t, a.Paused(), full, true)
				requirePaused(t, a.Sync(t.Context()), full, true)
				requirePaused(t, a.Flush(t.Context()), full, true)
				require.Len(t, a.Critical(), 1)
				requirePaused(t, <-a.Critical(), full, true)
				require.Equal(t, []string{"commit 1", fmt.Sprintf("publish %t", flush), "published " + full.Error()}, s.seen(), "not tried again by itself")

				requirePaused(t, a.Unpause(t.Context()), full, true)
				require.Equal(t, []string{"recover, 0 jobs", "publish true", "published " + full.Error()}, s.seen())
				require.Empty(t, a.Critical(), "one error a pause")

				s.setUnshown(nil)
				require.NoError(t, a.Unpause(t.Context()))
				require.NoError(t, a.Paused())
				require.Equal(t, []string{"recover, 0 jobs", "publish true", "published <nil>"}, s.seen(), "shown, and not committed twice")
				shown, _, n := s.count()
				require.Equal(t, []int{1, 1}, []int{shown, n})

				s.setUnshown(full) // Critical is armed again
				require.NoError(t, a.Save(turn(t, a.State(), 2), session.TriggerPaused))
				synctest.Wait()
				require.Len(t, a.Critical(), 1)
				s.setUnshown(nil)
				require.NoError(t, a.Close(t.Context()), "Close tries once more")
				shown, _, n = s.count()
				require.Equal(t, []int{2, 2}, []int{shown, n})
			})
		})
	}
}

// What is accepted during a publication that fails is not durable yet.
func TestFailedPublicationWithANewerState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		s := &screen{disk: &disk{}, hold: make(chan struct{})}
		s.setUnshown(full)
		a := actors.Start(newState(t), s, atOnce)
		require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
		synctest.Wait()
		require.NoError(t, a.Update(func(st *session.State) (*session.State, error) { return turn(t, st, 2), nil }))
		close(s.hold)
		synctest.Wait()
		requirePaused(t, a.Paused(), full, false)
		s.setUnshown(nil)
		require.NoError(t, a.Unpause(t.Context()))
		got := s.commits()
		require.Len(t, got, 2)
		require.Equal(t, 2, turns(got[1].State))
		require.NoError(t, a.Close(t.Context()))
	})
}

func TestPublicationThatPanicsPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := actors.Start(newState(t), &panicking{disk: &disk{}}, atOnce)
		require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
		err := <-a.Critical()
		require.ErrorContains(t, err, "a defect of the job")
		err = a.Close(t.Context())
		require.ErrorContains(t, err, "a defect of Publication")
		var lost *actors.NotDurableError
		require.NotErrorAs(t, err, &lost)
	})
}

type panicking struct{ *disk }

func (*panicking) Publication(force bool) func() error {
	if force {
		panic("a defect of Publication")
	}
	return func() error { panic("a defect of the job") }
}

func TestReserveOfTheDiskPausesADurableState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		barrier bool // a Sync, not a Save, causes the commit
		more    bool // a new State is saved during the pause
	}{"save": {}, "sync": {barrier: true}, "save, and more": {more: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				last := errors.New("it took the disk's last reserve")
				s := &screen{disk: &disk{}}
				s.setReserve(last)
				a := actors.Start(newState(t), s, atOnce)
				if c.barrier {
					require.NoError(t, a.Update(func(st *session.State) (*session.State, error) { return turn(t, st, 1), nil }))
					requirePaused(t, a.Sync(t.Context()), last, true)
				} else {
					require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
				}
				synctest.Wait()
				requirePaused(t, a.Paused(), last, true)
				require.Len(t, a.Critical(), 1)
				require.Equal(t, []string{"commit 1"}, s.seen(), "the readers' files would take more")
				require.Len(t, s.commits(), 1, "it is durable")

				want := []string{"recover, 0 jobs", "publish true", "published <nil>"}
				if c.more {
					requirePaused(t, a.Save(turn(t, a.State(), 2), session.TriggerPaused), last, true)
					synctest.Wait()
					require.Empty(t, s.seen(), "a paused actor waits")
					want = slices.Insert(want, 1, "commit 2")
				}
				require.NoError(t, a.Unpause(t.Context()))
				require.NoError(t, a.Paused())
				require.Equal(t, want, s.seen(), "no State is committed twice")
				require.NoError(t, a.Close(t.Context()))
			})
		})
	}
}

func TestReserveIsGoneAgainAtUnpause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full, last := errors.New("no space left on device"), errors.New("it took the disk's last reserve")
		s := &screen{disk: &disk{}}
		s.setFail(full)
		a := actors.Start(newState(t), s, atOnce)
		require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
		synctest.Wait()
		requirePaused(t, a.Paused(), full, false)
		s.setFail(nil)
		s.setReserve(last)
		requirePaused(t, a.Unpause(t.Context()), last, true)
		requirePaused(t, a.Paused(), last, true)
		s.seen()
		require.NoError(t, a.Unpause(t.Context()))
		require.Equal(t, []string{"recover, 0 jobs", "publish true", "published <nil>"}, s.seen())
		require.NoError(t, a.Close(t.Context()))
		require.Len(t, s.commits(), 1)
	})
}

func TestCloseSaysNotDurableOnlyWhenItIsNot(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	for name, c := range map[string]struct {
		before func(d *disk)
		save   bool // a new State is saved before Close
		lost   bool
		cause  error
		closed int
	}{
		"nothing is wrong":                {func(*disk) {}, true, false, nil, 1},
		"a commit fails":                  {func(d *disk) { d.setFail(full) }, true, true, full, 1},
		"a commit would fail, none comes": {func(d *disk) { d.setFail(full) }, false, false, nil, 1},
		"the files cannot be written":     {func(d *disk) { d.setUnshown(full) }, true, false, full, 1},
		"the last reserve was taken":      {func(d *disk) { d.setReserve(full) }, true, false, nil, 1},
	} {
		for wait, paused := range map[string]bool{"": false, ", paused by then": true} {
			t.Run(name+wait, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					d := &disk{}
					a := actors.Start(newState(t), d, atOnce)
					require.NoError(t, a.Flush(t.Context()))
					c.before(d)
					if c.save {
						require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
					}
					if paused {
						synctest.Wait()
					}
					err := a.Close(t.Context())
					var lost *actors.NotDurableError
					if c.lost {
						require.ErrorAs(t, err, &lost)
						require.EqualValues(t, 1, lost.Saves)
					} else {
						require.NotErrorAs(t, err, &lost)
						require.Equal(t, turns(a.State()) > 0, len(d.commits()) > 0)
					}
					if c.cause != nil {
						require.ErrorIs(t, err, c.cause)
					}
					require.Equal(t, c.closed, d.closed)
					require.Equal(t, err, a.Close(t.Context()), "every call returns the same")
				})
			})
		}
	}
}

// A Close that gives up waiting for the readable files has lost nothing.
func TestCloseGivesUpOnAPublication(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &screen{disk: &disk{}, hold: make(chan struct{})}
		a := actors.Start(newState(t), s, atOnce)
		require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
		require.NoError(t, a.Sync(t.Context()))
		synctest.Wait() // a job runs
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := a.Close(ctx)
		close(s.hold)
		<-a.Done()
		require.NoError(t, a.Close(t.Context()))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var lost *actors.NotDurableError
		if errors.As(err, &lost) {
			t.Fatal("Close says NotDurableError though everything is durable and only the readers' files are late")
		}
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
