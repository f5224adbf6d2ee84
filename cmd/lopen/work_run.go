package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
)

// A crew is what the runs of a work share.
type crew struct {
	screen *screen
	shared *loop.Shared
	until  time.Time // of --until

	single sync.Mutex // held by a run that does what only one at a time may do: see byItself
}

// run runs the module. A panic of its run is the run's error.
func (m *member) run(ctx context.Context, w *workCall, c *crew) {
	p := c.screen.pane(m.module)
	defer p.stop()
	defer func() {
		if v := recover(); v != nil {
			m.err = fmt.Errorf("panic: %v", v)
			p.Warn("%v\n%s", m.err, debug.Stack())
		}
	}()
	r := w.run
	if r.base, m.err = w.base(ctx, m); m.err != nil {
		return
	}
	m.sayTicked(w, p)
	r.app, r.module, r.crew, r.pane = p.streams(w.app), m.module, c, p
	m.err = r.run(ctx)
	m.ran = r.ran
}

// sayTicked says which tasks of the module were ticked since the work began: its own run did not do that.
func (m *member) sayTicked(w *workCall, on *pane) {
	now, err := w.store.Plan(m.module)
	if err != nil {
		return // the run says what is wrong with it
	}
	var ticked []string
	for _, id := range m.open {
		if t, ok := now.Task(id); ok && t.Checked {
			ticked = append(ticked, id)
		}
	}
	if len(ticked) > 0 {
		on.Warn("ticked since the work began, and not by a run of this module: %s", some(ticked))
	}
}

// share is what the loops of the runs share; nil where a run is alone.
func (c *crew) share() *loop.Shared {
	if c == nil {
		return nil
	}
	return c.shared
}

// byItself keeps the other runs of the work away from the approvals, and from making work trees, until
// the function that it returns is called.
func (c *crew) byItself() (over func()) {
	if c == nil {
		return func() {}
	}
	c.single.Lock()
	return c.single.Unlock
}
