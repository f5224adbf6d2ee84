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

// ownGroup makes the command the leader of a session and of a process group of its own,
// so that a Ctrl-C on the terminal reaches lopen alone, the group can be ended whole, and
// the command has no terminal: neither to write on past lopen nor to type into.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill ends what is left of the group. Its number is not given to another one
// while a member lives; when none does, there is nothing to signal.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

func exitOf(ps *os.ProcessState) (code int, signal string) {
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, unix.SignalName(ws.Signal())
	}
	return ps.ExitCode(), ""
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
