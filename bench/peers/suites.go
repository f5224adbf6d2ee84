package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/bench/workload"
)

// pace is that of a busy loop: 200 saves a second.
const pace = 5 * time.Millisecond

// durableBySize is one save that is waited for, against the size of the plan.
func (b *bench) durableBySize() error {
	for i := range b.parts(len(b.Sizes)) {
		n := b.Sizes[i]
		t := b.table(fmt.Sprintf("One save until durable, plan of %s tasks", thousands(n)), "ns",
			"One task changes. The floor does not know the plan.")
		if n == usual {
			t.People = fmt.Sprintf("One save of a plan of %d tasks until durable", usual)
		}
		err := b.turns(b.dir, n, nil, func(round int, c *contender) error {
			took, err := b.timed(nil, c.durable)
			t.add(c.Name, round, took...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// waits is what the caller of Save waits at a steady pace.
func (b *bench) waits() error {
	t := b.table("What the caller of Save waits at 200 a second, disk idle", "ns",
		fmt.Sprintf("Plan of %d tasks. Each save comes 5 ms after the one before, or as soon as that let its caller go.", usual))
	t.People = "What a loop waits for one save, 200 a second"
	return b.pacedWaits(b.dir, t)
}

// slowWaits is the same while the disk is slow.
func (b *bench) slowWaits() error {
	if b.disk == nil {
		return nil
	}
	t := b.table(fmt.Sprintf("What the caller of Save waits at 200 a second, each fsync takes %s longer", b.Hold), "ns",
		"On the file system in user space, the same for all.")
	t.People = fmt.Sprintf("The same while each fsync takes %s longer", b.Hold)
	err := b.pacedWaits(b.disk.Dir, t, b.disk.Hold)
	return errors.Join(err, b.disk.Hold(0))
}

func (b *bench) pacedWaits(dir string, t *Table, hold ...func(time.Duration) error) error {
	t.saved = true
	return b.turns(dir, usual, nil, func(round int, c *contender) error {
		for _, h := range hold {
			if err := h(b.Hold); err != nil {
				return err
			}
		}
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for begun := time.Now(); time.Since(begun) < b.Paced; {
			<-tick.C
			ns, err := nanoseconds(c.save)
			if err != nil {
				return err
			}
			t.add(c.Name, round, ns)
		}
		for _, h := range hold { // what waits now is not the next contender's
			if err := h(0); err != nil {
				return err
			}
		}
		return c.Sync()
	})
}

// burst is many saves back to back.
func (b *bench) burst() error {
	n := thousands(b.Triggers)
	last := b.table("A burst of "+n+" saves: from the last one until durable", "ns", "")
	each := b.table("A burst of "+n+" saves: what one keeps its caller", "ns", "The burst divided by its saves.")
	each.saved = true
	total := b.table("A burst of "+n+" saves: from the first one until durable", "ns", "")
	return b.turns(b.dir, usual, nil, func(round int, c *contender) error {
		begun := time.Now()
		for range b.Triggers {
			if err := c.save(); err != nil {
				return err
			}
		}
		saved := time.Now()
		ns, err := nanoseconds(c.Sync)
		if !c.later() { // the last save was waited for by the caller already
			ns = float64(saved.Sub(begun)) / float64(b.Triggers)
		}
		last.add(c.Name, round, ns)
		each.add(c.Name, round, float64(saved.Sub(begun))/float64(b.Triggers))
		total.add(c.Name, round, float64(time.Since(begun)))
		return err
	})
}

// later says that Save returns before what it saved is what Sync promises.
func (c *contender) later() bool { return c.Saved != "" }

// messages are those of a conversation, each waited for.
func (b *bench) messages() error {
	sizes := []int{200, 4 << 10, 64 << 10}
	for i := range b.parts(len(sizes)) {
		size := sizes[i]
		t := b.table(fmt.Sprintf("One message of %s bytes until durable", thousands(size)), "ns",
			"Those that write one file whole are left out: they would write the conversation again for each message.")
		text := workload.Text(size, 0)
		err := b.turns(b.dir, usual, func(k Kind) bool { return !k.Whole }, func(round int, c *contender) error {
			took, err := b.timed(nil, func() error {
				if err := c.Peer.(Appender).Append(text); err != nil {
					return err
				}
				return c.Sync()
			})
			t.add(c.Name, round, took...)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// together is many sessions of one process, each with a folder of its own.
func (b *bench) together() error {
	t := b.table(fmt.Sprintf("%d sessions at once: time for each durable save", b.Sessions), "ns",
		"The time that all took together, divided by the saves of all.")
	for round := range b.rounds(b.Rounds) {
		for i := range b.kinds {
			k := b.kinds[(i+round)%len(b.kinds)]
			ns, err := b.oneTogether(k)
			if err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
			t.add(k.Name, round, ns)
		}
	}
	return nil
}

func (b *bench) oneTogether(k Kind) (float64, error) {
	const saves = 10
	all := make([]*contender, b.Sessions)
	for i := range all {
		var err error
		if all[i], err = b.open(k, b.dir, usual); err != nil {
			return 0, err
		}
	}
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	begun := time.Now()
	for i, c := range all {
		wg.Go(func() {
			for range saves {
				errs[i] = errors.Join(errs[i], c.durable())
			}
		})
	}
	wg.Wait()
	took := float64(time.Since(begun)) / float64(saves*len(all))
	for _, c := range all {
		errs = append(errs, c.end())
	}
	return took, errors.Join(errs...)
}

// iterations is a session whose metrics grow: what its last saves cost.
func (b *bench) iterations() error {
	tenth := b.Iterations / 10
	last := b.table(fmt.Sprintf("A session of %s iterations: one of the last %d until durable", thousands(b.Iterations), tenth), "ns",
		"Each save adds an iteration to the metrics.")
	growth := b.table("The same: how many times one of the first took that long", "times", "1 is flat.")
	growth.Base = ""
	return b.turns(b.dir, usual, nil, func(round int, c *contender) error {
		if round > 0 {
			return nil // a session is long only once
		}
		var took []float64
		for range b.Iterations {
			s := c.next()
			s.Iteration = true
			ns, err := nanoseconds(func() error {
				if err := c.Save(s); err != nil {
					return err
				}
				return c.Sync()
			})
			if err != nil {
				return err
			}
			took = append(took, ns)
		}
		last.add(c.Name, 0, took[len(took)-tenth:]...)
		growth.add(c.Name, 0, quantile(took[len(took)-tenth:], 0.5)/quantile(took[:tenth], 0.5))
		return nil
	})
}
