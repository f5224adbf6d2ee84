package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
)

// ordersVar makes this program a runner. Its value is the orders.
const ordersVar = "LOPEN_BENCH_FLEET"

// Orders say what a runner is.
type orders struct {
	Host, Dir string
	URL       string // "" means without a fleet
	Row       bool   // each save is an UPDATE of a row, and there is no store
	Sessions  int
}

// A command is a line of a runner's input; its answer is a line of the output.
type command struct {
	Do   string        // one of those that answer knows
	N    int           // tasks of each session
	For  time.Duration // how long it works
	Pace time.Duration // from a session's task to its next one
}

// An answer says what came of a command.
type reply struct {
	Err        string
	Lags       []time.Duration // of each save: until it was acknowledged
	Heap, RSS  int64
	Goroutines int
}

// A loader has the sessions of a runner.
type loader interface {
	task(i int) error
	arrive(i int) error
	take() []time.Duration
}

// Lags are times of saves until they were acknowledged.
type lags struct {
	mu  sync.Mutex
	all []time.Duration // Guarded by mu.
}

func (l *lags) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

// take returns those since the last call.
func (l *lags) take() []time.Duration {
	time.Sleep(10 * time.Millisecond) // what is acknowledged by now is noted
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// runner does what its input says, until that ends.
func runner(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var l loader
	var err error
	if o.Row {
		l, err = openRows(&o)
	} else {
		l, err = openSessions(&o)
	}
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); ; {
		a := reply{}
		if err != nil {
			a.Err = err.Error()
		}
		a.Lags = l.take()
		memory(&a)
		line, _ := json.Marshal(a) // of numbers and a text
		fmt.Println(string(line))
		if !in.Scan() {
			break
		}
		var c command
		if err = json.Unmarshal(in.Bytes(), &c); err == nil {
			err = obey(l, o.Sessions, &c)
		}
	}
	return nil // the sessions end with the process: their folders are removed
}

// obey does what a command says.
func obey(l loader, n int, c *command) error {
	switch c.Do {
	case "tasks":
		return each(n, func(i int) error {
			for range c.N {
				if err := l.task(i); err != nil {
					return err
				}
			}
			return nil
		})
	case "work":
		end := time.Now().Add(c.For)
		return each(n, func(i int) error {
			time.Sleep(rand.N(c.Pace))
			for tick := time.Tick(c.Pace); time.Now().Before(end); <-tick {
				if err := l.task(i); err != nil {
					return err
				}
			}
			return nil
		})
	case "arrive":
		return each(n, l.arrive)
	case "memory":
		runtime.GC()
		return nil
	}
	return fmt.Errorf("%q is no command", c.Do)
}

// memory says how much memory the process has.
func memory(a *reply) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	a.Heap, a.Goroutines = int64(m.HeapAlloc), runtime.NumGoroutine()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			a.RSS = kib << 10
		}
	}
}

// sessions are those of a store.
type sessions struct {
	lags  // from the return of Sync
	store *lifecycle.Store
	fleet *fleet.Fleet // nil without one
	held  []*held
}

// A held session is one of a runner.
type held struct {
	worker
	shipped *fleet.Session // nil without a fleet
	n       int            // tasks so far

	mu      sync.Mutex
	pending []saved // Guarded by mu. In order.
}

// A saved record is the last one of a Sync that has returned.
type saved struct {
	seq uint64
	at  time.Time
}

func openSessions(o *orders) (*sessions, error) {
	l := &sessions{}
	var err error
	if l.store, _, err = lifecycle.Init(o.Dir, lifecycle.Options{}); err != nil {
		return nil, err
	}
	if o.URL != "" {
		if l.fleet, err = fleet.Open(fleet.Options{URL: o.URL, Project: project, Host: o.Host}); err != nil {
			return nil, err
		}
	}
	for range o.Sessions {
		sess, err := create(l.store)
		if err != nil {
			return nil, err
		}
		h := &held{worker: sess}
		if l.fleet != nil {
			if h.shipped, err = l.fleet.Ship(l.store, sess); err != nil {
				return nil, err
			}
			h.worker = h.shipped
			go l.watch(h)
		}
		l.held = append(l.held, h)
	}
	return l, nil
}

// each calls fn for each of some sessions at once.
func each(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = fn(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (l *sessions) task(i int) error {
	h := l.held[i]
	h.n++
	return task(h, h.n, h.synced)
}

// synced notes what a Sync that returned has made durable.
func (h *held) synced() {
	if h.shipped == nil || h.shipped.Err() != nil {
		return // a backlog has no lag that says anything, and would take memory here
	}
	_, seq := h.shipped.Lag()
	h.mu.Lock()
	h.pending = append(h.pending, saved{seq, time.Now()})
	h.mu.Unlock()
}

// watch notes when what was saved is acknowledged.
func (l *sessions) watch(h *held) {
	for {
		moved := h.shipped.Moved()
		acked, _ := h.shipped.Lag()
		now := time.Now()
		h.mu.Lock()
		n := 0
		for n < len(h.pending) && h.pending[n].seq <= acked {
			n++
		}
		done := h.pending[:n]
		h.pending = h.pending[n:]
		h.mu.Unlock()
		for _, s := range done {
			l.add(now.Sub(s.at))
		}
		<-moved
	}
}

func (l *sessions) arrive(i int) error { return l.held[i].shipped.Replicated(context.Background()) }
