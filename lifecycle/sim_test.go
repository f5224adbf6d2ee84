package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
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

	mu       sync.Mutex
	id       session.ID       // zero until one may be on the disk
	states   []*session.State // every State that was accepted, by its turn count
	acked    int              // the last one that was acknowledged; -1: the session itself was not
	talk     bool             // say something before every save
	said     []string         // every message that was accepted
	told     []string         // and every event, likewise
	heard    [2]int           // how many of both were acknowledged
	noted    map[int][]string // images of States with what an opener or Close noted on them
	saidAt   []int            // how many messages there were when a State was accepted
	ids      map[string]bool  // that were given out
	capture  atomic.Bool
	aside    bool // the session may have been moved to corrupted/
	points   []point
	explored int
}

// A point is a moment at which the power may be cut.
type point struct {
	disk  *crashfs.Disk
	op    string
	id    session.ID
	acked int
	upto  int // the newest State that was accepted
	aside bool

	said, told []string
	heard      [2]int
	saidAt     []int
}

func newSim(t require.TestingT, mode crashfs.Mode) *sim {
	s := &sim{t: t, disk: crashfs.New(mode), acked: -1, ids: map[string]bool{}, noted: map[int][]string{}}
	return s
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
	acked, heard := s.acked, s.heard
	s.mu.Unlock()
	disk := s.disk.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.capture.Load() {
		return
	}
	s.points = append(s.points, point{disk, op, s.id, acked, len(s.states) - 1, s.aside, s.said, s.told, heard, s.saidAt})
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
	s.sess, s.id = sess, sess.ID()
	s.states, s.acked = []*session.State{sess.State()}, 0
	e := sess.State().Edit()
	e.Header().Status, e.Header().ExitReason = session.StatusPaused, session.ExitPaused
	closed, err := e.State()
	require.NoError(s.t, err)
	s.noted[0] = append(s.noted[0], image(closed))
	s.said, s.told, s.heard, s.saidAt = nil, nil, [2]int{}, []int{0}
	s.ids[s.id.String()] = true
	return nil
}

// save accepts the next State. Each has another turn count, one iteration more, and
// a task more or an old one changed, so that no two are alike and State and metrics
// belong together visibly. bulk is the size of its data in bytes.
func (s *sim) save(bulk int) error {
	if s.talk {
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
	s.states, s.saidAt = append(s.states, st), append(slices.Clip(s.saidAt), len(s.said))
	s.mu.Unlock()
}

// say accepts an event and a message.
func (s *sim) say(bulk int) {
	s.mu.Lock()
	id, event := fmt.Sprintf("m%d", len(s.said)+1), fmt.Sprintf("e%d", len(s.told)+1)
	s.said, s.told = append(slices.Clip(s.said), id), append(slices.Clip(s.told), event)
	s.mu.Unlock()
	var paused *lifecycle.PausedError
	m := session.Message{ID: id, Time: day, Role: session.RoleUser, Content: session.Text(strings.Repeat("x", bulk))}
	for _, err := range []error{s.sess.AppendEvent([]byte(`{"event":"` + event + `"}`)), s.sess.Append(&m)} {
		if err != nil && !errors.As(err, &paused) {
			require.ErrorIs(s.t, err, lifecycle.ErrBacklogFull)
		}
	}
}

// heardIn are the messages and the events that a reader of a store finds.
func heardIn(store *lifecycle.Store, id session.ID) (messages, events []string, err error) {
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

// prefix requires that what was found is the beginning of what was said and has
// enough of it.
func prefix(found, said []string, least int) error {
	if len(found) < least || len(found) > len(said) || !slices.Equal(found, said[:len(found)]) {
		return fmt.Errorf("%v was found of %v, of which %d count", found, said, least)
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
		s.acked, s.heard = len(s.states)-1, [2]int{len(s.said), len(s.told)}
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
	dead.SetHook(func(crashfs.Op) crashfs.Fault { return crashfs.Fault{Err: errors.New("killed")} })
	_ = s.sess.Close(context.Background()) // so that no goroutine is left; it reaches nothing
}

// reopen is another process that goes on with the session. The States that turn
// out not to be there are forgotten.
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
	require.GreaterOrEqual(s.t, n, s.acked)
	require.Less(s.t, n, len(s.states))
	said, events, err := heardIn(store, s.id)
	require.NoError(s.t, err)
	require.NoError(s.t, prefix(said, s.said, max(s.heard[0], s.saidAt[n])))
	require.NoError(s.t, prefix(events, s.told, s.heard[1]))
	s.mu.Lock()
	s.sess, s.states, s.acked = sess, s.states[:n+1], n
	s.noted[n] = append(s.noted[n], image(sess.State()))
	s.said, s.told, s.heard, s.saidAt = said, events, [2]int{len(said), len(events)}, s.saidAt[:n+1]
	s.mu.Unlock()
	return nil
}

// image is a State as its two files have it, but for what the next opener of a
// session whose holder died notes.
func image(st *session.State) string {
	return string(session.EncodeState(st, session.Mark{})) + string(session.EncodeMetrics(st, session.Mark{}))
}

// explore cuts the power at every point, in every variant or, without -deep, in
// a few that are drawn unless few is 0, and checks what the production code makes of it. Disks that are
// alike are looked at once.
func (s *sim) explore(few int) {
	s.capture.Store(false)
	s.disk.SetHook(nil)
	s.mu.Lock() // a publication may still be on its way
	points := s.points
	s.points = nil
	s.mu.Unlock()
	images := make([]string, len(s.states))
	for i, st := range s.states {
		images[i] = image(st)
	}
	rng := rand.New(rand.NewPCG(7, uint64(len(points))))
	looked := map[string]bool{}
	for _, p := range points {
		what := func(v crashfs.Variant) string {
			return fmt.Sprint(v.Sum(), p.id, p.acked, p.upto, p.aside, len(p.said), p.heard)
		}
		all := slices.DeleteFunc(p.disk.Variants(rng, *randomStates), func(v crashfs.Variant) bool { return looked[what(v)] })
		if !*deep && few > 0 && len(all) > few {
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			all = all[:few]
		}
		for _, v := range all {
			s.explored++
			looked[what(v)] = true
			c := &checker{p: p, states: images, noted: s.noted, what: fmt.Sprintf("cut before %q (acknowledged %d of %d), %s", p.op, p.acked, p.upto, v.Name)}
			if err := c.check(p.disk.Crash(v)); err != nil {
				require.NoError(s.t, fmt.Errorf("%s: %w", c.what, err))
			}
		}
	}
}

// A checker looks at one disk after a power cut.
type checker struct {
	p      point
	states []string
	noted  map[int][]string
	what   string
}

func (c *checker) check(disk *crashfs.Disk) error {
	ctx := context.Background()
	store, err := lifecycle.OpenOn(disk.FS(), simOptions)
	if err != nil {
		if c.p.acked < 0 {
			return nil // the store itself was in the making
		}
		return err
	}
	store.Shrink(4<<10, 8<<10)
	store.ShowAtOnce()
	defer store.Close(ctx)
	if c.p.id.IsZero() || c.p.acked < 0 {
		return c.checkNone(store)
	}
	// Without the lease, as another terminal would look.
	st, _, err := store.Read(c.p.id)
	if c.p.aside && errors.Is(err, lifecycle.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	n, err := c.known(st)
	if err != nil {
		return err
	}
	said, events, err := heardIn(store, c.p.id)
	if err == nil && !c.p.aside {
		err = errors.Join(prefix(said, c.p.said, max(c.p.heard[0], c.p.saidAt[n])), prefix(events, c.p.told, c.p.heard[1]))
	}
	if err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	if r, err := store.Verify(c.p.id); err != nil || r.Condition != lifecycle.Intact && r.Condition != lifecycle.Torn {
		return fmt.Errorf("verify: %v %v: %w", r.Condition, r.Faults, errors.Join(r.Err, err))
	}
	// The next process: what it finds and what it adds survives another cut.
	sess, err := store.Open(c.p.id)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if m := sess.State().Header().TurnCount; m != n {
		return fmt.Errorf("state %d was read and state %d was opened", n, m)
	}
	if err := sess.Change(session.TriggerPaused, turns(1000+n)); err != nil {
		return err
	}
	if len(c.p.said) > 0 {
		if err := sess.Append(&session.Message{ID: "later", Time: day, Role: session.RoleUser}); err != nil {
			return err
		}
		said = append(said, "later")
	}
	if err := sess.Sync(ctx); err != nil {
		return fmt.Errorf("save after the cut: %w", err)
	}
	cut := disk.Crash(crashfs.Variant{}) // nothing that was not synced
	again, err := lifecycle.OpenOn(cut.FS(), simOptions)
	if err != nil {
		return err
	}
	defer again.Close(ctx)
	st, _, err = again.Read(c.p.id)
	if err != nil {
		return fmt.Errorf("read after the second cut: %w", err)
	}
	if m := st.Header().TurnCount; m != 1000+n {
		return fmt.Errorf("the second cut lost an acknowledged save: %d instead of %d", m, 1000+n)
	}
	if found, _, err := heardIn(again, c.p.id); err != nil || !slices.Equal(found, said) {
		return fmt.Errorf("after the second cut the messages %v are there instead of %v: %w", found, said, err)
	}
	return c.checkID(again)
}

// known requires that a State is one that was accepted, whole, and not older than
// the last acknowledged.
func (c *checker) known(st *session.State) (int, error) {
	n := st.Header().TurnCount
	if n < c.p.acked || n > c.p.upto {
		return n, fmt.Errorf("state %d was found", n)
	}
	if is := image(st); is != c.states[n] && !slices.Contains(c.noted[n], is) {
		return n, fmt.Errorf("state %d never was like that: %s", n, image(st))
	}
	return n, nil
}

// checkNone looks at a session whose creation was not acknowledged: it is there,
// whole, or it is not.
func (c *checker) checkNone(store *lifecycle.Store) error {
	infos, err := store.List()
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.Err != nil {
			return fmt.Errorf("listed: %w", info.Err)
		}
		sess, err := store.Open(info.ID)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		if n := sess.State().Header().TurnCount; n != 0 {
			return fmt.Errorf("a new session of %d turns", n)
		}
	}
	sess, err := store.Create(context.Background(), "sim")
	if err != nil {
		return fmt.Errorf("create after the cut: %w", err)
	}
	for _, info := range infos {
		if info.ID == sess.ID() {
			return errors.New("the ID was given twice")
		}
	}
	return nil
}

// checkID requires that the session's ID is not given again.
func (c *checker) checkID(store *lifecycle.Store) error {
	sess, err := store.Create(context.Background(), c.p.id.Module)
	if err != nil {
		return fmt.Errorf("create after the cut: %w", err)
	}
	if id := sess.ID(); id.Day == c.p.id.Day && id.Counter <= c.p.id.Counter {
		return fmt.Errorf("ID %s after %s", sess.ID(), c.p.id)
	}
	return nil
}

// counted adds to how many crash states a test run explored.
func (s *sim) counted() { crashStates.Add(int64(s.explored)) }
