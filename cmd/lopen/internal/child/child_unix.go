//go:build unix

package child

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownSession makes the command the leader of a session and of a process group of its own,
// so that a Ctrl-C on the terminal reaches lopen alone, the group can be ended whole, and
// the command has no terminal: neither to write on past lopen nor to type into.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// terminate asks the group to end, and what the command started elsewhere.
func (p *program) terminate() { p.signal(syscall.SIGTERM) }

func (p *program) pause()   { p.signal(syscall.SIGSTOP) }
func (p *program) proceed() { p.signal(syscall.SIGCONT) }

// kill ends what is left of the group, and of what the command started elsewhere, which
// may have started more meanwhile.
func (p *program) kill() {
	for range 10 {
		if p.signal(syscall.SIGKILL) == 0 {
			return
		}
	}
}

// signal sends a signal to the command's group, and to the processes in other groups that
// inherited its lock or its mark, of which it returns the number. The group's number is not given to
// another one while a member lives; when none does, there is nothing to signal.
func (p *program) signal(s syscall.Signal) (strays int) {
	pgid := p.leader()
	if pgid == 0 {
		return 0
	}
	_ = syscall.Kill(-pgid, s)
	for _, stray := range p.strays() {
		if stray.Signal(s) == nil {
			strays++
		}
	}
	return strays
}

// inexact is by how much two peaks of one process may differ, in bytes: Linux counts pages
// by processor and adds them up now and then.
const inexact = 1 << 20

func endOf(ps *os.ProcessState, peak int64) end {
	e := end{Exit: ps.ExitCode(), CPU: ps.UserTime() + ps.SystemTime()}
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Exit, e.Signal = -1, unix.SignalName(ws.Signal())
	}
	if m := peakOf(ps); m > peak+inexact {
		e.MaxRSS = m
	}
	return e
}

// peakOf is what the system says of the largest resident set of a command or of what
// it waited for, in bytes.
func peakOf(ps *os.ProcessState) int64 {
	u, ok := ps.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return maxRSS(u)
}

// ownPeak is the largest resident set that this process had, in bytes. What getrusage
// says counts in who started it, which a command of its own does not inherit.
func ownPeak() int64 {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		var kib int64
		_, peak, _ := bytes.Cut(status, []byte("VmHWM:"))
		if n, _ := fmt.Sscan(string(peak[:min(len(peak), 32)]), &kib); n == 1 {
			return kib << 10
		}
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.MaxInt64
	}
	return maxRSS(&u)
}

// maxRSS is in bytes. Linux counts in KiB.
func maxRSS(u *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss << 10
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			return pe.Err
		}
		return err
	}
	if info.IsDir() {
		return errors.New("it is a folder")
	}
	if unix.Access(path, unix.X_OK) != nil || info.Mode()&0o111 == 0 {
		return errors.New("it is not executable")
	}
	return nil
}
