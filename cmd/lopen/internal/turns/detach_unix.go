//go:build unix

package turns

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Detaches says whether this system has processes that outlive what started them and all above it.
const Detaches = true

// A Worker is a process that works on an event. It belongs to nobody: an agent that ends its hooks,
// by their parents or their groups, does not find it.
type Worker struct {
	alive  *os.File // held open as long as this process waits
	out    *os.File
	reader *bufio.Reader
}

// The descriptors of a Worker: the event, and its replies.
const eventFD, replyFD = 3, 4

// start leaves the worker behind: its parent is gone at once, so it becomes a child of init. A shell does
// that in a millisecond.
const start = `"$@" 3<&3 4>&4 </dev/null >/dev/null 2>&1 &`

// Detach starts this executable with arguments in a folder, as a Worker that gets data.
func Detach(args []string, dir string, environ []string, data []byte) (*Worker, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find lopen itself: %w", err)
	}
	in, event, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	out, reply, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a pipe: %w", err), in.Close(), event.Close())
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", start, "sh", exe}, args...)...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = dir, environ, []*os.File{in, reply}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Run()
	_, _ = in.Close(), reply.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a process that keeps the event: %w", err), event.Close(), out.Close())
	}
	_ = event.SetWriteDeadline(time.Now().Add(maxHandover))
	if err := writeFrame(event, data); err != nil {
		return nil, errors.Join(fmt.Errorf("hand the event over: %w", err), event.Close(), out.Close())
	}
	return &Worker{alive: event, out: out, reader: bufio.NewReader(out)}, nil
}

// maxHandover bounds how long a Worker may take to read its event.
const maxHandover = 2 * time.Second

// Limit bounds how long Line waits from now on; 0 is no limit.
func (w *Worker) Limit(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = w.out.SetReadDeadline(at)
}

// Line returns the next line that the Worker replies. The error wraps os.ErrDeadlineExceeded after
// the limit, and is io.EOF when the Worker has ended without one.
func (w *Worker) Line() ([]byte, error) { return w.reader.ReadBytes('\n') }

// Close leaves the Worker to itself.
func (w *Worker) Close() { _, _ = w.alive.Close(), w.out.Close() }

// Received returns what the Worker that this process is was given, and where it replies. alone is
// closed when nobody waits for it any more.
func Received() (data []byte, reply *os.File, alone <-chan struct{}, err error) {
	in := os.NewFile(eventFD, "event")
	reply = os.NewFile(replyFD, "reply")
	syscall.CloseOnExec(eventFD)
	syscall.CloseOnExec(replyFD)
	if data, err = readFrame(in); err != nil {
		return nil, nil, nil, fmt.Errorf("read the event: %w", err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = in.Read(make([]byte, 1)) // ends when the other end is closed
	}()
	return data, reply, gone, nil
}
