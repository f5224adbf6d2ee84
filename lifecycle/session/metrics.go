package session

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

// An Iteration is one start of the command, with its cost.
type Iteration struct {
	Number          int           `json:"number,omitzero"` // from 1, in the session
	Task            string        `json:"task,omitzero"`
	Attempt         int           `json:"attempt,omitzero"` // within the task
	StartedAt       time.Time     `json:"startedAt,omitzero"`
	Duration        time.Duration `json:"duration,omitzero"`
	InputTokens     int64         `json:"inputTokens,omitzero"`
	OutputTokens    int64         `json:"outputTokens,omitzero"`
	CachedTokens    int64         `json:"cachedTokens,omitzero"`
	ContextWindow   int64         `json:"contextWindow,omitzero"` // in tokens
	ContextUsed     int64         `json:"contextUsed,omitzero"`   // of it, at the end
	RateLimit       *RateLimit    `json:"rateLimit,omitzero"`     // as the agent reported it
	PremiumRequests float64       `json:"premiumRequests,omitzero"`
	CostUSD         float64       `json:"costUSD,omitzero"`
	Model           string        `json:"model,omitzero"`
	Turns           int           `json:"turns,omitzero"`
}

// Totals are the sums over all iterations. A sum that exceeds its type stays at the largest
// value.
type Totals struct {
	Iterations      int           `json:"iterations,omitzero"`
	InputTokens     int64         `json:"inputTokens,omitzero"`
	OutputTokens    int64         `json:"outputTokens,omitzero"`
	CachedTokens    int64         `json:"cachedTokens,omitzero"`
	PremiumRequests float64       `json:"premiumRequests,omitzero"`
	CostUSD         float64       `json:"costUSD,omitzero"`
	Duration        time.Duration `json:"duration,omitzero"`
}

func (t *Totals) add(it *Iteration) {
	t.Iterations++
	t.InputTokens = sum(t.InputTokens, it.InputTokens)
	t.OutputTokens = sum(t.OutputTokens, it.OutputTokens)
	t.CachedTokens = sum(t.CachedTokens, it.CachedTokens)
	t.PremiumRequests = min(t.PremiumRequests+it.PremiumRequests, math.MaxFloat64)
	t.CostUSD = min(t.CostUSD+it.CostUSD, math.MaxFloat64)
	t.Duration = time.Duration(sum(int64(t.Duration), int64(it.Duration)))
}

// sum adds two numbers that are not negative.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Metrics are the iterations of a session and their sums: an immutable list whose versions
// share what they have in common. Full chunks are linked from the newest to the oldest, and
// every append copies the tail. So an append costs the same at any length, and two lists
// that grow from the same one are independent. The zero value is empty.
type Metrics struct {
	full   *chunk
	tail   []Iteration
	totals Totals
}

const chunkSize = 32

type chunk struct {
	before *chunk
	totals Totals // of this chunk and those before it
	items  [chunkSize]Iteration
}

// NewMetrics returns the list of iterations that are numbered already. It returns an error
// if one is invalid or its number is not its place, from 1.
func NewMetrics(all []Iteration) (l Metrics, err error) {
	for i := range all {
		if err := all[i].Validate(); err != nil {
			return Metrics{}, err
		}
		if all[i].Number != i+1 {
			return Metrics{}, fmt.Errorf("iteration %d stands at place %d", all[i].Number, i+1)
		}
		l.totals.add(&all[i])
		if (i+1)%chunkSize == 0 {
			l.full = &chunk{before: l.full, totals: l.totals, items: [chunkSize]Iteration(all[i+1-chunkSize:])}
		}
	}
	all = all[len(all)/chunkSize*chunkSize:]
	l.tail = slices.Clone(all) // so that the long slice can be freed
	return l, nil
}

// Append numbers an iteration and returns the longer list. The error is an [*InvalidError];
// then the list is returned unchanged.
func (l Metrics) Append(it Iteration) (Metrics, error) {
	it.StartedAt = utc(it.StartedAt)
	if err := it.Validate(); err != nil {
		return l, err
	}
	it.Number = l.Len() + 1
	tail := make([]Iteration, len(l.tail)+1)
	copy(tail, l.tail)
	tail[len(l.tail)] = it
	l.tail = tail
	l.totals.add(&it)
	if len(tail) == chunkSize {
		l.full, l.tail = &chunk{before: l.full, totals: l.totals, items: [chunkSize]Iteration(tail)}, nil
	}
	return l, nil
}

// Truncate returns the list of the first n iterations, or all if there are fewer. The cost
// depends on the number that is left out.
func (l Metrics) Truncate(n int) Metrics {
	if n >= l.Len() {
		return l
	}
	for fulls := l.Len() / chunkSize; fulls > n/chunkSize; fulls-- {
		l.tail, l.full = l.full.items[:], l.full.before
	}
	l.tail, l.totals = slices.Clone(l.tail[:n%chunkSize]), Totals{}
	if l.full != nil {
		l.totals = l.full.totals
	}
	for i := range l.tail {
		l.totals.add(&l.tail[i])
	}
	return l
}

// Len returns the number of iterations.
func (l Metrics) Len() int { return l.totals.Iterations }

// Totals returns the sums, in O(1).
func (l Metrics) Totals() Totals { return l.totals }

// From yields all iterations but the first n, the oldest first. It reads only the chunks that
// have them. The iterations belong to the list and must not be changed.
func (l Metrics) From(n int) iter.Seq[*Iteration] {
	return func(yield func(*Iteration) bool) {
		chunks := make([]*chunk, max(0, l.Len()/chunkSize-n/chunkSize))
		c := l.full
		for i := len(chunks) - 1; i >= 0; i-- {
			chunks[i], c = c, c.before
		}
		skip := n % chunkSize
		for _, c := range chunks {
			for i := skip; i < chunkSize; i++ {
				if !yield(&c.items[i]) {
					return
				}
			}
			skip = 0
		}
		for i := min(skip, len(l.tail)); i < len(l.tail); i++ {
			if !yield(&l.tail[i]) {
				return
			}
		}
	}
}

// Shared returns the number of first iterations that two lists have in common. Shared chunks
// are recognized by identity; only iterations behind them are compared.
func (l Metrics) Shared(other Metrics) int {
	a, b := l, other
	if a.full == b.full && same(a.tail, b.tail) {
		return a.Len()
	}
	fulls := func(l Metrics) int { return l.Len() / chunkSize }
	x, y := a.full, b.full
	for i := fulls(a); i > fulls(b); i-- {
		x = x.before
	}
	for i := fulls(b); i > fulls(a); i-- {
		y = y.before
	}
	n := min(fulls(a), fulls(b))
	for ; x != y; n-- {
		x, y = x.before, y.before
	}
	common := n * chunkSize
	had := slices.Collect(a.From(common))
	for it := range b.From(common) {
		if len(had) == 0 || *had[0] != *it {
			break
		}
		had = had[1:]
		common++
	}
	return common
}
