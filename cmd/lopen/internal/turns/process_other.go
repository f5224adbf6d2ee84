//go:build !linux

package turns

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// parent returns the parent of a process and the name of its program, as ps says. Where there is
// no ps, nothing is known but the parent of this process.
func parent(pid int) (ppid int, name string) {
	out, err := exec.Command("ps", "-o", "ppid=", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		if pid == os.Getpid() {
			return os.Getppid(), ""
		}
		return 0, "unknown"
	}
	f := strings.Fields(string(out))
	if len(f) < 2 {
		return 0, ""
	}
	ppid, _ = strconv.Atoi(f[0])
	return ppid, filepath.Base(strings.Join(f[1:], " "))
}

// Folder is the folder in which a process is, which is not known here.
func Folder(int) string { return "" }
