package writer

import (
	"bytes"
	"errors"
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

// groupExists says whether a process group has a member that is no zombie.
func groupExists(pgid int) bool {
	if err := syscall.Kill(-pgid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	// The kernel counts zombies as members: only /proc tells. Without it they live.
	d, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil || len(statFields("self")) == 0 {
		return true
	}
	want := strconv.Itoa(pgid)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		f := statFields(name)
		if len(f) > 2 && string(f[2]) == want && f[0][0] != 'Z' && f[0][0] != 'X' {
			return true
		}
	}
	return false
}
