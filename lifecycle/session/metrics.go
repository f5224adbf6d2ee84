package session

import (
	"math"
	"sync"
	"time"
)

// An Iteration is what one start of the command cost.
type Iteration struct {
	Number          int // from 1, in the session
	Task            string
	Attempt         int // within the task
	StartedAt       time.Time
	Duration        time.Duration
	InputTokens     int64
	OutputTokens    int64
	CachedTokens    int64
	ContextWindow   int64 // in tokens
	PremiumRequests float64
	CostUSD         float64
	Model           string
	Turns           int
}

// Totals are the sums over all iterations.
type Totals struct {
	Iterations      int
	InputTokens     int64
	OutputTokens    int64
	CachedTokens    int64
	PremiumRequests float64
	CostUSD         float64
	Duration        time.Duration
}

func (t *Totals) add(it *Iteration) {
	t.Iterations++
	t.InputTokens += it.InputTokens
	t.OutputTokens += it.OutputTokens
	t.CachedTokens += it.CachedTokens
	t.PremiumRequests += it.PremiumRequests
	t.CostUSD += it.CostUSD
	t.Duration += it.Duration
}

func (it *Iteration) validate() error {
	if err := text("task of an iteration", it.Task, MaxTaskID); err != nil {
		return err
	}
	if err := text("model of an iteration", it.Model, maxText); err != nil {
		return err
	}
	if math.IsNaN(it.CostUSD+it.PremiumRequests) || math.IsInf(it.CostUSD+it.PremiumRequests, 0) {
		return &InvalidError{Field: "cost of an iteration", Want: "a finite number"}
	}
	return times(it.StartedAt)
}

// iterations is an append-only list that States share: each sees its own
// length of a common array. Appending to the longest one writes behind what
// everybody else sees; appending to a shorter one, as a fork does, copies first.
type iterations struct {
	all    []Iteration
	tail   *tail
	totals Totals
}

// tail knows how much of an array is taken.
type tail struct {
	mu sync.Mutex
	n  int // Guarded by mu.
}

func (l iterations) append(it Iteration) iterations {
	n := len(l.all)
	if l.tail != nil {
		l.tail.mu.Lock()
		defer l.tail.mu.Unlock()
	}
	if l.tail == nil || l.tail.n != n || cap(l.all) == n {
		grown := make([]Iteration, n, max(8, 2*n))
		copy(grown, l.all)
		l.all, l.tail = grown, &tail{}
	}
	l.all = append(l.all, it)
	l.tail.n = n + 1
	l.totals.add(&it)
	return l
}
