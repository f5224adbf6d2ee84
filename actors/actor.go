package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

const (
	defaultMailbox = 256
	defaultBacklog = 32 << 20
	defaultQuiet   = 100 * time.Millisecond
	defaultEvery   = 2 * time.Second
	// criticalBuffer is the number of unread pauses that Critical holds. An
	// Unpause lies between any two of them, so a reader that is this far behind
	// is gone; then the newest error replaces the oldest.
	criticalBuffer = 16
)

// Options of an actor. The zero value works.
type Options struct {
	Mailbox int   // requests that wait before triggers are only counted; 0 means 256
	Backlog int64 // bytes of entries that are not durable yet; 0 means 32 MiB
	// Autosave is the longest time after which a change that an Update made is
	// committed without a Save; 0 leaves it to the next Save, Sync, Flush or Close.
	Autosave time.Duration
	// The readable files are published when no commit happened for Quiet (0 means 100 ms).
	// Every (0 means two seconds) is the least time between two publications, and the most
	// that steady commits delay one. Negative values mean no delay.
	Quiet, Every time.Duration
	// AtClose, unless nil, turns the newest State into the one that the last commit stores.
	// The writer goroutine calls it when Close begins, and again whenever a Save or an Update
	// replaces the State in between.
	AtClose func(*session.State) *session.State
	Logger  zerolog.Logger // one line per commit at debug, one per pause at error; each with the session's ID
}

// An Actor is the one writer of one session. Make it with [Start].
type Actor struct {
	id     session.ID
	commit Committer
	log    zerolog.Logger

	newest   atomic.Pointer[session.State] // the newest accepted State; Save and Update store, all read
	commits  atomic.Uint64                 // number of commits begun
	mailbox  chan request
	overflow [session.NumTriggers]atomic.Uint64 // triggers that found the mailbox full
	durable  atomic.Pointer[session.State]      // the last State that a commit covered; stored by run only
	paused   atomic.Pointer[PausedError]        // stored by run only
	critical chan error

	dirty    chan struct{} // signals that an Update changed the State; nil without Autosave
	autosave time.Duration // Immutable after Start.
	atClose  func(*session.State) *session.State
	quiet    time.Duration // Immutable after Start.
	every    time.Duration // Immutable after Start.

	mu       sync.Mutex
	backlog  []Entry       // appended, not yet in pending. Guarded by mu.
	held     int64         // bytes of the entries that are not durable. Guarded by mu.
	bound    int64         // limit of held, in bytes. Immutable after Start.
	appended chan struct{} // signals that the backlog is not empty

	barriers  chan barrier
	closing   atomic.Bool
	closeOnce sync.Once
	shut      chan struct{} // closed by the first Close
	done      chan struct{} // closed when run has returned
	closeErr  error         // written by run before done is closed

	// Owned by run.
	pending   Batch            // accepted, not yet durable
	published chan error       // result of the running publication; nil when none runs
	unshown   commits          // commits since the last publication was begun
	shownAt   time.Time        // when the last publication was begun
	due       <-chan time.Time // fires when the next publication is due; nil when none is
	alarm     <-chan time.Time // fires when an autosave is due; nil when none is
	begun     time.Time        // when the actor was started
	pausedAt  time.Time        // when the present pause began
}

type request struct {
	trigger session.Trigger
	at      time.Time // zero when other requests were waiting: only the time of the oldest is used
}

// barrier is a call that waits for the disk.
type barrier struct {
	retry   bool       // takes a paused actor out of its pause
	publish bool       // waits for the readable files
	commits uint64     // number of commits begun before the call
	reply   chan error // buffered, so that run never waits for a caller that gave up
}

// Start starts the writer goroutine of a session whose durable State is
// initial. From then on the actor owns c and closes it.
func Start(initial *session.State, c Committer, opts Options) *Actor {
	if opts.Mailbox <= 0 {
		opts.Mailbox = defaultMailbox
	}
	a := &Actor{
		id:       initial.ID(),
		commit:   c,
		log:      SessionLog(opts.Logger, initial.ID()),
		begun:    time.Now(),
		mailbox:  make(chan request, opts.Mailbox),
		critical: make(chan error, criticalBuffer),
		appended: make(chan struct{}, 1),
		barriers: make(chan barrier),
		shut:     make(chan struct{}),
		done:     make(chan struct{}),
		atClose:  opts.AtClose,
		quiet:    cmp.Or(opts.Quiet, defaultQuiet),
		every:    cmp.Or(opts.Every, defaultEvery),
	}
	if a.bound = opts.Backlog; a.bound <= 0 {
		a.bound = defaultBacklog
	}
	if opts.Autosave > 0 {
		a.autosave, a.dirty = opts.Autosave, make(chan struct{}, 1)
	}
	a.newest.Store(initial)
	a.durable.Store(initial)
	go a.run()
	return a
}

// State returns the newest accepted State. It may not be durable yet.
func (a *Actor) State() *session.State { return a.newest.Load() }

// Save makes st the newest State and asks for a commit. It never waits. A nil
// st saves the newest State as it is, which is what a loop with several
// goroutines wants after Update.
//
// A nil error means accepted, not durable: this State or a newer one will be
// committed. A paused actor accepts the State too, and Save returns a
// [*PausedError]. After Close has begun Save returns ErrClosed, and the State
// may or may not be part of the last commit.
func (a *Actor) Save(st *session.State, t session.Trigger) error {
	if t >= session.NumTriggers {
		return fmt.Errorf("save session %s: trigger %d is none of the %d known ones", a.id, t, session.NumTriggers)
	}
	if st != nil {
		if st.ID() != a.id {
			return fmt.Errorf("save session %s: the state is that of session %s", a.id, st.ID())
		}
		a.newest.Store(st)
	}
	var r request
	r.trigger = t
	if len(a.mailbox) == 0 {
		r.at = time.Now()
	}
	select {
	case a.mailbox <- r:
	default:
		a.overflow[t].Add(1)
	}
	return a.refusal()
}

// Update changes the newest State by compare and swap: fn gets the State and
// returns its successor. When another goroutine changed the State meanwhile, fn
// is called again with the newer one. Update commits nothing: the next Save,
// Sync, Flush or Close does that, or the autosave. When fn fails, nothing
// changes and Update returns that error unwrapped.
func (a *Actor) Update(fn func(*session.State) (*session.State, error)) error {
	if fn == nil {
		return fmt.Errorf("update session %s: there is no function", a.id)
	}
	for {
		old := a.newest.Load()
		st, err := fn(old)
		if err != nil {
			return err
		}
		if st == nil {
			return fmt.Errorf("update session %s: the function returned no state", a.id)
		}
		if st.ID() != a.id {
			return fmt.Errorf("update session %s: the state is that of session %s", a.id, st.ID())
		}
		if a.newest.CompareAndSwap(old, st) {
			select {
			case a.dirty <- struct{}{}:
			default: // a signal is waiting already, or there is no autosave
			}
			return a.refusal()
		}
	}
}

// refusal is checked after the State was stored. Close sets closing before its
// last commit reads the State, so the State of a caller that sees closing unset
// is in that commit or an earlier one.
func (a *Actor) refusal() error {
	if a.closing.Load() {
		return ErrClosed
	}
	if p := a.paused.Load(); p != nil {
		return p
	}
	return nil
}

// Sync returns nil when everything that was accepted before the call is
// durable. It returns the [*PausedError] while the actor is paused, ErrClosed
// after Close, and the cause of ctx when ctx ends first; the commit continues.
func (a *Actor) Sync(ctx context.Context) error { return a.send(ctx, barrier{}) }

// Flush is Sync, and on nil the session's readable files show the State, durably.
func (a *Actor) Flush(ctx context.Context) error { return a.send(ctx, barrier{publish: true}) }

// Unpause tries again after the cause of a pause is gone. When it returns nil,
// everything that was accepted is durable, in one commit, the readable files
// show it, and Critical is armed again. On an error the pause stays, with the
// newer cause. On an actor that is not paused Unpause does what Flush does.
func (a *Actor) Unpause(ctx context.Context) error {
	return a.send(ctx, barrier{retry: true, publish: true})
}

// Critical delivers one error per pause. The channel is never closed. It holds
// 16 errors; a newer one replaces the oldest.
func (a *Actor) Critical() <-chan error { return a.critical }

// Paused returns the error of the present pause, or nil.
func (a *Actor) Paused() error {
	if p := a.paused.Load(); p != nil {
		return p
	}
	return nil
}

func (a *Actor) send(ctx context.Context, b barrier) error {
	if ctx == nil {
		return fmt.Errorf("sync session %s: %w", a.id, errContext)
	}
	b.reply, b.commits = make(chan error, 1), a.commits.Load()
	select {
	case a.barriers <- b:
	case <-a.done:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("sync session %s: %w", a.id, context.Cause(ctx))
	}
	select {
	case err := <-b.reply:
		return err
	case <-ctx.Done():
		return fmt.Errorf("sync session %s: %w", a.id, context.Cause(ctx))
	}
}

// Close commits what is accepted, ends the writer goroutine and closes the
// Committer. It is idempotent: every call waits for the same end and returns the
// same error. When ctx ends first, Close returns a [*NotDurableError], or another
// error when everything is durable and only the readable files are late. The
// writer then continues, and holds the session's lease until the stuck call has
// returned.
func (a *Actor) Close(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("close session %s: %w", a.id, errContext)
	}
	a.closeOnce.Do(func() {
		a.closing.Store(true)
		close(a.shut)
	})
	select {
	case <-a.done:
		return a.closeErr
	default:
	}
	select {
	case <-a.done:
		return a.closeErr
	case <-ctx.Done():
	}
	if a.allDurable() {
		return fmt.Errorf("close session %s: everything is durable, the readable files are not replaced yet: %w", a.id, context.Cause(ctx))
	}
	return &NotDurableError{Session: a.id, Cause: context.Cause(ctx)}
}

// Done is closed when the writer goroutine has ended and the lease is free.
func (a *Actor) Done() <-chan struct{} { return a.done }

// run is the writer goroutine.
func (a *Actor) run() {
	defer close(a.done)
	for {
		mailbox, appended := a.mailbox, a.appended
		if a.paused.Load() != nil {
			mailbox, appended = nil, nil // a paused actor tries again on a barrier only
		}
		select {
		case <-appended:
			a.drain()
			_ = a.settle(barrier{})
			a.publishDue()
		case r := <-mailbox:
			a.pending.add(r)
			a.drain()
			_ = a.commitPending() // the error is sticky: Save and Critical deliver it
			a.publishDue()
		case b := <-a.barriers:
			a.drain()
			b.reply <- a.settle(b)
			a.publishDue()
		case err := <-a.published:
			_ = a.publishedWith(err)
			a.publishDue()
		case <-a.due:
			a.due = nil
			a.publishDue()
		case <-a.dirty:
			if a.alarm == nil {
				a.alarm = time.After(a.autosave)
			}
		case <-a.alarm:
			a.alarm = nil
			a.drain()
			_ = a.settle(barrier{})
			a.publishDue()
		case <-a.shut:
			a.drain()
			a.lastState()
			err := a.settle(barrier{retry: true, publish: true})
			if err != nil && (a.pending.Saves() > 0 || !a.allDurable()) {
				a.takeBacklog() // so that entries appended during a pause are counted
				err = &NotDurableError{Session: a.id, Saves: a.pending.Saves(), Entries: len(a.pending.Entries), Cause: err}
			}
			_ = a.awaitPublication()
			a.closeErr = errors.Join(err, a.commit.Close())
			a.logClosed()
			return
		}
	}
}

// lastState applies Options.AtClose to the newest State.
func (a *Actor) lastState() {
	if a.atClose == nil {
		return
	}
	for {
		old := a.newest.Load()
		if a.newest.CompareAndSwap(old, a.atClose(old)) {
			return
		}
	}
}

// settle makes the newest State durable if it is not, and does what the barrier
// asks for.
func (a *Actor) settle(b barrier) error {
	if b.retry || b.publish {
		_ = a.awaitPublication() // a failure pauses the actor
	}
	if p := a.paused.Load(); p != nil {
		if !b.retry {
			return p
		}
		if err := a.guard(a.commit.Recover); err != nil {
			return a.pause(err, p.Durable)
		}
	}
	if a.pending.Saves() > 0 || !a.allDurable() {
		if err := a.commitPending(); err != nil {
			return err
		}
	} else if b.reply != nil && b.commits == a.commits.Load() {
		// No commit since the call has looked at the files: what was durable may be gone.
		if err := a.guard(a.commit.Check); err != nil {
			return a.pause(err, false)
		}
	}
	if b.publish {
		a.startPublication(true)
		if err := a.awaitPublication(); err != nil {
			return err
		}
	}
	if a.paused.Swap(nil) != nil {
		a.log.Info().Dur("duration_ms", time.Since(a.pausedAt)).Msg("goes on after a storage error")
	}
	return nil
}

// drain takes at most one full mailbox. What arrives meanwhile belongs to the
// next burst, so that a flood of saves cannot delay a commit forever.
func (a *Actor) drain() {
	for range cap(a.mailbox) {
		select {
		case r := <-a.mailbox:
			a.pending.add(r)
			continue
		default:
		}
		break
	}
	for t := range a.overflow {
		a.pending.Triggers[t] += a.overflow[t].Swap(0)
	}
}

func (a *Actor) commitPending() error {
	a.commits.Add(1)
	a.takeBacklog()
	begun := time.Now()
	var res Committed
	err := a.guard(func() (err error) {
		res, err = a.commit.Commit(a.pending)
		return err
	})
	if err != nil {
		return a.pause(err, false)
	}
	if res.Bytes > 0 {
		a.logCommit(res, begun)
		a.unshown.add(time.Now(), res.Show)
	}
	a.durable.Store(a.pending.State)
	a.release(a.pending.Entries)
	a.pending = Batch{}
	if res.Pause != nil {
		return a.pause(res.Pause, true)
	}
	return nil
}

// pause makes err sticky. Critical delivers only the first error of a pause. A
// later one comes from an Unpause that failed: it replaces the cause and goes to
// the caller of Unpause.
func (a *Actor) pause(err error, durable bool) error {
	p := &PausedError{Session: a.id, Cause: err, Durable: durable}
	if a.paused.Swap(p) != nil {
		return p
	}
	a.pausedAt = time.Now()
	Cause(a.log.Error(), err).Bool("durable", durable).Msg("paused on a storage error")
	for {
		select {
		case a.critical <- p:
			return p
		default:
		}
		select {
		case old := <-a.critical: // nobody reads: the oldest error gives way
			Cause(a.log.Warn(), old).Msg("an unread storage error was given up")
		default:
		}
	}
}

// guard turns a panic of the Committer into an error, so that a defect in storing
// one session pauses that session and does not end the whole process.
func (a *Actor) guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("committer panicked: %v", v)
		}
	}()
	return fn()
}
