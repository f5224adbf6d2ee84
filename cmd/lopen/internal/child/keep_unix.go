//go:build unix

package child

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// keeperName is argv[0] of a keeper, and keeperEnv the variable with its duty, which its
// command does not get.
const (
	keeperName = "lopen-keeper"
	keeperEnv  = "LOPEN_KEEPER"
)

// A duty is what a keeper has to do. Its descriptors are, from 3 on: see the constants; then
// the command's stdin, stdout and stderr, and those that it inherits.
type duty struct {
	Inherited int  `json:"inherited"`           // how many descriptors the command gets beyond its first three
	Iteration int  `json:"iteration,omitempty"` // above 0: noted in the lock's file
	Lock      bool `json:"lock,omitempty"`      // there is a descriptor of the lock
	// Ends, above 0, is what the command gets from SIGTERM to SIGKILL when lopen is gone. At 0 it works on.
	Ends time.Duration `json:"ends,omitempty"`
}

const (
	fdControl = 3 + iota // of a pipe that this process holds the other end of: it ends with this process
	fdReports            // of a pipe that the keeper writes a started and an end to
	fdStdout             // of the pipe that the command writes to: the keeper reads when this process is gone
	fdStderr
	fdLock // of the lock, or the null device
	fdCommand
)

// started is the first report of a keeper: the command's PID, or why it could not be started.
type started struct {
	PID   int           `json:"pid"`
	Errno syscall.Errno `json:"errno"`
	Error string        `json:"error,omitempty"`
}

// reports are what a keeper says.
type reports struct {
	file  *os.File
	lines *bufio.Reader
}

// next reads one.
func (r *reports) next(v any) error {
	line, err := r.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return strictjson.Unmarshal(line, v)
}

// control is the pipe by which keepers see the end of this process: all of them read it. A
// byte in it orders them to kill their commands; each takes one.
var control = sync.OnceValues(func() (*controlPipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// What the runtime says of a panic, in whatever goroutine, is such an order. It is not
	// to wait for anybody who reads the rest.
	if err := debug.SetCrashOutput(w, debug.CrashOptions{}); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	raw, err := w.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), true) })
	}
	return &controlPipe{r, w}, err
})

type controlPipe struct{ r, w *os.File }

// orderKill has all keepers kill their commands, also those that are about to begin.
func orderKill() {
	if c, err := control(); err == nil {
		_, _ = c.w.Write(make([]byte, 256))
	}
}

// self is the path of this executable, "" where it is not there any more.
func self() string {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			return "/proc/self/exe" // also when another version was installed meanwhile
		}
	}
	path, err := os.Executable()
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return ""
	}
	return path
}

// startKeeper has a keeper start the command. It returns false where there can be no keeper.
func (p *program) startKeeper(c Command, path string, out *pipes) (bool, error) {
	exe := self()
	if exe == "" {
		return false, nil
	}
	pipe, err := control()
	if err != nil {
		return false, err
	}
	var ours []*os.File // copies, of which this process needs none after the start
	defer func() { closeAll(ours) }()
	d := duty{Inherited: len(c.Inherit), Iteration: c.Iteration, Lock: c.Lock != nil}
	if c.EndsWithUs {
		d.Ends = cmp.Or(c.Grace, defaultGrace)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return false, err
	}
	ours = append(ours, w)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = r.Close()
		return false, err
	}
	ours = append(ours, null)
	lock, stdin := null, null
	if d.Lock {
		lock = c.Lock.File()
	}
	if c.Stdin != nil {
		stdin = c.Stdin
	}
	files := []*os.File{pipe.r, w}
	for _, f := range out.ours {
		twin, err := duplicate(f)
		if err != nil {
			_ = r.Close()
			return false, err
		}
		ours, files = append(ours, twin), append(files, twin)
	}
	files = append(files, lock, stdin, out.theirs[0], out.theirs[1])
	if p.cmd, err = keeper(exe, path, c, d); err != nil {
		return false, errors.Join(err, r.Close())
	}
	p.cmd.ExtraFiles = slices.Concat(files, c.Inherit)
	if err := p.cmd.Start(); err != nil {
		return false, errors.Join(err, r.Close())
	}
	closeAll(ours)
	ours = nil
	p.keeper = &reports{r, bufio.NewReader(io.LimitReader(r, 64<<10))}
	pid, err := p.keeper.started(path)
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		return false, errors.Join(err, r.Close())
	}
	p.pid.Store(int64(pid))
	return true, nil
}

// keeper is the command line of the keeper exe for a command that lies at path.
func keeper(exe, path string, c Command, d duty) (*exec.Cmd, error) {
	text, err := strictjson.Marshal(d)
	if err != nil {
		return nil, err
	}
	env := c.Env
	if env == nil {
		env = (&exec.Cmd{Dir: c.Dir}).Environ()
	}
	cmd := &exec.Cmd{Path: exe, Args: append([]string{keeperName, path}, c.Argv...), Dir: c.Dir,
		Env: append(env[:len(env):len(env)], keeperEnv+"="+string(text))}
	ownSession(cmd)
	return cmd, nil
}

// started waits for the keeper to say that it has started the command.
func (r *reports) started(path string) (pid int, err error) {
	var s started
	err = r.next(&s)
	switch {
	case err != nil:
		err = fmt.Errorf("its keeper did not start it: %w", err)
	case s.Errno != 0:
		err = &fs.PathError{Op: "fork/exec", Path: path, Err: s.Errno}
	case s.Error != "":
		err = errors.New(s.Error)
	case s.PID <= 1:
		err = fmt.Errorf("its keeper says that it is process %d", s.PID)
	}
	return s.PID, err
}

// waitKeeper waits for what the keeper says of the command's end. A keeper that was killed
// says nothing: then the command's group is ended, and that is how the command ended.
func (p *program) waitKeeper() {
	err := p.keeper.next(&p.end)
	if err != nil {
		_ = syscall.Kill(-p.leader(), syscall.SIGKILL)
	}
	_ = p.cmd.Wait()
	if err != nil {
		if p.end = endOf(p.cmd.ProcessState, 0); p.end.Exit == 0 {
			p.end.Exit = -1
		}
	}
	_ = p.keeper.file.Close()
}

// duplicate is another descriptor of an open file. Unlike that of [os.File.Fd], it leaves
// the file's reads to be ended by Close.
func duplicate(f *os.File) (twin *os.File, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	if cerr := raw.Control(func(have uintptr) { fd, err = unix.FcntlInt(have, unix.F_DUPFD_CLOEXEC, 0) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
