package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/internal/proc"
)

// members are the processes of a group that are no zombies, and whether /proc tells.
func members(pgid int) (pids []string, known bool) {
	names, known := processes()
	want := strconv.Itoa(pgid)
	for _, name := range names {
		f := proc.Fields(name)
		if len(f) > 2 && string(f[2]) == want && f[0][0] != 'Z' && f[0][0] != 'X' {
			pids = append(pids, name)
		}
	}
	return pids, known
}

// processes are the PIDs of all processes, and whether /proc tells.
func processes() (pids []string, known bool) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil || len(proc.Fields("self")) == 0 {
		return nil, false
	}
	for _, name := range names {
		if name[0] >= '0' && name[0] <= '9' {
			pids = append(pids, name)
		}
	}
	return pids, true
}

// groupExists says whether a process group has a member that is no zombie.
func groupExists(pgid int) bool {
	if err := syscall.Kill(-pgid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	// The kernel counts zombies as members: only /proc tells. Without it they live.
	pids, known := members(pgid)
	return !known || len(pids) > 0
}

// groupHolds says whether a process of this user in a group has a descriptor of file
// that holds an flock. One that merely has the file open, an editor say, has none.
func groupHolds(pgid int, file fs.FileInfo) answer {
	pids, known := members(pgid)
	if !known {
		return unknown
	}
	for _, pid := range pids {
		if holdsFlock(pid, file) {
			return yes
		}
	}
	return no
}

// maxHolders is how many processes that hold a lock are named.
const maxHolders = 8

// holders are other processes of this user that have a descriptor of file which holds an
// flock: nil where /proc does not tell.
func holders(file fs.FileInfo) (found []int) {
	pids, _ := processes()
	for _, pid := range pids {
		n, err := strconv.Atoi(pid)
		if err == nil && n != os.Getpid() && len(found) < maxHolders && holdsFlock(pid, file) {
			found = append(found, n)
		}
	}
	return found
}

// strays are the other processes of this user that have a descriptor of file which holds
// an flock, and are members neither of a group nor of this process's one. ours have the
// position mark and began with the group's leader or later.
func strays(file fs.FileInfo, mark int64, of Group) (ours, others []int) {
	begun, _ := strconv.ParseUint(of.Start, 10, 64)
	self := strconv.Itoa(syscall.Getpgrp()) // a program that this process is just starting has its descriptors for a moment
	pids, _ := processes()
	for _, pid := range pids {
		n, err := strconv.Atoi(pid)
		if err != nil || n == os.Getpid() {
			continue
		}
		at := flocks(pid, file)
		if len(at) == 0 {
			continue
		}
		f := proc.Fields(pid)
		if len(f) < 20 || string(f[2]) == self || string(f[2]) == strconv.Itoa(of.PGID) {
			continue
		}
		start, err := strconv.ParseUint(string(f[19]), 10, 64)
		if err == nil && begun > 0 && start >= begun && slices.Contains(at, mark) {
			ours = append(ours, n)
		} else if len(others) < maxHolders {
			others = append(others, n)
		}
	}
	return ours, others
}

// holdsFlock says whether a process of this user has a descriptor of file that holds an
// flock.
func holdsFlock(pid string, file fs.FileInfo) bool { return len(flocks(pid, file)) > 0 }

// flocks are the positions of a process's descriptors of file that hold an flock, if it is
// one of this user. Other files are not looked at: on a network file system that could
// take long.
func flocks(pid string, file fs.FileInfo) (at []int64) {
	eachFlock(pid, func(fd string, fdinfo []byte) {
		if info, err := os.Stat(fd); err == nil && os.SameFile(info, file) {
			at = append(at, position(fdinfo))
		}
	})
	return at
}

// eachFlock calls fn for each descriptor of a process that holds an flock, if it is one of this
// user. fd is the name of the descriptor in /proc.
func eachFlock(pid string, fn func(fd string, fdinfo []byte)) {
	proc := "/proc/" + pid
	if info, err := os.Stat(proc); err != nil || !writer.Mine(info) {
		return
	}
	fds, err := os.ReadDir(proc + "/fdinfo")
	if err != nil {
		return
	}
	for _, fd := range fds {
		data, err := os.ReadFile(proc + "/fdinfo/" + fd.Name())
		if err != nil || !hasFlock(data) {
			continue
		}
		fn(proc+"/fd/"+fd.Name(), data)
	}
}

// position reads a line like "pos:	8192", -1 where there is none.
func position(fdinfo []byte) int64 {
	for line := range bytes.Lines(fdinfo) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == "pos:" {
			if n, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// hasFlock looks for a line like "lock:	1: FLOCK  ADVISORY  READ 20421 fe:00:9977875 0 EOF".
func hasFlock(fdinfo []byte) bool {
	for line := range bytes.Lines(fdinfo) {
		if f := bytes.Fields(line); len(f) > 2 && string(f[0]) == "lock:" && string(f[2]) == "FLOCK" {
			return true
		}
	}
	return false
}

// maxAncestors bounds how many ancestors of a process are looked at.
const maxAncestors = 64

// Above returns the locks of that name that this process's ancestors hold, or the leaders of
// their process groups and sessions, or the process itself: those that a command of a run
// inherited are among them if the process is part of that command. It is empty where the system
// does not tell (only Linux does), for processes of other users, and for a process that left
// its ancestors and their session and closed the files that it inherited.
func Above(name string) (held []Held) {
	seen := map[string]bool{"0": true, "1": true}
	look := func(pid string) {
		if seen[pid] {
			return
		}
		seen[pid] = true
		n, err := strconv.Atoi(pid)
		if err != nil {
			return
		}
		eachFlock(pid, func(fd string, _ []byte) {
			path, err := os.Readlink(fd)
			if err == nil && strings.TrimSuffix(filepath.Base(path), " (deleted)") == name {
				held = append(held, Held{PID: n, Path: path})
			}
		})
	}
	for pid, n := strconv.Itoa(os.Getpid()), 0; n < maxAncestors; n++ {
		f := proc.Fields(pid)
		if len(f) < 4 {
			break
		}
		look(pid)
		look(string(f[2])) // the process group
		look(string(f[3])) // the session
		if pid = string(f[1]); pid == "0" || pid == "1" {
			break
		}
	}
	return held
}
