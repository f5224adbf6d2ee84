package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
)

// BootID identifies this boot of the machine, "" where /proc is missing.
var BootID = sync.OnceValue(func() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
})

// Space identifies the PID namespace of this process: the number of a process says who that is
// only there. It is "" where /proc is missing, or shows the processes of another one.
var Space = sync.OnceValue(func() string {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return ""
	}
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "pid" // a kernel without namespaces
	}
	return name
})

// Fields returns the fields of /proc/PID/stat from the third, the state,
// on: the name before it may hold spaces and parentheses.
func Fields(pid string) [][]byte {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil
	}
	if i := bytes.LastIndexByte(data, ')'); i >= 0 {
		return bytes.Fields(data[i+1:])
	}
	return nil
}

// Start is when a process started, in clock ticks since the boot; "" for
// one that does not exist or is a zombie, and where [Space] is "".
func Start(pid int) string {
	f := Fields(strconv.Itoa(pid))
	if Space() == "" || len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return ""
	}
	return string(f[19])
}
