package child

import (
	"context"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lopen-dev/lopen/writer/process"
)

// A program is a command that runs, or its keeper that runs it.
type program struct {
	cmd    *exec.Cmd // what this process started
	lock   *process.Lock
	pid    atomic.Int64 // of the command, which leads its group; 0 before it has begun
	peak   int64        // this process's own when it started the command
	keeper *reports     // nil without one
	end    end          // Set before ended is closed.

	begun     chan struct{}      // closed when Started has returned, or there is nothing to wait for
	ended     chan struct{}      // closed when the command has ended, and its keeper
	unwatched chan struct{}      // closed when freeze is not received from any more
	freeze    chan chan struct{} // see WhileStopped
}

// An end is how a command ended.
type end struct {
	Exit   int           `json:"exit"`
	Signal string        `json:"signal,omitempty"`
	CPU    time.Duration `json:"cpu"`
	MaxRSS int64         `json:"maxRSS"`
}

func (p *program) leader() int { return int(p.pid.Load()) }

// start starts the command, or a keeper that starts it.
func (p *program) start(c Command, path string, pipes *pipes) error {
	if c.Keep {
		if started, err := p.startKeeper(c, path, pipes); started || err != nil {
			return err
		}
	}
	p.cmd = &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: c.Env, ExtraFiles: c.Inherit, Stdout: pipes.theirs[0], Stderr: pipes.theirs[1]}
	if c.Stdin != nil {
		p.cmd.Stdin = c.Stdin
	}
	ownSession(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	// Until the command's own program is loaded, which has happened, it is a copy of this
	// process, and the system counts that as its peak.
	p.peak = ownPeak()
	p.pid.Store(int64(p.cmd.Process.Pid))
	return nil
}

// wait waits until the command has ended, and its keeper.
func (p *program) wait() {
	defer close(p.ended)
	if p.keeper != nil {
		p.waitKeeper()
		return
	}
	_ = p.cmd.Wait() // how it ended is in ProcessState
	p.end = endOf(p.cmd.ProcessState, p.peak)
}

// watch waits until the command has ended, and ends it when it must.
func (p *program) watch(ctx context.Context, c Command, active <-chan struct{}) Cause {
	timeout, idle := newCountdown(c.Timeout), newCountdown(c.IdleTimeout)
	defer timeout.hold()
	defer idle.hold()
	if c.Activity != nil {
		active = c.Activity
	}
	cause := func() Cause {
		defer close(p.unwatched)
		for {
			select {
			case <-p.ended:
				return CauseNone
			case <-active:
				idle.restart()
			case <-timeout.C:
				return CauseTimeout
			case <-idle.C:
				return CauseIdle
			case <-ctx.Done():
				return CauseCanceled
			case <-c.Stop:
				return CauseStopped
			case thaw := <-p.freeze:
				timeout.hold()
				idle.hold()
				thaw <- struct{}{}
				<-thaw
				timeout.resume()
				idle.resume()
			}
		}
	}()
	if cause != CauseNone {
		p.takeDown(c.Grace)
	}
	return cause
}

// takeDown takes the command's group down, and what the command started elsewhere, and
// waits until they are gone.
func (p *program) takeDown(grace time.Duration) {
	if grace <= 0 {
		grace = defaultGrace
	}
	p.terminate()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.ended:
		p.kill() // members of the group that ignored SIGTERM
	case <-timer.C:
		p.kill()
		p.mustEnd()
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	p.gone(ctx)
}

// mustEnd waits for the end of a command that was killed. A keeper that does not notice,
// because somebody stopped it, is killed as well.
func (p *program) mustEnd() {
	timer := time.NewTimer(killTime)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// strays are the processes in other groups that the command started and that inherited its
// lock or its mark. Its keeper is none.
func (p *program) strays() []process.Stray {
	if p.lock == nil || p.leader() == 0 {
		return nil
	}
	ours, _ := p.lock.Strays()
	return p.but(ours)
}

// left are the processes that hold the lock all the same.
func (p *program) left() (pids []int) {
	if p.lock == nil || p.leader() == 0 {
		return nil
	}
	ours, others := p.lock.Strays()
	for _, s := range p.but(append(ours, others...)) {
		pids = append(pids, s.PID)
	}
	return pids
}

func (p *program) but(all []process.Stray) []process.Stray {
	return slices.DeleteFunc(all, func(s process.Stray) bool { return s.PID == p.cmd.Process.Pid })
}

// A countdown is a timer that can be held.
type countdown struct {
	C    <-chan time.Time
	t    *time.Timer
	d    time.Duration // of the whole; 0 is never over
	left time.Duration
	ends time.Time
}

func newCountdown(d time.Duration) *countdown {
	c := &countdown{d: d}
	if d > 0 {
		c.t = time.NewTimer(d)
		c.C, c.ends = c.t.C, time.Now().Add(d)
	}
	return c
}

func (c *countdown) restart() { c.left = c.d; c.resume() }

func (c *countdown) hold() {
	if c.d > 0 {
		c.t.Stop()
		c.left = max(time.Until(c.ends), time.Nanosecond)
	}
}

func (c *countdown) resume() {
	if c.d > 0 {
		c.t.Reset(c.left)
		c.ends = time.Now().Add(c.left)
	}
}
