package loop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// Shared is what several runs of one process share: the limits of their agents, and a budget
// for all together. Its methods may be called from any goroutine. A nil Shared is that of a
// single run.
type Shared struct {
	jobs int

	mu     sync.Mutex
	limits map[string]limit        // Guarded by mu: by agent.
	spent  map[*runner]spent       // Guarded by mu: by each run so far.
	given  map[*runner]float64     // Guarded by mu: USD that attempts in progress may cost.
	starts int                     // Guarded by mu: of the command, in all runs.
	ended  chan struct{}           // Guarded by mu: closed when an attempt ends, then replaced.
	paused map[lifecycle.Class]int // Guarded by mu: runs that wait for the storage.
}

// A limit is what one run met of an agent that others use as well.
type limit struct {
	until  time.Time
	module string // whose run met it
	kind   agent.Kind
}

// NewShared returns what at most jobs runs at a time share.
func NewShared(jobs int) *Shared {
	return &Shared{jobs: jobs, limits: map[string]limit{}, spent: map[*runner]spent{}, given: map[*runner]float64{},
		ended: make(chan struct{}), paused: map[lifecycle.Class]int{}}
}

// key is the same for the workers of two runs that have the same provider, as far as the name of
// the agent or, without one, its command says.
func (w *worker) key() string {
	if w.Name() == agent.None {
		return strings.Join(append([]string{""}, w.Argv()...), "\x00")
	}
	return w.Name()
}

// limit notes until when an agent is limited, for all runs that use it.
func (s *Shared) limit(w *worker, l limit) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.until.After(s.limits[w.key()].until) {
		s.limits[w.key()] = l
	}
}

// limitOf returns the limit of an agent.
func (s *Shared) limitOf(w *worker) limit {
	if s == nil {
		return limit{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits[w.key()]
}

// lift forgets the limits of agents, because a person said so: the waits of all runs end.
func (s *Shared) lift(workers []*worker) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range workers {
		delete(s.limits, w.key())
	}
}

// allLimited returns the limit that ends first if no agent of the run can work, as far as the
// runs that share them know.
func (r *runner) allLimited() (first limit, w *worker) {
	now := wallClock()
	for _, one := range r.workers {
		l := r.cfg.Shared.limitOf(one)
		if !l.until.After(now) {
			return limit{}, nil
		}
		if w == nil || l.until.Before(first.until) {
			first, w = l, one
		}
	}
	return first, w
}

// awaitShared waits while another run has met the limit of every agent of this run. It returns
// true if it waited.
func (r *runner) awaitShared(ctx context.Context) (waited bool, err error) {
	if r.cfg.Shared == nil {
		return false, nil
	}
	for _, w := range r.workers {
		if l := r.cfg.Shared.limitOf(w); l.until.After(w.until) {
			w.until = l.until
		}
	}
	l, w := r.allLimited()
	if w == nil {
		return false, nil
	}
	p := &agent.Problem{Kind: l.kind}
	if l.module != r.cfg.Module {
		p.Text = "met by " + l.module
	}
	return true, r.waitForAgent(ctx, w, p, l.until)
}

// total returns what all runs have cost. The caller holds mu.
func (s *Shared) total() (all spent) {
	for _, one := range s.spent {
		all.cost, all.tokens = all.cost+one.cost, all.tokens+one.tokens
	}
	return all
}

// UsedUp returns how a run would end that begins now because a bound of all runs together is
// reached, or nil. A budget of a day is not looked at.
func (s *Shared) UsedUp(b Budget, maxIterations int) *Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if maxIterations > 0 && s.starts >= maxIterations {
		return &Exit{ExitUser, plain.Some(s.starts, "start") + " of the command (max_iterations)"}
	}
	if why := b.usedUp("the runs together have", s.total(), spent{}); why != "" {
		return &Exit{ExitLimit, why}
	}
	return nil
}

// A share is what an attempt may cost, or why it does not begin. Exactly one field says something,
// or none where there is no limit.
type share struct {
	left   float64         // USD
	why    string          // the bound of the budget that is reached
	starts int             // of the command, as many as max_iterations allows
	wait   <-chan struct{} // closed when another attempt ends: those in progress may need all that is left
}

// take begins an attempt of a run that has cost own so far. It may cost a part of what is left, as
// if each of the other jobs were to begin one now. So the attempts in progress never cost
// more than the budget together, if their agents keep to what they are given.
func (s *Shared) take(r *runner, own, day spent) share {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent[r] = own
	delete(s.given, r)
	if n := r.cfg.MaxIterations; n > 0 && s.starts >= n {
		return share{starts: s.starts}
	}
	all := s.total()
	if why := r.cfg.Budget.usedUp("the runs together have", all, day); why != "" {
		return share{why: why}
	}
	left := r.cfg.Budget.left(all, day)
	if left > 0 {
		for _, given := range s.given {
			left -= given
		}
		if left <= 0 {
			return share{wait: s.ended}
		}
		left /= float64(max(s.jobs-len(s.given), 1))
	}
	s.given[r] = left
	s.starts++
	return share{left: left}
}

// share takes the share of the next attempt, and waits for it while attempts in progress may
// need all that is left.
func (r *runner) share(ctx context.Context, own, day spent) (share, error) {
	for {
		got := r.cfg.Shared.take(r, own, day)
		if got.starts > 0 {
			return got, r.tooMany(got.starts)
		}
		if got.wait == nil {
			return got, nil
		}
		r.status("waiting: attempts in progress may need what is left of the budget", 0)
		select {
		case <-got.wait:
		case <-ctx.Done():
			return got, r.interrupted()
		}
	}
}

// end notes what a run has cost at the end of an attempt.
func (s *Shared) end(r *runner) {
	if s == nil {
		return
	}
	own := r.spent()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent[r] = own
	delete(s.given, r)
	close(s.ended)
	s.ended = make(chan struct{})
}

// storage notes that a run waits for the storage. It returns whether the run is to say so:
// of a full disk one run does for all.
func (s *Shared) storage(class lifecycle.Class) (says bool, over func()) {
	if s == nil || class != lifecycle.ClassNoSpace {
		return true, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused[class]++
	return s.paused[class] == 1, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.paused[class]--
	}
}

// tooMany ends a run because the command was started as often as max_iterations allows.
func (r *runner) tooMany(starts int) error {
	text := fmt.Sprintf("stopped after %s of the command (max_iterations): %s", plain.Some(starts, "start"), r.resumeHint())
	r.emit(event{Event: eventPaused, Text: text})
	return r.pause(session.TriggerPaused, session.ExitMaxIterations, &Exit{ExitUser, text})
}
