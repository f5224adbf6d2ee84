package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lopen-dev/lopen/bench/workload"
)

// A Scale is how much is measured.
type Scale struct {
	Rounds     int
	Turn       time.Duration // of one contender in one round
	Sizes      []int         // tasks of a plan
	Triggers   int           // of a burst
	Hold       time.Duration // of an fsync on the slow disk
	Stall      time.Duration
	Iterations int
	Sessions   int    // at once
	Processes  int    // rounds of the Go benchmarks
	Bench      string // which of them, a pattern
	Benchtime  string
}

var (
	fullScale = Scale{Rounds: 10, Turn: 2 * time.Second, Sizes: []int{10, 1_000, 100_000, 1_000_000}, Triggers: 10_000,
		Hold: 50 * time.Millisecond, Stall: 30 * time.Second, Iterations: 1000, Sessions: 16, Processes: 10, Bench: ".", Benchtime: "1s"}
	quickScale = Scale{Rounds: 3, Turn: 60 * time.Millisecond, Sizes: []int{10, 1_000, 100_000}, Triggers: 300,
		Hold: 50 * time.Millisecond, Stall: 3 * time.Second, Iterations: 200, Sessions: 16, Processes: 1, Bench: "^Benchmark(Save|Paced|Burst|Resume|Sections|List)$", Benchtime: "50ms"}
)

// usual is a plan as people have them, in tasks.
const usual = 40

// A bench is one run of everything.
type bench struct {
	Scale
	dir    string // for scratch, on the disk that is measured
	disk   *Disk  // nil where there is no FUSE
	kinds  []Kind
	tables []*Table
	say    func(format string, args ...any)
	opened int
}

func (b *bench) table(title, unit, note string) *Table {
	b.say("%s", title)
	t := &Table{Title: title, Unit: unit, Note: note, Base: Ours}
	b.tables = append(b.tables, t)
	return t
}

// A contender is a Peer that is open.
type contender struct {
	Kind
	Peer
	dir   string
	steps int // so far
	tasks int
}

// open starts a kind in a folder of its own below dir.
func (b *bench) open(k Kind, dir string, n int) (*contender, error) {
	b.opened++
	c := &contender{Kind: k, tasks: n, dir: filepath.Join(dir, fmt.Sprintf("peer-%d", b.opened))}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if c.Peer, err = k.Open(c.dir, n); err != nil {
		return nil, fmt.Errorf("open %s: %w", k.Name, err)
	}
	return c, nil
}

func (c *contender) next() workload.Step {
	c.steps++
	return workload.StepOf(c.steps-1, c.tasks)
}

func (c *contender) save() error { return c.Save(c.next()) }

// durable is one save, waited for.
func (c *contender) durable() error {
	if err := c.save(); err != nil {
		return err
	}
	return c.Sync()
}

// end closes a contender and removes its files.
func (c *contender) end() error { return errors.Join(c.Close(), os.RemoveAll(c.dir)) }

// turns opens every kind that fits below a folder and calls fn for each of them in each
// round, in an order that rotates.
func (b *bench) turns(dir string, n int, fits func(Kind) bool, fn func(round int, c *contender) error) (err error) {
	var all []*contender
	defer func() {
		for _, c := range all {
			err = errors.Join(err, c.end())
		}
	}()
	for _, k := range b.kinds {
		if fits != nil && !fits(k) {
			continue
		}
		c, err := b.open(k, dir, n)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	for round := range b.Rounds {
		for i := range all {
			c := all[(i+round)%len(all)]
			if err := fn(round, c); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
	}
	return nil
}

// timed calls fn for a turn, once at least, and returns what each call took, in ns.
func (b *bench) timed(fn func() error) (took []float64, err error) {
	for begun := time.Now(); len(took) == 0 || time.Since(begun) < b.Turn; {
		ns, err := nanoseconds(fn)
		if err != nil {
			return nil, err
		}
		took = append(took, ns)
	}
	return took, nil
}
