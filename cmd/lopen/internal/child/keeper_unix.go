//go:build unix

package child

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer/process"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// init makes this process the keeper of a command if Run started it as that: then it does not
// return. It is no call of main, because most of what a start takes is to initialise packages
// that a keeper does not use, and most of those come after this one.
func init() {
	text, asked := os.LookupEnv(keeperEnv)
	if !asked || len(os.Args) < 3 || os.Args[0] != keeperName {
		return
	}
	_ = os.Unsetenv(keeperEnv)
	var d duty
	if strictjson.Unmarshal([]byte(text), &d) != nil || d.Inherited < 0 || d.Inherited > 100 {
		os.Exit(2)
	}
	os.Exit(runKeeper(d, os.Args[1], os.Args[2:]))
}

// runKeeper starts the command, waits for its end, and says and notes how it ended.
func runKeeper(d duty, path string, argv []string) int {
	// The command gets its own descriptors alone, and is asked to end, not its keeper: what
	// is caught here is not ignored there.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	files := make([]*os.File, fdCommand+3+d.Inherited)
	for fd := fdControl; fd < len(files); fd++ {
		syscall.CloseOnExec(fd)
		files[fd] = os.NewFile(uintptr(fd), "inherited")
	}
	given := files[fdCommand:]
	cmd := &exec.Cmd{Path: path, Args: argv, Env: os.Environ(), Stdin: given[0], Stdout: given[1], Stderr: given[2], ExtraFiles: given[3:],
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	report := func(v any) {
		if line, err := strictjson.Marshal(v); err == nil {
			_, _ = files[fdReports].Write(append(line, '\n')) // else nobody reads it
		}
	}
	if gone(fdControl) {
		return 1
	}
	if err := cmd.Start(); err != nil {
		var errno syscall.Errno
		_ = errors.As(err, &errno)
		report(started{Errno: errno, Error: err.Error()})
		return 1
	}
	peak := ownPeak()
	closeAll(given)
	report(started{PID: cmd.Process.Pid})
	go guard(files[fdControl], cmd.Process.Pid, d.Ends, files[fdStdout], files[fdStderr])
	_ = cmd.Wait() // how it ended is in ProcessState
	e := endOf(cmd.ProcessState, peak)
	if d.Lock && d.Iteration > 0 {
		_ = process.NoteEnded(files[fdLock], process.Ended{Iteration: d.Iteration, Exit: e.Exit, Signal: e.Signal, Success: e.Exit == 0})
	}
	report(e)
	if d.Ends > 0 && gone(fdControl) {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what the command left
	}
	return 0
}

// guard waits until lopen orders the command's end, or is gone: then the command is asked to end
// and, after the time ends, killed. If ends is 0 it works on, and neither waits for a reader of its
// output nor dies for want of one.
func guard(control *os.File, pgid int, ends time.Duration, output ...*os.File) {
	n, _ := control.Read(make([]byte, 1))
	if n == 0 && ends > 0 {
		_ = syscall.Kill(-pgid, syscall.SIGTERM) // git takes its locks away, and a work tree that is half made
		time.Sleep(ends)
	}
	if n > 0 || ends > 0 {
		_ = syscall.Kill(-pgid, syscall.SIGKILL)
		return
	}
	for _, r := range output {
		go func() { _, _ = io.Copy(io.Discard, r) }()
	}
	_ = syscall.Kill(-pgid, syscall.SIGCONT) // lopen may have been stopped, and the command with it
}

// gone says whether nobody holds the other end of a pipe.
func gone(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLHUP != 0
}
