package main

import (
	"math"
	"slices"
	"time"
)

// A Table is one piece of work and what every contender made of it.
type Table struct {
	Title string `json:"title"`
	Note  string `json:"note,omitempty"`
	Unit  string `json:"unit"`
	Base  string `json:"base"` // whose figure the ratios divide by
	Rows  []Row  `json:"rows"`
	// People names the work in the table of what people notice; "" is not in it.
	People string `json:"people,omitempty"`

	// PerByte is how many bytes changed, in a table of bytes written.
	PerByte float64 `json:"perByte,omitempty"`

	promises map[string]string      // of who is no Kind
	saved    bool                   // the figures are of Save alone, and so is what a row promises
	rounds   map[string][][]float64 // of each name, samples by round
	names    []string               // in the order in which they came
}

// A Row is one contender's figures.
type Row struct {
	Name    string  `json:"name"`
	Durable string  `json:"durable"`
	N       int     `json:"n"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	P999    float64 `json:"p99.9"`
	Max     float64 `json:"max"`
	// Low and High are the lowest and the highest median of a round.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Ratio is the median of what the rounds' medians are to the base's in the same round;
	// 0 where the base was not measured, or is 0.
	Ratio float64 `json:"ratio"`
}

// add takes samples of a contender in a round. One that has none has no row.
func (t *Table) add(name string, round int, samples ...float64) {
	if len(samples) == 0 {
		return
	}
	if t.rounds == nil {
		t.rounds = map[string][][]float64{}
	}
	if t.rounds[name] == nil {
		t.names = append(t.names, name)
	}
	for len(t.rounds[name]) <= round {
		t.rounds[name] = append(t.rounds[name], nil)
	}
	t.rounds[name][round] = append(t.rounds[name][round], samples...)
}

// promise is what a contender promises of what the table measured.
func (t *Table) promise(name string) string {
	if p, ok := t.promises[name]; ok {
		return p
	}
	k := kindOf(name)
	if t.saved && k.Saved != "" {
		return k.Saved
	}
	return k.Durable
}

// finish computes the rows.
func (t *Table) finish() {
	order := func(name string) int {
		if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
			return i
		}
		return len(kinds) // in the order in which they came
	}
	slices.SortStableFunc(t.names, func(a, b string) int { return order(a) - order(b) })
	for _, name := range t.names {
		var all, medians, ratios []float64
		for i, samples := range t.rounds[name] {
			if len(samples) == 0 {
				continue
			}
			all = append(all, samples...)
			m := quantile(samples, 0.5)
			medians = append(medians, m)
			if base := t.rounds[t.Base]; i < len(base) && len(base[i]) > 0 && quantile(base[i], 0.5) > 0 {
				ratios = append(ratios, m/quantile(base[i], 0.5))
			}
		}
		row := Row{Name: name, Durable: t.promise(name), N: len(all), P50: quantile(all, 0.5), P99: quantile(all, 0.99), P999: quantile(all, 0.999),
			Max: slices.Max(all), Low: slices.Min(medians), High: slices.Max(medians)}
		if len(ratios) > 0 {
			row.Ratio = quantile(ratios, 0.5)
		}
		t.Rows = append(t.Rows, row)
	}
}

// quantile is the smallest sample that at least a share of q does not exceed.
func quantile(samples []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func (t *Table) row(name string) (Row, bool) {
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		return Row{}, false
	}
	return t.Rows[i], true
}

// clock is what reading the time twice takes, in ns: it is taken off what is about as
// short.
var clock = func() float64 {
	var took []float64
	for range 1000 {
		begun := time.Now()
		took = append(took, float64(time.Since(begun)))
	}
	return quantile(took, 0.5)
}()

// nanoseconds is what fn took, the clock taken off, 1 at the least.
func nanoseconds(fn func() error) (float64, error) {
	begun := time.Now()
	err := fn()
	return max(float64(time.Since(begun))-clock, 1), err
}
