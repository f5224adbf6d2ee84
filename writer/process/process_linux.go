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

// processes are the PIDs of all processes, and whether /proc tells: it may show those of another
// PID namespace.
func processes() (pids []string, known bool) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil || proc.Space() == "" {
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
// that holds an flock, or has the mark. One that merely has the file open, an editor say, has none.
func groupHolds(pgid int, file fs.FileInfo, mark string) answer {
	pids, known := members(pgid)
	if !known {
		return unknown
	}
	for _, pid := range pids {
		if mine(pid) && (len(flocks(pid, file)) > 0 || variable(pid, mark) == yes) {
			return yes
		}
	}
	return no
}

// mine says whether a process is one of this user.
func mine(pid string) bool {
	info, err := os.Stat("/proc/" + pid)
	return err == nil && writer.Mine(info)
}

// holders are other processes that have a descriptor of file which holds an flock: none where
// /proc does not tell.
func holders(file fs.FileInfo) (found []Stray) {
	pids, _ := processes()
	for _, pid := range pids {
		f := proc.Fields(pid)
		if len(f) >= 20 && pid != self() && len(flocks(pid, file)) > 0 {
			found = append(found, stray(pid, f))
		}
	}
	return found
}

func self() string { return strconv.Itoa(os.Getpid()) }

// stray is a process with these fields.
func stray(pid string, fields [][]byte) Stray {
	n, _ := strconv.Atoi(pid) // a name of processes is a number
	text, _ := os.ReadFile("/proc/" + pid + "/cmdline")
	return Stray{PID: n, Command: string(bytes.TrimSpace(bytes.ReplaceAll(text, []byte{0}, []byte{' '}))), start: string(fields[19])}
}

// strays are the other processes that have the mark of a group's command or a descriptor of file
// which holds an flock, and are members neither of the group nor of this process's one. ours are
// of this user, have the mark, and began with the group's leader or later. None is ours in a part
// of the command, which never ends itself.
func strays(file fs.FileInfo, of Group) (ours, others []Stray) {
	groups, above := of.known(), ancestors()
	mayEnd := of.begun() > 0 && (of.Mark == "" || os.Getenv(markVariable) != of.Mark)
	pids, _ := processes()
	for _, pid := range pids {
		f := proc.Fields(pid)
		if pid == self() || !working(f) || slices.Contains(groups, string(f[2])) {
			continue
		}
		s, held, marked := of.stray(pid, f, file)
		switch before := slices.Contains(above, pid); {
		case mayEnd && marked && !s.earlier && !before && mine(pid):
			ours = append(ours, s)
		case held || marked && !before:
			others = append(others, s)
		}
	}
	return ours, others
}

// known are the process groups without strays: the command's and that of this process, of which a program
// that it is just starting has the descriptors for a moment. 0 is no group, but what is shown of each one
// outside of the PID namespace.
func (g Group) known() []string {
	all := []string{strconv.Itoa(syscall.Getpgrp())}
	if g.PGID != 0 {
		all = append(all, strconv.Itoa(g.PGID))
	}
	return all
}

// working reports whether the fields are those of a process that has not ended.
func working(fields [][]byte) bool {
	return len(fields) >= 20 && fields[0][0] != 'Z' && fields[0][0] != 'X'
}

// begun is when the group's leader started, in the unit of the system; 0 where that is not known.
func (g Group) begun() uint64 {
	n, _ := strconv.ParseUint(g.Start, 10, 64)
	return n
}

// stray says what a process has of the group's command: a lock on its file, and the mark.
func (g Group) stray(pid string, fields [][]byte, file fs.FileInfo) (s Stray, held, marked bool) {
	at := flocks(pid, file)
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	earlier, inherited := err != nil || start < g.begun(), unknown
	if !earlier {
		inherited = variable(pid, g.Mark)
	}
	held = len(at) > 0
	marked = inherited == yes || g.Mark != "" && slices.Contains(at, position(g.Mark))
	if held || marked {
		s = stray(pid, fields)
	}
	s.earlier = earlier || inherited == no && !marked
	return s, held, marked
}

// variable says whether a process was started with the mark of a command: no is that of another
// command, unknown none at all.
func variable(pid, mark string) answer {
	data, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil || mark == "" {
		return unknown
	}
	found := unknown
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		value, ok := bytes.CutPrefix(kv, []byte(markVariable+"="))
		if ok && string(value) == mark {
			return yes
		}
		if ok {
			found = no
		}
	}
	return found
}

// ancestors are the processes that this one comes from.
func ancestors() (pids []string) {
	for pid := self(); len(pids) < maxAncestors; {
		f := proc.Fields(pid)
		if len(f) < 2 {
			break
		}
		if pid = string(f[1]); pid == "0" || pid == "1" {
			break
		}
		pids = append(pids, pid)
	}
	return pids
}

// flocks are the positions of a process's descriptors of file that hold an flock. Other files are
// not looked at: on a network file system that could take long.
func flocks(pid string, file fs.FileInfo) (at []int64) {
	eachFlock(pid, func(fd string, fdinfo []byte) {
		if info, err := os.Stat(fd); err == nil && os.SameFile(info, file) {
			at = append(at, positionIn(fdinfo))
		}
	})
	return at
}

// eachFlock calls fn for each descriptor of a process that holds an flock, as far as this user may
// know. fd is the name of the descriptor in /proc.
func eachFlock(pid string, fn func(fd string, fdinfo []byte)) {
	proc := "/proc/" + pid
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

// positionIn reads a line like "pos:	8192", -1 where there is none.
func positionIn(fdinfo []byte) int64 {
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
		if err != nil || !mine(pid) {
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

// keeper says whether a process is the one that started the leader of a group, which lives.
func keeper(s Stray, leader int) bool {
	f := proc.Fields(strconv.Itoa(leader))
	return len(f) > 1 && f[0][0] != 'Z' && f[0][0] != 'X' && string(f[1]) == strconv.Itoa(s.PID)
}
