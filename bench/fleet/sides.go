package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

const (
	// slowBy is how long the bytes of a slow database are held back, each way.
	slowBy = 200 * time.Millisecond
	// agent is how long the agent of a loop takes for a task; it is not counted.
	agent = 20 * time.Millisecond
	// together is how many calls of Save are one sample.
	together = 100
)

// A side is a session, with its database in some state.
type side struct {
	name    string
	sess    worker
	shipped *fleet.Session // nil without a fleet
	n       int            // calls so far
	waits   bool           // what was shipped is there before the next side begins

	p50, p90 []float64       // of a work, by round, in ns
	all      []time.Duration // samples of the round
}

// A work is what a loop does with a session. do is one sample.
type work struct {
	name  string
	do    func(s *side) error
	calls int           // of a sample
	pause time.Duration // after each
}

var works = []work{
	{"Save, back to back", func(s *side) error {
		for range together {
			if err := s.sess.(interface {
				Save(*session.State, session.Trigger) error
			}).Save(nil, session.TriggerStepCompleted); err != nil {
				return err
			}
		}
		return nil
	}, together, 0},
	{"a change and Sync, back to back", func(s *side) error {
		s.n++
		if err := step(s.sess, s.n, false); err != nil {
			return err
		}
		return s.sess.Sync(context.Background())
	}, 1, 0},
	{"a task of a loop", func(s *side) error {
		s.n++
		return task(s.sess, s.n, func() {})
	}, 1, agent},
}

// sides measures what a fleet costs a session.
func (b *bench) sides() error {
	url := b.start().Create("sides")
	var all []*side
	for _, name := range []string{"no fleet", "no fleet, again", "idle", "slow", "down", "half-open"} {
		s, err := b.side(name, url)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	fmt.Fprintf(&b.page, sidesText, slowBy, agent, b.size.rounds)
	fmt.Fprintf(&b.page, "| work | database | p50 | ratio of p50 | ratio of p90 |\n|---|---|---|---|---|\n")
	for _, w := range works {
		for _, s := range all {
			s.p50, s.p90 = nil, nil
		}
		for round := range b.size.rounds {
			for i := range all {
				if err := all[(i+round)%len(all)].turn(w, b.size.turn); err != nil {
					return err
				}
			}
		}
		for _, s := range all {
			fmt.Fprintf(&b.page, "| %s | %s | %v | %.2f | %.2f |\n", w.name, s.name, short(time.Duration(median(s.p50))), ratio(s.p50, all[0].p50), ratio(s.p90, all[0].p90))
		}
	}
	return nil
}

// ratio is the median of the rounds' ratios.
func ratio(of, to []float64) float64 {
	var all []float64
	for i := range of {
		all = append(all, of[i]/to[i])
	}
	return median(all)
}

// side makes a session with a store of its own, and brings its database into a state.
func (b *bench) side(name, url string) (*side, error) {
	dir, err := b.folder("side " + name)
	if err != nil {
		return nil, err
	}
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	if err != nil {
		return nil, err
	}
	b.Cleanup(func() { _ = store.Close(context.Background()) }) // the folder is removed
	sess, err := create(store)
	s := &side{name: name, sess: sess, waits: name == "idle"}
	if err != nil || name == "no fleet" || name == "no fleet, again" {
		return s, err
	}
	proxy := pgtest.NewProxy(b, address(url))
	f, err := open(proxy.URL(url), name)
	if err != nil {
		return nil, err
	}
	b.Cleanup(f.Close)
	b.Cleanup(proxy.Drop)
	if s.shipped, err = f.Ship(store, sess); err != nil {
		return nil, err
	}
	s.sess = s.shipped
	if err := s.shipped.Replicated(context.Background()); err != nil {
		return nil, err
	}
	switch name {
	case "slow":
		proxy.Delay(slowBy)
	case "down":
		proxy.Drop()
	case "half-open":
		proxy.Hang()
	}
	return s, nil
}

// turn has a side work for a time. What it says is shipped meanwhile; the rest before another one's turn.
func (s *side) turn(w work, d time.Duration) error {
	s.all = s.all[:0]
	for first := time.Now(); time.Since(first) < d; time.Sleep(w.pause) {
		begun := time.Now()
		if err := w.do(s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.all = append(s.all, time.Since(begun))
	}
	slices.Sort(s.all)
	s.p50 = append(s.p50, float64(at(s.all, 0.5))/float64(w.calls))
	s.p90 = append(s.p90, float64(at(s.all, 0.9))/float64(w.calls))
	if s.waits {
		return s.shipped.Replicated(context.Background())
	}
	return s.sess.Sync(context.Background())
}
