package turns

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// parent returns the parent of a process and the name of its program.
func parent(pid int) (ppid int, name string) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, ""
	}
	begin, end := strings.IndexByte(string(data), '('), strings.LastIndexByte(string(data), ')')
	if begin < 0 || end < begin {
		return 0, ""
	}
	name = string(data[begin+1 : end])
	if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil {
		name = filepath.Base(exe)
	}
	if f := strings.Fields(string(data[end+1:])); len(f) > 1 {
		ppid, _ = strconv.Atoi(f[1])
	}
	return ppid, name
}

// Folder is the folder in which a process is, "" if that is not known.
func Folder(pid int) string {
	dir, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return dir
}
