package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// stall is the longest wait while the disk answers no fsync at all. All contenders are
// stalled at once: they wait, and take nothing from each other.
func (b *bench) stall() error {
	if b.disk == nil {
		return nil
	}
	longest := b.table(fmt.Sprintf("The longest that a caller of Save waits when fsync hangs for %s", b.Stall), "ns",
		"One stall. All contenders save 200 times a second beside each other.")
	taken := b.table(fmt.Sprintf("Saves that were taken while fsync hung for %s", b.Stall), "saves",
		"Of 200 a second. More is better.")
	longest.saved, taken.saved = true, true
	var all []*contender
	for _, k := range b.kinds {
		c, err := b.open(k, b.disk.Dir, usual)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	if err := b.disk.Stall(b.Stall); err != nil {
		return err
	}
	until := time.Now().Add(b.Stall)
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	waited, saves := make([]float64, len(all)), make([]float64, len(all))
	for i, c := range all {
		wg.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for time.Now().Before(until) && errs[i] == nil {
				<-tick.C
				var ns float64
				ns, errs[i] = nanoseconds(c.save)
				waited[i] = max(waited[i], ns)
				if time.Now().Before(until) {
					saves[i]++
				}
			}
		})
	}
	wg.Wait()
	for i, c := range all {
		longest.add(c.Name, 0, waited[i])
		taken.add(c.Name, 0, saves[i])
		errs = append(errs, c.Sync(), c.end())
	}
	return errors.Join(errs...)
}

// costs are the fsyncs and bytes of a save, by itself and in a burst, from the opening
// to the end of the closing.
func (b *bench) costs() error {
	if b.disk == nil {
		return nil
	}
	const alone = 50
	paced := func(c *contender) error {
		defer time.Sleep(pace)
		return c.durable()
	}
	burst := min(b.Triggers, 1000) // those that replace a file need minutes for more
	for _, work := range []struct {
		title string
		saves int
		save  func(*contender) error
		n     int
	}{
		{fmt.Sprintf("of a save by itself, plan of %d tasks", usual), alone, (*contender).durable, usual},
		{"of a save by itself, plan of 1,000 tasks", alone, (*contender).durable, 1000},
		{"of a save, one every 5 ms", 4 * alone, paced, usual},
		{"a save in a burst of " + thousands(burst), burst, (*contender).save, usual},
	} {
		fsyncs := b.table("Fsyncs "+work.title, "fsyncs", "Until closed, what is written beside and at the end included.")
		written := b.table("Bytes written "+work.title, "bytes", fmt.Sprintf("Likewise. About %d bytes change in the state; x changed is what is written for each of them.", changedBytes))
		written.PerByte = changedBytes
		commits := b.table("Commits "+work.title, "commits", "Likewise.")
		for _, k := range b.kinds {
			c, err := b.open(k, b.disk.Dir, work.n)
			if err != nil {
				return err
			}
			count := func() (float64, error) { return float64(c.steps), nil } // one each
			if l, ok := c.Peer.(*lopen); ok {
				count = l.records
			}
			first, err := count()
			if err != nil {
				return err
			}
			before, err := b.disk.Counts()
			for range work.saves {
				err = errors.Join(err, work.save(c))
			}
			serr := c.Sync()
			last, lerr := count()
			err = errors.Join(err, serr, lerr, c.Close())
			after, cerr := b.disk.Counts()
			if err = errors.Join(err, cerr); err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
			commits.add(k.Name, 0, (last-first)/float64(work.saves))
			fsyncs.add(k.Name, 0, float64(after.Fsyncs-before.Fsyncs)/float64(work.saves))
			written.add(k.Name, 0, float64(after.Bytes-before.Bytes)/float64(work.saves))
		}
	}
	return nil
}

// changedBytes is about what a step changes in a plan: the attempts of one task, as the
// JSON of that task has it.
const changedBytes = 90
