package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/lopen-dev/lopen/bench/fusedisk"
	"github.com/lopen-dev/lopen/bench/workload"
)

// A Scale is how much is measured.
type Scale struct {
	Budget     time.Duration // that everything takes
	Rounds     int           // at most: a suite that has used its time up begins no other
	Turn       time.Duration // of one contender in one round
	Paced      time.Duration // the same where saves come at a pace
	Sizes      []int         // tasks of a plan
	Triggers   int           // of a burst
	Hold       time.Duration // of an fsync on the slow disk
	Stall      time.Duration
	Iterations int
	Sessions   int // at once
	Home       Home
	Processes  int // rounds of the Go benchmarks, at most
	Benchtime  string
}

var (
	fullScale = Scale{Budget: 25 * time.Minute, Rounds: 10, Turn: 400 * time.Millisecond, Paced: 1600 * time.Millisecond, Sizes: []int{10, usual, 1_000, 100_000, 1_000_000}, Triggers: 10_000,
		Hold: 50 * time.Millisecond, Stall: 30 * time.Second, Iterations: 1000, Sessions: 16, Home: Home{5000, 300, 20 << 20}, Processes: 5, Benchtime: "3500ms"}
	quickScale = Scale{Budget: 2 * time.Minute, Rounds: 3, Turn: 50 * time.Millisecond, Paced: 100 * time.Millisecond, Sizes: []int{10, usual, 1_000, 100_000}, Triggers: 300,
		Hold: 50 * time.Millisecond, Stall: 3 * time.Second, Iterations: 200, Sessions: 16, Home: Home{5000, 300, 20 << 20}, Processes: 1, Benchtime: "200ms"}
)

// usual is a plan as people have them, in tasks.
const usual = 40

// A bench is one run of everything.
type bench struct {
	Scale
	dir    string         // for scratch, on the disk that is measured
	disk   *fusedisk.Disk // nil where there is no FUSE
	kinds  []Kind
	tables []*Table
	until  time.Time // when the suite that runs has used its time up
	opened int
}

// rounds yields the numbers of the rounds, one at least, for as long as there is time.
func (b *bench) rounds(most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for round := range most {
			if round > 0 && time.Now().After(b.until) || !yield(round) {
				return
			}
		}
	}
}

// parts yields 0 to n-1 and gives each its share of what is left of the suite's time.
func (b *bench) parts(n int) iter.Seq[int] {
	end := b.until
	return func(yield func(int) bool) {
		for i := range n {
			b.until = time.Now().Add(time.Until(end) / time.Duration(n-i))
			if !yield(i) {
				return
			}
		}
	}
}

func (b *bench) table(title, unit, note string) *Table {
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
	for round := range b.rounds(b.Rounds) {
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
// What before does, if there is one, is not counted.
func (b *bench) timed(before, fn func() error) (took []float64, err error) {
	for begun := time.Now(); len(took) == 0 || time.Since(begun) < b.Turn; {
		if before != nil {
			if err := before(); err != nil {
				return nil, err
			}
		}
		ns, err := nanoseconds(fn)
		if err != nil {
			return nil, err
		}
		took = append(took, ns)
	}
	return took, nil
}

// A way is how one tool does a piece of work.
type way struct {
	name, promise string
	before, do    func() error // before is not counted, and may be nil
}

// reads is the promise of who only reads.
const reads = "reads only"

// compare has the ways do their work in turns. What they took is what people notice.
func (b *bench) compare(work, note string, ways []way) error {
	t := b.table(work, "ns", note)
	t.promises, t.People = map[string]string{}, work
	for round := range b.rounds(b.Rounds) {
		for i := range ways {
			w := ways[(i+round)%len(ways)]
			took, err := b.timed(w.before, w.do)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", work, w.name, err)
			}
			t.promises[w.name] = w.promise
			t.add(w.name, round, took...)
		}
	}
	return nil
}
