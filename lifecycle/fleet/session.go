package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// The pauses between two tries after an error double from the first to the longest, each with up
// to half of it added.
const (
	firstRetry   = 500 * time.Millisecond
	longestRetry = time.Minute
)

// noteFile is the file of a session's folder that has a note, and cursorName the cursor that keeps
// what was not shipped.
const (
	noteFile   = "fleet.json"
	cursorName = "fleet"
)

// noteEvery is how often the note and the cursor are written at most while a session is shipped.
const noteEvery = 5 * time.Second

// A note is what is remembered of a session's records in the fleet.
type note struct {
	Project     string `json:"project"`
	Incarnation string `json:"incarnation"`
	Seq         uint64 `json:"seq"` // the last record that the fleet acknowledged
	Sum         []byte `json:"sum,omitempty"`
	Secret      string `json:"secret,omitempty"` // of the holder of the last lease of this folder, with its term
	Term        int64  `json:"term,omitempty"`
	// Error is why the last try to ship failed, and ErrorAt when that began; "" after a success.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"errorAt,omitzero"`
	// Restored says that the database once lacked what it had acknowledged.
	Restored string `json:"restored,omitempty"`
	// Fenced says that somebody else continued the session behind record Seq.
	Fenced string `json:"fenced,omitempty"` // the host
	Fork   string `json:"fork,omitempty"`   // the session that has what was done here behind it
	// Parted is set in the note of such a fork: the session that somebody else continued.
	Parted string `json:"parted,omitempty"`
}

// end is the last record that the fleet acknowledged.
func (n *note) end() end { return end{n.Incarnation, n.Seq, n.Sum} }

// A Session is a session of this process that is shipped to a fleet. All that a lifecycle.Session
// does it does in the same way; Close ships what is left. Any goroutine may call its methods.
type Session struct {
	*lifecycle.Session
	fleet *Fleet
	store *lifecycle.Store
	log   zerolog.Logger
	dir   writer.FS // the session's folder; closed with the goroutine
	done  chan struct{}
	wake  chan struct{}   // somebody waits, or something changed; has room for one
	ctx   context.Context //nolint:containedctx // that of its goroutine
	stop  context.CancelFunc

	ship shipping    // Owned by run.
	lost atomic.Bool // the lease may be another's by now

	closing atomic.Bool // Close was called: nobody has the session open soon

	mu      sync.Mutex
	acked   end           // Guarded by mu. The last record that the fleet acknowledged.
	moved   chan struct{} // Guarded by mu. Closed when acked or err changes.
	waiting int           // Guarded by mu. Calls of Replicated.
	begun   int           // Guarded by mu. Passes of the goroutine that have begun.
	passed  int           // Guarded by mu. The last pass that has ended.
	err     error         // Guarded by mu. Of the last try, nil after a success.
	ended   error         // Guarded by mu. Why nothing more is shipped; nil while it is.
	last    time.Time     // Guarded by mu. Of the last acknowledgement, by the clock here.
	// restored is what was said of records that the database had lost. Guarded by mu.
	restored string
}

// Ship ships a session until it is closed. It takes the session over: the caller uses the result in
// its place, and closes that. It touches neither the network nor waits for it; the session's folder
// has to be readable.
func (f *Fleet) Ship(store *lifecycle.Store, s *lifecycle.Session) (*Session, error) {
	dir, err := folderOf(store, s.ID())
	if err != nil {
		return nil, err
	}
	x := &Session{Session: s, fleet: f, store: store, log: *s.Logger(), dir: dir, done: make(chan struct{}), wake: make(chan struct{}, 1), moved: make(chan struct{})}
	x.ctx, x.stop = context.WithCancel(f.ctx)
	if x.ship.note, err = readNote(dir, f.opts.Project, s.Incarnation()); err == nil {
		err = folder.MoveCursor(dir, cursorName, x.ship.note.Seq) // from now on nothing is dropped that was not shipped
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	x.ship.session = x
	f.wg.Go(x.run)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.watched && f.opts.Joined != nil {
		f.watched = true
		f.wg.Go(f.watch)
	}
	return x, nil
}

// folderOf opens the folder of a session.
func folderOf(store *lifecycle.Store, id session.ID) (writer.FS, error) {
	root, err := writer.OpenFS(store.Path())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return writer.OpenDir(root, folder.Path(id))
}

// readNote reads the note of a session's folder. One of another project or incarnation does not
// count, and one that is damaged is derived again from the database.
func readNote(dir writer.FS, project, incarnation string) (note, error) {
	var n note
	err := folder.ReadSmall(dir, noteFile, &n)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, lifecycle.ErrCorrupt) {
		return note{}, err
	}
	if err != nil || n.Project != project || n.Incarnation != incarnation {
		n = note{Project: project, Incarnation: incarnation}
	}
	return n, nil
}

// Replicated returns nil when the database has committed all that was accepted before the call,
// with synchronous_commit on; see the package comment for what a failover may lose. While the
// database cannot be reached it waits until ctx ends; the error then wraps the cause of the last
// try. It fails at once if nothing more is shipped: after [*FencedError], or Close.
func (s *Session) Replicated(ctx context.Context) error {
	if err := s.Sync(ctx); err != nil {
		return err
	}
	return s.reached(ctx)
}

// reached waits until the last durable record is acknowledged.
func (s *Session) reached(ctx context.Context) error {
	s.mu.Lock()
	s.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
	}()
	s.poke()
	for want := s.Durable(); ; {
		if now := s.Durable(); now.Incarnation != want.Incarnation { // the folder was made again: the records are others
			want = now
		}
		s.mu.Lock()
		acked, ended, last, moved := s.acked, s.ended, s.err, s.moved
		s.mu.Unlock()
		switch {
		case acked.of == want.Incarnation && acked.seq >= want.Seq:
			return nil
		case ended != nil:
			return fmt.Errorf("replicate session %s: %w", s.ID(), ended)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			why := "it does not answer"
			if last != nil {
				why = Explain(last)
			}
			return &waitError{fmt.Sprintf("replicate session %s: the fleet has record %d of %d: %s", s.ID(), acked.seq, want.Seq, why), []error{context.Cause(ctx), last}}
		}
	}
}

// poke wakes the goroutine.
func (s *Session) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Err returns why the last try to ship failed, or why nothing more is shipped, or nil.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.ended, s.err)
}

// Moved returns a channel that is closed after the next try to ship, whatever came of it.
func (s *Session) Moved() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved
}

// Lag returns the last record that the fleet has acknowledged to this Session, and the last durable one
// here.
func (s *Session) Lag() (acked, here uint64) {
	last := s.Durable()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acked.of != last.Incarnation { // the folder was made again
		return 0, last.Seq
	}
	return s.acked.seq, last.Seq
}

// drainTimeout bounds how long Close waits for the database.
const drainTimeout = 5 * time.Second

// Close closes the session as [lifecycle.Session.Close] does, ships what is left, with the plan as it
// is, and gives the lease back. It waits at most five seconds for that, and not at all if the last
// try failed. The error is that of the local session; what could not be shipped stays in the log,
// and Lag and Err say so.
func (s *Session) Close(ctx context.Context) error {
	s.closing.Store(true)
	err := s.Session.Close(ctx)
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	s.drain(ctx)
	s.stop()
	<-s.done
	return err
}

// drain waits for a whole pass that begins from now on.
func (s *Session) drain(ctx context.Context) {
	s.mu.Lock()
	pass := s.begun + 1
	s.mu.Unlock()
	for {
		s.poke()
		s.mu.Lock()
		over, moved := s.passed >= pass || s.ended != nil || s.err != nil, s.moved
		s.mu.Unlock()
		if over {
			return
		}
		select {
		case <-moved:
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// run is the goroutine: it ships, and waits for more.
func (s *Session) run() {
	defer close(s.done)
	defer s.ship.end()
	retry := s.fleet.times.retry
	for {
		s.mu.Lock()
		s.begun++
		s.mu.Unlock()
		here := s.Durable()
		err := s.ship.upto(s.ctx, here)
		if s.ctx.Err() != nil {
			return
		}
		if s.tried(err) {
			return
		}
		var pause <-chan time.Time
		switch {
		case err != nil:
			pause = time.After(retry + rand.N(retry/2)) //nolint:gosec // it spreads the tries of many processes
			retry = min(2*retry, s.fleet.times.longest)
		default:
			retry = s.fleet.times.retry
		}
		if !s.await(here.More, pause) {
			return
		}
	}
}

// await waits for the next time to ship: for the end of a pause after an error, else until there is
// more and has lingered, or somebody waits.
func (s *Session) await(more <-chan struct{}, pause <-chan time.Time) bool {
	if pause != nil {
		more = nil
	}
	select {
	case <-s.ctx.Done():
		return false
	case <-pause:
		return true
	case <-s.fleet.leaving: // the next try says so
		return true
	case <-s.wake:
		if pause == nil {
			return true
		}
		// Somebody waits: the next try comes soon, but not at once for each of them.
		select {
		case <-pause:
		case <-time.After(s.fleet.times.retry):
		case <-s.ctx.Done():
			return false
		}
		return true
	case <-more:
	}
	s.mu.Lock()
	waiting := s.waiting > 0
	s.mu.Unlock()
	if waiting {
		return true
	}
	select {
	case <-time.After(s.fleet.opts.Linger):
	case <-s.wake:
	case <-s.ctx.Done():
		return false
	}
	return true
}

// tried records what came of a try, and reports whether it was the last one.
func (s *Session) tried(err error) (over bool) {
	s.mu.Lock()
	was := s.err
	s.passed = s.begun
	if s.err = err; err == nil { // before the first one, what was acknowledged once may be gone
		s.acked, s.last = s.ship.note.end(), time.Now()
	}
	if over = err != nil && !passing(err); over {
		s.ended, s.err = err, nil
	}
	close(s.moved)
	s.moved = make(chan struct{})
	s.mu.Unlock()
	s.ship.noteError(err)
	switch fenced := (*FencedError)(nil); {
	case errors.As(err, &fenced) && s.closing.Load(): // perhaps by another process of this machine, which ships the rest
		s.log.Info().Err(err).Msg("somebody else ships the session from now on")
	case errors.As(err, &fenced):
		s.log.Info().Err(err).Msg("fenced: somebody else continued the session; nothing more is shipped")
		s.Fence(err)
	case errors.Is(err, ErrLeft):
		s.log.Info().Msg("the project has left the fleet; nothing more is shipped")
	case over:
		s.log.Error().Err(err).Msg("nothing more is shipped to the fleet")
	case err != nil && (was == nil || was.Error() != err.Error()):
		s.log.Info().Str("error", Explain(err)).Msg("not shipped to the fleet; the log keeps it")
	case err == nil && was != nil:
		s.log.Info().Uint64("seq", s.ship.note.Seq).Msg("shipped to the fleet again")
	}
	return over
}

// known are hashes of objects that the database has, as far as this process remembers: it asks for
// the others.
type known struct {
	mu  sync.Mutex
	now map[blob.Hash]struct{} // Guarded by mu.
	was map[blob.Hash]struct{} // Guarded by mu.
}

// maxKnown bounds each of the two maps: some 10 MiB.
const maxKnown = 100_000

func newKnown() *known { return &known{now: map[blob.Hash]struct{}{}} }

func (k *known) has(h blob.Hash) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, now := k.now[h]
	_, was := k.was[h]
	return now || was
}

func (k *known) add(h blob.Hash) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.now) >= maxKnown {
		k.was, k.now = k.now, map[blob.Hash]struct{}{}
	}
	k.now[h] = struct{}{}
}

func (k *known) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now, k.was = map[blob.Hash]struct{}{}, nil
}

// idOf parses an ID that comes from the database.
func idOf(text string) (session.ID, error) {
	id, err := session.ParseID(text)
	if err != nil {
		err = fmt.Errorf("the fleet has a session %q: %w", text, err)
	}
	return id, err
}
