package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/writer/process"
)

const (
	defaultGrace = 10 * time.Second
	// drainTime is how long the output of a command that is gone is still read.
	drainTime = 2 * time.Second
	// tailBytes is how much of the end of the output is kept.
	tailBytes = 16 << 10
)

// ErrNotStarted is wrapped when a command could not be started at all.
var ErrNotStarted = errors.New("the command cannot be started")

// A Command is what to run.
type Command struct {
	Argv           []string // Argv[0] is looked up in PATH of Env
	Dir            string
	Env            []string
	Stdin          *os.File // nil is the null device
	Stdout, Stderr io.Writer
	Timeout        time.Duration // 0 is none
	IdleTimeout    time.Duration // without a byte of output; 0 is none
	// Activity, where it is not nil, is what IdleTimeout counts in place of output.
	Activity <-chan struct{}
	// Stop ends the command like ctx when it is closed; nil is never.
	Stop    <-chan struct{}
	Grace   time.Duration // from SIGTERM to SIGKILL; 0 is ten seconds
	Inherit []*os.File    // kept open in the command
	Started func(pid int) // called once, right after the start; may be nil
	// Keep has a keeper start the command, where there is one: see the package.
	Keep bool
	// EndsWithUs has the keeper end the command's group when this process was killed: with SIGTERM
	// and, after Grace, SIGKILL.
	EndsWithUs bool
	// Lock is the lock whose file is among Inherit. Once Started has recorded the command
	// there, who inherited it or its mark in other groups is ended with the command. nil is none.
	Lock *process.Lock
	// Iteration, above 0, has the keeper note in Lock how the command of this iteration
	// ended. What was noted of an earlier one is forgotten before the start.
	Iteration int
}

// Cause is why Run ended the command, if it did.
type Cause uint8

// The causes.
const (
	CauseNone     Cause = iota // it ended by itself
	CauseTimeout               // Timeout was over
	CauseIdle                  // IdleTimeout was over
	CauseCanceled              // the context ended
	CauseStopped               // Stop was closed
)

// A Result is how a command ended.
type Result struct {
	StartedAt, EndedAt time.Time
	Exit               int    // -1 when a signal ended it
	Signal             string // the signal's name, if one ended it
	Cause              Cause
	CPU                time.Duration // user and system time of the command and what it waited for
	// MaxRSS is the largest resident set of the command or of what it waited for, in
	// bytes; 0 where that is not known: the system does not say, or says hardly more
	// than this process had itself when the command was started.
	MaxRSS     int64
	Tail       []byte // the last whole lines of stdout and stderr, as they came: see LastLines
	LeftBehind bool   // something that outlived the command still holds its output
	// Left are the PIDs of what holds Lock after Run ended the command, and was left alone:
	// another command started it, or this one in a way that does not show it.
	Left []int
}

// environ is the command's environment, with the mark of its lock.
func (c Command) environ() []string {
	if c.Lock == nil {
		return c.Env
	}
	env := c.Env
	if env == nil {
		env = (&exec.Cmd{Dir: c.Dir}).Environ()
	}
	return slices.Concat(env, []string{c.Lock.Environment()})
}

// RunOn is Run with data on the command's stdin, which need not read it.
func RunOn(ctx context.Context, c Command, data []byte) (Result, error) {
	stdin, to, err := os.Pipe()
	if err != nil {
		return Result{}, fmt.Errorf("open pipe: %w", err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = to.Write(data)
		_ = to.Close()
	}()
	c.Stdin = stdin
	res, err := Run(ctx, c)
	_ = to.SetWriteDeadline(time.Now()) // a process that outlived the command may hold the other end
	<-written
	return res, errors.Join(err, stdin.Close())
}

// Run starts the command, waits until it has ended and passes its output on.
// When ctx or a limit ends it, its whole group gets SIGTERM and, after Grace,
// SIGKILL, and so does what it started in other groups, if it has Lock. The error is only
// that it could not be started: it wraps ErrNotStarted and names the command and the OS
// error; or that Lock's file cannot be written.
func Run(ctx context.Context, c Command) (Result, error) {
	path, err := lookPath(c.Argv, c.Dir, c.Env)
	if err != nil {
		return Result{}, err
	}
	if c.Lock != nil && c.Iteration > 0 {
		if err := c.Lock.Forget(); err != nil {
			return Result{}, err
		}
	}
	c.Env = c.environ()
	out := &output{active: make(chan struct{}, 1)}
	pipes, err := connect(c)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %s: %w", ErrNotStarted, c.Argv[0], err)
	}
	p := newProcess(c.Lock)
	defer p.remove()
	defer p.endOnPanic()
	begun := sync.OnceFunc(func() { close(p.begun) })
	defer begun()
	res := Result{StartedAt: time.Now()}
	err = p.start(c, path, pipes)
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeOurEnds()
		if _, gone := os.Stat(c.Dir); c.Dir != "" && gone != nil { // what the system says is that the command were not there
			err = gone
		}
		return Result{}, fmt.Errorf("%w: %s: %w", ErrNotStarted, c.Argv[0], err)
	}
	if c.Started != nil {
		c.Started(p.leader())
	}
	begun()
	copied := out.copy(pipes)
	go p.wait()
	if running.over.Load() {
		p.kill()
	}
	if res.Cause = p.watch(ctx, c, out.active); res.Cause != CauseNone {
		res.Left = p.left()
	}
	res.EndedAt = time.Now()
	drain := time.NewTimer(drainTime)
	defer drain.Stop()
	select {
	case <-copied:
	case <-drain.C:
		res.LeftBehind = true
	}
	pipes.closeOurEnds()
	<-copied
	res.Tail = out.tail.Lines()
	res.Exit, res.Signal, res.CPU, res.MaxRSS = p.end.Exit, p.end.Signal, p.end.CPU, p.end.MaxRSS
	return res, nil
}
