package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	defaultGrace = 10 * time.Second
	// drainTime is how long the output of a command that is gone is still read.
	drainTime = 2 * time.Second
	// TailBytes is how much of the end of the output is kept.
	TailBytes = 16 << 10
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
	Grace          time.Duration // from SIGTERM to SIGKILL; 0 is ten seconds
	Inherit        []*os.File    // kept open in the command
	Started        func(pid int) // called once, right after the start; may be nil
}

// Cause is why Run ended the command, if it did.
type Cause uint8

// The causes.
const (
	CauseNone     Cause = iota // it ended by itself
	CauseTimeout               // Timeout was over
	CauseIdle                  // IdleTimeout was over
	CauseCanceled              // the context ended
)

// A Result is how a command ended.
type Result struct {
	StartedAt, EndedAt time.Time
	Exit               int    // -1 when a signal ended it
	Signal             string // the signal's name, if one ended it
	Cause              Cause
	CPU                time.Duration // user and system time of the command and what it waited for
	// MaxRSS is the largest resident set of the command or of what it waited for, in
	// bytes; 0 where that is not known: the system does not say, or says no more than
	// this process had itself when the command was started.
	MaxRSS     int64
	Tail       []byte // the last whole lines of stdout and stderr, as they came: see LastLines
	LeftBehind bool   // something that outlived the command still holds its output
}

// Run starts the command, waits until it has ended and passes its output on.
// When ctx or a limit ends it, its whole group gets SIGTERM and, after Grace,
// SIGKILL. The error is only that it could not be started: it wraps ErrNotStarted
// and names the command and the OS error.
func Run(ctx context.Context, c Command) (Result, error) {
	path, err := lookPath(c.Argv, c.Dir, c.Env)
	if err != nil {
		return Result{}, err
	}
	cmd := &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: c.Env, ExtraFiles: c.Inherit}
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	ownGroup(cmd)
	out := &output{active: make(chan struct{}, 1)}
	pipes, err := out.connect(cmd, c)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %s: %w", ErrNotStarted, c.Argv[0], err)
	}
	res := Result{StartedAt: time.Now()}
	err = cmd.Start()
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeOurEnds()
		if _, gone := os.Stat(c.Dir); c.Dir != "" && gone != nil { // what the system says is that the command were not there
			err = gone
		}
		return Result{}, fmt.Errorf("%w: %s: %w", ErrNotStarted, c.Argv[0], err)
	}
	// Until the command's own program is loaded, which has happened, it is a copy of this
	// process, and the system counts that as its peak.
	ours := ownPeak()
	if c.Started != nil {
		c.Started(cmd.Process.Pid)
	}
	copied := out.copy(pipes)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(ended)
	}()
	res.Cause = watch(ctx, c, cmd, out.active, ended)
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
	res.Tail = out.tail()
	res.Exit, res.Signal = exitOf(cmd.ProcessState)
	res.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if peak := peakOf(cmd.ProcessState); peak > ours {
		res.MaxRSS = peak
	}
	return res, nil
}

// watch waits until the command has ended, and ends it when it must.
func watch(ctx context.Context, c Command, cmd *exec.Cmd, active <-chan struct{}, ended <-chan struct{}) Cause {
	timeout, stopTimeout := after(c.Timeout)
	defer stopTimeout()
	idle := time.NewTimer(max(c.IdleTimeout, time.Nanosecond))
	defer idle.Stop()
	idleC := idle.C
	if c.IdleTimeout <= 0 {
		idleC = nil
	}
	for {
		var cause Cause
		select {
		case <-ended:
			return CauseNone
		case <-active:
			if c.IdleTimeout > 0 {
				idle.Reset(c.IdleTimeout)
			}
			continue
		case <-timeout:
			cause = CauseTimeout
		case <-idleC:
			cause = CauseIdle
		case <-ctx.Done():
			cause = CauseCanceled
		}
		end(c, cmd, ended)
		return cause
	}
}

// end takes the command's group down and waits for the command.
func end(c Command, cmd *exec.Cmd, ended <-chan struct{}) {
	grace := c.Grace
	if grace <= 0 {
		grace = defaultGrace
	}
	terminate(cmd)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
		kill(cmd) // members of the group that ignored SIGTERM
	case <-timer.C:
		kill(cmd)
		<-ended
	}
}

func after(d time.Duration) (<-chan time.Time, func() bool) {
	if d <= 0 {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(d)
	return t.C, t.Stop
}

// Look says whether a command can be started at all: found, executable, and no
// folder. Its error wraps ErrNotStarted.
func Look(argv []string, dir string, env []string) error {
	_, err := lookPath(argv, dir, env)
	return err
}

// lookPath finds the executable as a shell in dir with env would.
func lookPath(argv []string, dir string, env []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", fmt.Errorf("%w: it is empty", ErrNotStarted)
	}
	name := argv[0]
	if filepath.Base(name) != name {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrNotStarted, name, err)
		}
		return path, nil
	}
	search := os.Getenv("PATH")
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	var first error
	for _, d := range filepath.SplitList(search) {
		if d == "" {
			d = "."
		}
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		err := executable(filepath.Join(d, name))
		if err == nil {
			return filepath.Join(d, name), nil
		}
		if first == nil && !errors.Is(err, os.ErrNotExist) {
			first = err
		}
	}
	if first == nil {
		first = errors.New("not found in PATH")
	}
	return "", fmt.Errorf("%w: %s: %w", ErrNotStarted, name, first)
}

// output passes a command's output on and keeps its end.
type output struct {
	active chan struct{} // gets a token when something was printed

	mu   sync.Mutex
	ring []byte // Guarded by mu: at most twice TailBytes and a bit.
}

type pipes struct {
	ours, theirs []*os.File
	to           []io.Writer
}

func (o *output) connect(cmd *exec.Cmd, c Command) (*pipes, error) {
	p := &pipes{to: []io.Writer{c.Stdout, c.Stderr}}
	for range p.to {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeOurEnds()
			p.closeChildEnds()
			return nil, err
		}
		p.ours, p.theirs = append(p.ours, r), append(p.theirs, w)
	}
	cmd.Stdout, cmd.Stderr = p.theirs[0], p.theirs[1]
	return p, nil
}

func (p *pipes) closeOurEnds()   { closeAll(p.ours) }
func (p *pipes) closeChildEnds() { closeAll(p.theirs) }

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// copy passes both streams on until they end or are closed. A writer that fails
// (a terminal that went away) must not stop the command: the rest is read and
// only its end is kept.
func (o *output) copy(p *pipes) <-chan struct{} {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i, r := range p.ours {
		wg.Go(func() {
			buf := make([]byte, 32<<10)
			w := p.to[i]
			for {
				n, err := r.Read(buf)
				if n > 0 {
					o.keep(buf[:n])
					if w != nil {
						if _, werr := w.Write(buf[:n]); werr != nil {
							w = nil
						}
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	return done
}

func (o *output) keep(b []byte) {
	select {
	case o.active <- struct{}{}:
	default:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	const keep = TailBytes + 1 // the byte before says whether a line begins
	if len(b) > keep {
		b = b[len(b)-keep:]
	}
	if len(o.ring)+len(b) > 2*keep {
		o.ring = append(o.ring[:0], o.ring[len(o.ring)-keep:]...)
	}
	o.ring = append(o.ring, b...)
}

func (o *output) tail() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return LastLines(o.ring, TailBytes)
}

// LastLines returns the last whole lines of text, at most size bytes of it. A line that
// is cut is left out: its beginning may be what says that the rest is a secret. Of a
// line that is longer than that a note is left.
func LastLines(text []byte, size int) []byte {
	if len(text) <= size {
		return text
	}
	text = text[len(text)-size-1:]
	if _, rest, ok := bytes.Cut(text, []byte{'\n'}); ok && len(rest) > 0 {
		return rest
	}
	return fmt.Appendf(nil, "[the last line is longer than %d bytes and left out]\n", size)
}
