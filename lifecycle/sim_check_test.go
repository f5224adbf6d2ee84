package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// explore cuts the power at every point, in every variant or, without -deep, in
// a few that are drawn unless few is 0, and checks what the production code makes of it. Disks that are
// alike are looked at once. With -short it cuts at the last point and at each fourth one.
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
	for i, p := range points {
		if few > 0 && !drawn(i) && i < len(points)-1 {
			continue
		}
		what := func(v crashfs.Variant) string {
			return fmt.Sprint(v.Sum(), p.id, p.acked, len(p.states), p.excluded, len(p.messages))
		}
		all := slices.DeleteFunc(p.disk.Variants(rng, *randomStates), func(v crashfs.Variant) bool { return looked[what(v)] })
		if !*deep && few > 0 && len(all) > few {
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			all = all[:few]
		}
		for _, v := range all {
			s.explored++
			looked[what(v)] = true
			c := &checker{p: p, states: images, noted: s.noted, what: fmt.Sprintf("cut before %q (acknowledged %d of %d), %s", p.op, p.acked.state, len(p.states)-1, v.Name)}
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
		if c.p.acked.state < 0 {
			return nil // the store itself was in the making
		}
		return err
	}
	store.Shrink(4<<10, 8<<10)
	store.ShowAtOnce()
	defer abandon(disk, store)
	if c.p.id.IsZero() || c.p.acked.state < 0 {
		return c.checkNone(store)
	}
	// Without the lease, as another terminal would look.
	st, _, err := store.Read(c.p.id)
	if c.p.excluded && errors.Is(err, lifecycle.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	n, err := c.known(st)
	if err != nil {
		return err
	}
	messages, err := c.conversation(store, n)
	if err != nil {
		return err
	}
	if r, err := store.Verify(c.p.id); err != nil || r.Condition != repair.Intact && r.Condition != repair.Torn {
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
	if len(c.p.messages) > 0 {
		if err := sess.Append(&session.Message{ID: "later", Time: day, Role: session.RoleUser}); err != nil {
			return err
		}
		messages = append(messages, "later")
	}
	if err := sess.Sync(ctx); err != nil {
		return fmt.Errorf("save after the cut: %w", err)
	}
	cut := disk.Crash(crashfs.Variant{}) // nothing that was not synced
	again, err := lifecycle.OpenOn(cut.FS(), simOptions)
	if err != nil {
		return err
	}
	defer abandon(cut, again)
	st, _, err = again.Read(c.p.id)
	if err != nil {
		return fmt.Errorf("read after the second cut: %w", err)
	}
	if m := st.Header().TurnCount; m != 1000+n {
		return fmt.Errorf("the second cut lost an acknowledged save: %d instead of %d", m, 1000+n)
	}
	if len(messages) > 0 {
		if found, _, err := conversationIn(again, c.p.id); err != nil || !slices.Equal(found, messages) {
			return fmt.Errorf("after the second cut the messages %v are there instead of %v: %w", found, messages, err)
		}
	}
	return c.checkID(again)
}

// conversation requires that the messages and events are there that a reader of State n
// must find, and returns the messages. Where none was accepted none is looked for.
func (c *checker) conversation(store *lifecycle.Store, n int) ([]string, error) {
	if len(c.p.messages) == 0 {
		return nil, nil
	}
	messages, events, err := conversationIn(store, c.p.id)
	if err == nil && !c.p.excluded {
		err = errors.Join(prefix(messages, c.p.messages, max(c.p.acked.messages, c.p.messagesAt[n])), prefix(events, c.p.events, c.p.acked.events))
	}
	if err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	return messages, nil
}

// known requires that a State is one that was accepted, whole, and not older than
// the last acknowledged.
func (c *checker) known(st *session.State) (int, error) {
	n := st.Header().TurnCount
	if n < c.p.acked.state || n >= len(c.p.states) {
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

// checkID requires that no other session gets the session's ID.
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
