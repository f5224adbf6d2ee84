package writer

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// bootID identifies this boot of the machine, "" where /proc is missing.
var bootID = sync.OnceValue(func() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
})

// statFields returns the fields of /proc/PID/stat from the third, the state,
// on: the name before it may hold spaces and parentheses.
func statFields(pid string) [][]byte {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil
	}
	if i := bytes.LastIndexByte(data, ')'); i >= 0 {
		return bytes.Fields(data[i+1:])
	}
	return nil
}

// processStart is when a process started, in clock ticks since the boot; "" for
// one that does not exist or is a zombie.
func processStart(pid int) string {
	f := statFields(strconv.Itoa(pid))
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return ""
	}
	return string(f[19])
}

// members are the processes of a group that are no zombies, and whether /proc tells.
func members(pgid int) (pids []string, known bool) {
	names, known := processes()
	want := strconv.Itoa(pgid)
	for _, name := range names {
		f := statFields(name)
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
	if err != nil || len(statFields("self")) == 0 {
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

// holdsFlock says whether a process of this user has a descriptor of file that holds an
// flock. Other files are not looked at: on a network file system that could take long.
func holdsFlock(pid string, file fs.FileInfo) bool {
	proc := "/proc/" + pid
	if info, err := os.Stat(proc); err != nil || !Mine(info) {
		return false
	}
	fds, err := os.ReadDir(proc + "/fdinfo")
	if err != nil {
		return false
	}
	for _, fd := range fds {
		data, err := os.ReadFile(proc + "/fdinfo/" + fd.Name())
		if err != nil || !hasFlock(data) {
			continue
		}
		if info, err := os.Stat(proc + "/fd/" + fd.Name()); err == nil && os.SameFile(info, file) {
			return true
		}
	}
	return false
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
