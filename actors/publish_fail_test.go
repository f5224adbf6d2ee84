package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

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
						if err := a.Save(turn(t, a.State(), 1), session.TriggerPaused); err != nil {
							require.ErrorIs(t, err, full) // the writer was faster
						}
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
