package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A sim works on one session of a store on a simulated disk, and knows what must
// be found after a crash: a State that was accepted, at or above the last one that
// was acknowledged.
type sim struct {
	t     require.TestingT
	disk  *crashfs.Disk
	store *lifecycle.Store
	sess  *lifecycle.Session
	talks bool // each save is preceded by a message and an event

	mu    sync.Mutex
	model                  // Guarded by mu.
	noted map[int][]string // images of States with what an opener or Close noted on them. Guarded by mu.

	capture  atomic.Bool // watch takes points
	points   []point     // Guarded by mu.
	explored int         // crash states
}

// A model is what a session accepted, and how much of it was acknowledged. Its slices
// are only appended to by copying, so that a copy of it stays as it is.
type model struct {
	id         session.ID       // zero until one may be on the disk
	states     []*session.State // by their turn count
	messages   []string         // their IDs
	events     []string
	messagesAt []int // how many messages there were when a State was accepted
	acked      acked
	excluded   bool // the session may have been moved to corrupted/
}

// acked is what was acknowledged as durable.
type acked struct {
	state            int // the last one; -1: the session itself was not
	messages, events int // so many
}

// A point is a moment at which the power may be cut.
type point struct {
	disk *crashfs.Disk
	op   string
	model
}

func newSim(t require.TestingT, mode crashfs.Mode) *sim {
	return &sim{t: t, disk: crashfs.New(mode), model: model{acked: acked{state: -1}}, noted: map[int][]string{}}
}

// serial has a hook that keeps state be called once at a time: commits and
// publications call it from goroutines of their own.
func serial(fault func(crashfs.Op) crashfs.Fault) func(crashfs.Op) crashfs.Fault {
	var mu sync.Mutex
	return func(op crashfs.Op) crashfs.Fault {
		mu.Lock()
		defer mu.Unlock()
		return fault(op)
	}
}

// watch takes a point before every call that may change the disk. fault, unless
// nil, decides what becomes of the call.
func (s *sim) watch(fault func(crashfs.Op) crashfs.Fault) {
	s.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 {
			s.take(op.Call + " " + op.Name)
		}
		if fault == nil || op.N == 0 {
			return crashfs.Fault{}
		}
		return fault(op)
	})
}

func (s *sim) take(op string) {
	if !s.capture.Load() {
		return
	}
	// What was acknowledged before the image was taken must be in it, and what was
	// accepted until afterwards may be.
	s.mu.Lock()
	acked := s.acked
	s.mu.Unlock()
	disk := s.disk.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.capture.Load() {
		return
	}
	p := point{disk: disk, op: op, model: s.model}
	p.acked = acked
	s.points = append(s.points, p)
}

var simOptions = lifecycle.Options{Command: "sim", Now: func() time.Time { return day }}

func (s *sim) init() { s.initWith(lifecycle.Policy{}) }

func (s *sim) initWith(p lifecycle.Policy) {
	opts := simOptions
	opts.Policy = p
	store, err := lifecycle.InitOn(s.disk.FS(), opts)
	require.NoError(s.t, err)
	s.use(store)
}

func (s *sim) use(store *lifecycle.Store) {
	store.Shrink(4<<10, 8<<10)
	store.ShowAtOnce()
	s.store = store
}

// create makes the session. Its ID is known to the model before it can be found.
func (s *sim) create() error {
	sess, err := s.store.Create(context.Background(), "sim")
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sess = sess
	s.model = model{id: sess.ID(), states: []*session.State{sess.State()}, messagesAt: []int{0}}
	e := sess.State().Edit()
	e.Header().Status, e.Header().ExitReason = session.StatusPaused, session.ExitPaused
	closed, err := e.State()
	require.NoError(s.t, err)
	s.noted[0] = append(s.noted[0], image(closed))
	return nil
}

// save accepts the next State. Each has another turn count, one iteration more, and
// a task more or an old one changed, so that no two are alike and State and metrics
// belong together visibly. bulk is the size of its data in bytes.
func (s *sim) save(bulk int) error {
	if s.talks {
		s.say(bulk)
	}
	n := len(s.states)
	old := s.sess.State()
	e := old.Edit()
	h := e.Header()
	h.TurnCount, h.UpdatedAt = n, day
	h.Status, h.ExitReason = session.StatusPaused, session.ExitPaused
	h.Data = []byte(fmt.Sprintf(`{"n":%d,"bulk":%q}`, n, strings.Repeat(string(rune('a'+n%26)), bulk)))
	e.AppendIteration(session.Iteration{Task: "t", Attempt: n, StartedAt: day, OutputTokens: int64(n)})
	id := fmt.Sprintf("t%d", n/3)
	task, found := e.Task(id)
	if !found {
		task = session.Task{ID: id, Kind: session.KindTask, State: session.TaskPending}
		e.SetRoots(append(old.Roots(), id))
	}
	task.Attempts++
	e.Put(task)
	st, err := e.State()
	require.NoError(s.t, err)
	s.accept(st)
	return s.sess.Save(st, session.TriggerTaskCompleted)
}

func (s *sim) accept(st *session.State) {
	s.mu.Lock()
	s.states, s.messagesAt = append(slices.Clip(s.states), st), append(slices.Clip(s.messagesAt), len(s.messages))
	s.mu.Unlock()
}

// say accepts an event and a message.
func (s *sim) say(bulk int) {
	s.mu.Lock()
	id, event := fmt.Sprintf("m%d", len(s.messages)+1), fmt.Sprintf("e%d", len(s.events)+1)
	s.messages, s.events = append(slices.Clip(s.messages), id), append(slices.Clip(s.events), event)
	s.mu.Unlock()
	var paused *lifecycle.PausedError
	m := session.Message{ID: id, Time: day, Role: session.RoleUser, Content: session.Text(strings.Repeat("x", bulk))}
	for _, err := range []error{s.sess.AppendEvent([]byte(`{"event":"` + event + `"}`)), s.sess.Append(&m)} {
		if err != nil && !errors.As(err, &paused) {
			require.ErrorIs(s.t, err, lifecycle.ErrBacklogFull)
		}
	}
}

// conversationIn returns the messages and the events that a reader of a store finds.
func conversationIn(store *lifecycle.Store, id session.ID) (messages, events []string, err error) {
	for m, err := range store.Messages(id) {
		if err != nil {
			return nil, nil, err
		}
		messages = append(messages, m.ID)
	}
	for e, err := range store.Transcript(id) {
		var event struct{ Event string }
		if err == nil {
			err = json.Unmarshal(e, &event)
		}
		if err != nil {
			return nil, nil, err
		}
		events = append(events, event.Event)
	}
	return messages, events, nil
}

// prefix requires that what was found is the beginning of what was accepted and has
// enough of it.
func prefix(found, accepted []string, least int) error {
	if len(found) < least || len(found) > len(accepted) || !slices.Equal(found, accepted[:len(found)]) {
		return fmt.Errorf("%v was found of %v, of which %d were acknowledged", found, accepted, least)
	}
	return nil
}

// finish accepts a State that is complete.
func (s *sim) finish() error {
	e := s.sess.State().Edit()
	h := e.Header()
	h.TurnCount = len(s.states)
	h.Phase, h.Status, h.ExitReason, h.CompletedAt = session.PhaseComplete, session.StatusComplete, session.ExitComplete, day
	st, err := e.State()
	require.NoError(s.t, err)
	s.accept(st)
	return s.sess.Save(st, session.TriggerPhaseChanged)
}

func (s *sim) acknowledged(err error) error {
	if err == nil {
		s.mu.Lock()
		s.acked = acked{len(s.states) - 1, len(s.messages), len(s.events)}
		s.mu.Unlock()
	}
	return err
}

func (s *sim) sync() error  { return s.acknowledged(s.sess.Sync(context.Background())) }
func (s *sim) flush() error { return s.acknowledged(s.sess.Flush(context.Background())) }
func (s *sim) unpause() error {
	return s.acknowledged(s.sess.Unpause(context.Background()))
}
func (s *sim) close() error { return s.acknowledged(s.sess.Close(context.Background())) }

// kill ends the process as SIGKILL does: what is in the cache stays.
func (s *sim) kill() {
	s.disk.SetHook(nil)
	dead := s.disk
	s.disk = dead.Snapshot()
	abandon(dead, s.store) // so that no goroutine is left
}

// abandon closes a store whose disk nobody looks at again. Each call on the disk fails, so
// that closing does no work on it.
func abandon(disk *crashfs.Disk, store *lifecycle.Store) {
	disk.SetHook(func(crashfs.Op) crashfs.Fault { return crashfs.Fault{Err: errors.New("killed")} })
	_ = store.Close(context.Background())
}

// reopen resumes the session as another process does. The model forgets the States that
// are not there.
func (s *sim) reopen() error {
	store, err := lifecycle.OpenOn(s.disk.FS(), simOptions)
	if err != nil {
		return err
	}
	s.use(store)
	sess, err := store.Open(s.id)
	if err != nil {
		return err
	}
	n := sess.State().Header().TurnCount
	require.GreaterOrEqual(s.t, n, s.acked.state)
	require.Less(s.t, n, len(s.states))
	messages, events, err := conversationIn(store, s.id)
	require.NoError(s.t, err)
	require.NoError(s.t, prefix(messages, s.messages, max(s.acked.messages, s.messagesAt[n])))
	require.NoError(s.t, prefix(events, s.events, s.acked.events))
	s.mu.Lock()
	s.sess = sess
	s.noted[n] = append(s.noted[n], image(sess.State()))
	s.model = model{id: s.id, states: s.states[:n+1], messages: messages, events: events, messagesAt: s.messagesAt[:n+1],
		acked: acked{n, len(messages), len(events)}, excluded: s.excluded}
	s.mu.Unlock()
	return nil
}

// image is a State as its two files have it, but for what the next opener of a
// session whose holder died notes.
func image(st *session.State) string {
	return string(wire.EncodeState(st, session.Mark{})) + string(wire.EncodeMetrics(st, session.Mark{}))
}
