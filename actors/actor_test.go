package actors_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var day = time.Date(2026, 2, 14, 12, 0, 0, 0, time.UTC)

// disk is a Committer in memory. Unless entered is nil, a commit sends on it and
// then waits for release.
type disk struct {
	entered chan struct{}
	release chan struct{}

	mu       sync.Mutex
	batches  []actors.Batch // Guarded by mu.
	fail     error          // Guarded by mu: what Commit returns.
	panics   bool           // Guarded by mu.
	recovers int            // Guarded by mu.
	shown    int            // Guarded by mu: number of published batches.
	showing  int            // Guarded by mu: number of batches that the last successful job covered.
	forced   int            // Guarded by mu: number of forced publications.
	unshown  error          // Guarded by mu: what a job returns.
	reserve  error          // Guarded by mu: Committed.Pause of the next commit.
	show     bool           // Guarded by mu: Committed.Show of every commit.
	closed   int            // Guarded by mu.
}

func (d *disk) Commit(b actors.Batch) (actors.Committed, error) {
	if d.entered != nil {
		d.entered <- struct{}{}
		<-d.release
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.panics {
		panic("a defect")
	}
	if d.fail != nil {
		return actors.Committed{}, d.fail
	}
	d.batches = append(d.batches, b)
	c := actors.Committed{Seq: uint64(len(d.batches)), Bytes: 1, Show: d.show, Pause: d.reserve}
	d.reserve = nil
	return c, nil
}

func (d *disk) Check() error { return nil }

func (d *disk) Publication(force bool) func() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if force {
		d.forced++
	}
	if d.shown == len(d.batches) {
		return nil
	}
	n := len(d.batches)
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.unshown == nil {
			d.showing = n
		}
		return d.unshown
	}
}

func (d *disk) Published(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.shown = d.showing
	}
}

func (d *disk) Recover() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recovers++
	return d.fail
}

func (d *disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed++
	return nil
}

func (d *disk) setFail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

func (d *disk) commits() []actors.Batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]actors.Batch(nil), d.batches...)
}

func newState(t testing.TB) *session.State {
	t.Helper()
	id, err := session.NewID("auth", day, 1)
	require.NoError(t, err)
	st, err := session.New(id, day)
	require.NoError(t, err)
	return st
}

// turn returns st with its turn count set to n; these tests tell States apart by it.
func turn(t testing.TB, st *session.State, n int) *session.State {
	t.Helper()
	e := st.Edit()
	e.Header().TurnCount = n
	next, err := e.State()
	require.NoError(t, err)
	return next
}

func turns(st *session.State) int { return st.Header().TurnCount }

func TestSaveIsDurableAfterSync(t *testing.T) {
	t.Parallel()
	d := &disk{}
	a := actors.Start(newState(t), d, actors.Options{})
	require.NoError(t, a.Save(turn(t, a.State(), 7), session.TriggerTaskCompleted))
	require.Equal(t, 7, turns(a.State()), "the newest accepted State is read at once")
	require.NoError(t, a.Sync(t.Context()))
	got := d.commits()
	require.NotEmpty(t, got)
	require.Equal(t, 7, turns(got[len(got)-1].State))
	require.NoError(t, a.Close(t.Context()))
	require.Equal(t, 1, d.closed)
}

func TestBurstBecomesOneMoreCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{entered: make(chan struct{}), release: make(chan struct{})}
		a := actors.Start(newState(t), d, actors.Options{Mailbox: 4})
		st := a.State()
		require.NoError(t, a.Save(st, session.TriggerPhaseChanged))
		<-d.entered // the commit is held back

		const n = 10_000
		for i := range n {
			st = turn(t, st, i+1)
			require.NoError(t, a.Save(st, session.Trigger(i%int(session.NumTriggers))))
		}
		d.release <- struct{}{}
		<-d.entered
		d.release <- struct{}{}
		synctest.Wait()

		got := d.commits()
		require.Len(t, got, 2)
		require.Equal(t, n, turns(got[1].State))
		require.EqualValues(t, n, got[1].Saves(), "every trigger is counted, those that found the mailbox full too")
		go func() { // releases the commit that Close must not make
			select {
			case <-d.entered:
				d.release <- struct{}{}
			case <-a.Done():
			}
		}()
		require.NoError(t, a.Close(t.Context()))
		require.Len(t, d.commits(), 2)
	})
}

func TestSaveNeverWaitsForAStalledDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{entered: make(chan struct{}, 64), release: make(chan struct{})}
		a := actors.Start(newState(t), d, actors.Options{Mailbox: 2})
		begun := time.Now()
		for i := range 1000 {
			require.NoError(t, a.Save(turn(t, a.State(), i+1), session.TriggerStepCompleted))
		}
		require.Zero(t, time.Since(begun), "in the bubble's clock any wait would show")

		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := a.Close(ctx)
		var lost *actors.NotDurableError
		require.ErrorAs(t, err, &lost)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, d.closed, "the lease is kept until the stuck call has ended")

		close(d.release)
		<-a.Done()
		require.Equal(t, 1, d.closed)
		got := d.commits()
		require.Equal(t, 1000, turns(got[len(got)-1].State), "what was stuck is committed in the end")
		require.NoError(t, a.Close(t.Context()), "a later Close says how it ended")
	})
}

func TestPauseKeepsEverythingAndResumes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		d := &disk{}
		d.setFail(full)
		a := actors.Start(newState(t), d, actors.Options{})
		require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerTaskCompleted))
		synctest.Wait()

		err := a.Save(turn(t, a.State(), 2), session.TriggerTaskFailed)
		var paused *actors.PausedError
		require.ErrorAs(t, err, &paused)
		require.ErrorIs(t, err, full)
		require.ErrorIs(t, a.Sync(t.Context()), full, "nothing is acknowledged while paused")
		require.ErrorIs(t, a.Unpause(t.Context()), full, "the cause is not gone yet")
		require.Len(t, a.Critical(), 1, "one error a pause")
		require.ErrorIs(t, <-a.Critical(), full)

		d.setFail(nil)
		require.NoError(t, a.Unpause(t.Context()))
		require.NoError(t, a.Paused())
		got := d.commits()
		require.Len(t, got, 1)
		require.Equal(t, 2, turns(got[0].State))
		require.EqualValues(t, 2, got[0].Saves(), "the triggers of the failed commit are not lost")
		require.Equal(t, 2, d.recovers)

		d.setFail(full) // Critical is armed again
		require.NoError(t, a.Save(turn(t, a.State(), 3), session.TriggerPaused))
		require.ErrorIs(t, <-a.Critical(), full)
		require.ErrorIs(t, a.Close(t.Context()), full)
		var lost *actors.NotDurableError
		require.ErrorAs(t, a.Close(t.Context()), &lost, "Close is idempotent")
		require.EqualValues(t, 1, lost.Saves)
		require.Equal(t, 1, d.closed)
	})
}

func TestCommitterPanicPausesTheSession(t *testing.T) {
	t.Parallel()
	d := &disk{panics: true}
	a := actors.Start(newState(t), d, actors.Options{})
	require.NoError(t, a.Save(nil, session.TriggerPaused))
	require.ErrorContains(t, <-a.Critical(), "a defect")
	require.Error(t, a.Close(t.Context()))
}

func TestUpdateFromManyGoroutines(t *testing.T) {
	t.Parallel()
	d := &disk{}
	a := actors.Start(newState(t), d, actors.Options{})
	const workers, each = 8, 200
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				err := a.Update(func(st *session.State) (*session.State, error) {
					e := st.Edit()
					e.Header().TurnCount++
					return e.State()
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, workers*each, turns(a.State()))
	require.NoError(t, a.Sync(t.Context()), "a change without a trigger is committed by a barrier")
	got := d.commits()
	require.Equal(t, workers*each, turns(got[len(got)-1].State))

	refused := errors.New("no")
	require.ErrorIs(t, a.Update(func(*session.State) (*session.State, error) { return nil, refused }), refused)
	require.NoError(t, a.Close(t.Context()))
}

func TestAcceptedBeforeCloseIsCommitted(t *testing.T) {
	t.Parallel()
	for range 200 {
		d := &disk{}
		a := actors.Start(newState(t), d, actors.Options{Mailbox: 1})
		base := a.State()
		var wg sync.WaitGroup
		accepted := 0
		wg.Go(func() {
			for i := 1; i <= 50; i++ {
				if a.Save(turn(t, base, i), session.TriggerStepCompleted) != nil {
					return
				}
				accepted = i
			}
		})
		wg.Go(func() { _ = a.Sync(t.Context()) })
		wg.Go(func() { _ = a.Unpause(t.Context()) })
		wg.Go(func() { require.NoError(t, a.Close(t.Context())) })
		wg.Wait()
		if accepted == 0 {
			continue
		}
		got := d.commits()
		require.NotEmpty(t, got)
		require.GreaterOrEqual(t, turns(got[len(got)-1].State), accepted, "a Save that returned nil is in the last commit")
	}
}

func TestClosedActorRefuses(t *testing.T) {
	t.Parallel()
	a := actors.Start(newState(t), &disk{}, actors.Options{})
	require.NoError(t, a.Close(t.Context()))
	require.ErrorIs(t, a.Save(nil, session.TriggerPaused), actors.ErrClosed)
	require.ErrorIs(t, a.Sync(t.Context()), actors.ErrClosed)
	require.ErrorIs(t, a.Flush(t.Context()), actors.ErrClosed)
	require.ErrorIs(t, a.Unpause(t.Context()), actors.ErrClosed)
	require.ErrorIs(t, a.Update(func(st *session.State) (*session.State, error) { return st, nil }), actors.ErrClosed)
}

func TestForeignStateAndTriggerAreRefused(t *testing.T) {
	t.Parallel()
	a := actors.Start(newState(t), &disk{}, actors.Options{})
	id, err := session.NewID("other", day, 1)
	require.NoError(t, err)
	other, err := session.New(id, day)
	require.NoError(t, err)
	require.ErrorContains(t, a.Save(other, session.TriggerPaused), "other-20260214-1")
	require.ErrorContains(t, a.Save(nil, session.NumTriggers), "trigger")
	require.NoError(t, a.Close(t.Context()))
}

func TestSyncGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{entered: make(chan struct{}, 64), release: make(chan struct{})}
		a := actors.Start(newState(t), d, actors.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
		require.ErrorIs(t, a.Sync(ctx), context.DeadlineExceeded)
		close(d.release)
		require.NoError(t, a.Close(t.Context()))
	})
}

func TestSaveAllocatesNothing(t *testing.T) {
	d := &disk{}
	a := actors.Start(newState(t), d, actors.Options{})
	st := a.State()
	got := testing.AllocsPerRun(1000, func() { _ = a.Save(st, session.TriggerStepCompleted) })
	require.LessOrEqual(t, got, 1.0)
	require.NoError(t, a.Close(t.Context()))
}

func TestSupervisorClosesAllSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s actors.Supervisor
		full := errors.New("no space left on device")
		stuck := &disk{entered: make(chan struct{}, 64), release: make(chan struct{})}
		broken := &disk{fail: full}
		fine := &disk{}
		for _, d := range []*disk{stuck, broken, fine} {
			a, err := s.Start(newState(t), d, actors.Options{})
			require.NoError(t, err)
			require.NoError(t, a.Save(turn(t, a.State(), 1), session.TriggerPaused))
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.Close(ctx)
		require.ErrorIs(t, err, full)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, fine.closed)
		require.Equal(t, 1, turns(fine.commits()[0].State))

		_, err = s.Start(newState(t), &disk{}, actors.Options{})
		require.ErrorIs(t, err, actors.ErrClosed)
		close(stuck.release)
		require.ErrorIs(t, s.Close(t.Context()), full)
	})
}

// A nil context is an error, and closes nothing.
func TestNilContext(t *testing.T) {
	t.Parallel()
	var s actors.Supervisor
	a, err := s.Start(newState(t), &disk{}, actors.Options{})
	require.NoError(t, err)
	var none context.Context
	for _, call := range []func(context.Context) error{a.Sync, a.Flush, a.Unpause, a.Close, s.Close} {
		require.NotPanics(t, func() { require.ErrorContains(t, call(none), "context is nil") })
	}
	require.NoError(t, a.Save(nil, session.TriggerPaused))
	b, err := s.Start(newState(t), &disk{}, actors.Options{})
	require.NoError(t, err)
	require.NoError(t, b.Save(nil, session.TriggerPaused))
	require.NoError(t, s.Close(t.Context()))
}
