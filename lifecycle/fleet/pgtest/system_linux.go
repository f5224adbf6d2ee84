package pgtest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const supported = true

// account is the user that servers run as: nil for the one of this process.
var account = sync.OnceValues(func() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("find a user for PostgreSQL, which refuses root: neither postgres nor nobody exists")
})

// isolate makes a command run as the servers' user, in a process group of its own: what a
// terminal sends to the tests does not reach it.
func isolate(cmd *exec.Cmd) error {
	as, err := account()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as}
	return err
}

// chown gives a file or folder to the servers' user.
func chown(path string) error {
	as, err := account()
	if as == nil || err != nil {
		return err
	}
	return os.Chown(path, int(as.Uid), int(as.Gid))
}

// free is how many bytes a disk has left, 0 where that is not known.
func free(dir string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}

// A process is one whose command line has a certain name in it.
type process struct {
	pid, group int
	stopped    bool
	used       time.Duration // CPU time of its own
	reaped     time.Duration // CPU time of its children that it has waited for
}

// processes are those with name in their command lines, but this one.
func processes(name string) (found []process, err error) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline"))
		if err != nil || !bytes.Contains(line, []byte(name)) {
			continue // another's, or gone meanwhile; a zombie's is empty
		}
		stat, err := os.ReadFile(filepath.Join("/proc", d.Name(), "stat"))
		if err != nil {
			continue
		}
		// The second field is a name in parentheses and may have spaces.
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(f) < 15 {
			continue
		}
		group, _ := strconv.Atoi(f[2])
		found = append(found, process{
			pid: pid, group: group, stopped: f[0] == "T",
			used: ticks(f[11]) + ticks(f[12]), reaped: ticks(f[13]) + ticks(f[14]),
		})
	}
	return found, nil
}

// ticks reads a time in hundredths of a second, which is what Linux shows on all its systems.
func ticks(s string) time.Duration {
	n, _ := strconv.ParseInt(s, 10, 64)
	return time.Duration(n) * (time.Second / 100)
}

// cpu is the CPU time of the processes of a name, and of those that they have waited for.
func cpu(name string) (sum time.Duration, err error) {
	all, err := processes(name)
	for _, p := range all {
		sum += p.used + p.reaped
	}
	return sum, err
}

// killAll kills the processes of a name, and returns when none is left.
func killAll(name string) error {
	return poll("the end of "+name, func() (bool, error) {
		all, err := processes(name)
		for _, p := range all {
			if p.group == p.pid {
				_ = syscall.Kill(-p.pid, syscall.SIGKILL) // initdb's children do not have the name
			}
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		return len(all) == 0, err
	})
}

// quit lets a postmaster end its children and itself at once, since those of a killed one become
// zombies until init waits for them, and in a container there may be no such init. What is left
// soon after is killed.
func quit(name, data string) error {
	all, err := processes(name)
	if err != nil {
		return err
	}
	postmaster, _ := strconv.Atoi(pidFile(data).pid)
	for _, p := range all {
		_ = syscall.Kill(p.pid, syscall.SIGCONT)
		if p.pid == postmaster {
			_ = syscall.Kill(p.pid, syscall.SIGQUIT)
		}
	}
	if slices.ContainsFunc(all, func(p process) bool { return p.pid == postmaster }) {
		_ = pollFor(2*time.Second, "the end of "+name, func() (bool, error) {
			all, err := processes(name)
			return len(all) == 0, err
		})
	}
	return killAll(name)
}

// freeze stops the processes of a name, and returns when all are stopped.
func freeze(name string) error {
	return poll("the pause of "+name, func() (bool, error) {
		all, err := processes(name)
		still := true
		for _, p := range all {
			if !p.stopped {
				still = false
				_ = syscall.Kill(p.pid, syscall.SIGSTOP)
			}
		}
		return still, err
	})
}

// thaw lets the stopped processes of a name continue.
func thaw(name string) error {
	all, err := processes(name)
	for _, p := range all {
		_ = syscall.Kill(p.pid, syscall.SIGCONT)
	}
	return err
}

// sweep frees the shared memory of a killed server, of which the system has a limited number of
// segments, and removes its lock file: the PID in it may be another process's by now.
func sweep(data string) error {
	status := pidFile(data)
	if id := status.memory; id != "" {
		cmd := exec.Command("ipcrm", "-m", id)
		if err := isolate(cmd); err != nil {
			return err
		}
		_ = cmd.Run() // it is not there after an orderly end
	}
	if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
