package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// leased reports whether a file that is open for reading has a writer. The error means that the kernel
// does not say so of this file: permission, if the file is another user's.
//
// A process that opens the file for writing between the two calls waits for the second one.
// The signal that the kernel sends for that is SIGIO, which a Go program ignores.
func leased(f *os.File) (is bool, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	cerr := raw.Control(func(fd uintptr) {
		if _, err = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK); err == nil {
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK) // at the latest the close returns it
			return
		}
		var s unix.Statfs_t
		if err == unix.EAGAIN && (unix.Fstatfs(int(fd), &s) != nil || fsTypes[int64(s.Type)&0xffffffff].network) { //nolint:errorlint,unconvert // FcntlInt returns it bare; the type differs between architectures
			err = unix.EINVAL // a network file system refuses the lease because its server granted none
		}
	})
	if err == unix.EAGAIN { //nolint:errorlint // as above
		return true, cerr
	}
	return false, errors.Join(err, cerr)
}

// who names the processes that have a file open for writing, or mapped shared and writable. It
// returns "" if it finds none.
func (o *Openers) who(name string, info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	var pids []int
	for _, x := range o.all()[st.Ino] {
		if !slices.Contains(pids, x.pid) && x.has(filepath.Base(name), st) {
			pids = append(pids, x.pid)
		}
	}
	if len(pids) == 0 {
		return ""
	}
	if own := slices.Index(pids, os.Getpid()); own >= 0 { // others first
		pids = append(slices.Delete(pids, own, own+1), os.Getpid())
	}
	who := fmt.Sprintf("%s, PID %d", program(pids[0]), pids[0])
	if more := len(pids) - 1; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	return who
}

// has reports whether what was found in /proc is this file: the inode number alone may be that
// of a file on another disk. Some file systems show another device in the list of mappings than
// stat does; there the name decides.
func (x *opener) has(name string, want *syscall.Stat_t) bool {
	var st unix.Stat_t
	if unix.Stat(x.path, &st) == nil {
		return st.Ino == want.Ino && st.Dev == want.Dev
	}
	return !strings.Contains(x.path, "/fd/") && filepath.Base(x.path) == name
}

// program returns the name of the program that a process executes.
func program(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	if exe, err := os.Readlink(dir + "/exe"); err == nil {
		return strings.TrimSuffix(filepath.Base(exe), " (deleted)")
	}
	comm, _ := os.ReadFile(dir + "/comm") // #nosec G304 -- of the process with this number
	return strings.TrimSpace(string(comm))
}

// all returns what all processes have open, by inode number.
func (o *Openers) all() map[uint64][]opener {
	if o.known == nil {
		o.known = map[uint64][]opener{}
		o.read()
	}
	return o.known
}

// read collects what all processes have open for writing, or mapped shared and writable. It
// notes that there are some that this process may not look at. It opens nothing but files of /proc and looks at
// no file that they have open: one on a server that is gone would not answer.
func (o *Openers) read() {
	all, _ := os.ReadDir("/proc")
	for _, e := range all {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			o.descriptors(pid)
			o.mappings(pid)
		}
	}
}

func (o *Openers) descriptors(pid int) {
	dir := "/proc/" + strconv.Itoa(pid)
	all, err := os.ReadDir(dir + "/fd")
	o.blind = o.blind || errors.Is(err, fs.ErrPermission)
	for _, e := range all {
		file := dir + "/fd/" + e.Name()
		if target, err := os.Readlink(file); err != nil || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "/dev/") && !strings.HasPrefix(target, "/dev/shm/") {
			continue // a socket, a pipe, a terminal
		}
		flags, ino := descriptor(dir + "/fdinfo/" + e.Name())
		var st unix.Stat_t
		if flags&unix.O_ACCMODE == unix.O_RDONLY || flags&unix.O_PATH != 0 {
			continue
		}
		if ino == 0 && unix.Stat(file, &st) == nil { // Linux tells it since 5.14
			ino = st.Ino
		}
		o.known[ino] = append(o.known[ino], opener{pid, file})
	}
}

// descriptor returns the flags with which a descriptor was opened, and the inode number if that is known.
func descriptor(fdinfo string) (flags, ino uint64) {
	text, _ := os.ReadFile(fdinfo) // #nosec G304 -- of a process in /proc
	for line := range strings.Lines(string(text)) {
		switch f := strings.Fields(line); {
		case len(f) == 2 && f[0] == "flags:":
			flags, _ = strconv.ParseUint(f[1], 8, 64)
		case len(f) == 2 && f[0] == "ino:":
			ino, _ = strconv.ParseUint(f[1], 10, 64)
		}
	}
	return flags, ino
}

func (o *Openers) mappings(pid int) {
	dir := "/proc/" + strconv.Itoa(pid)
	text, _ := os.ReadFile(dir + "/maps") // #nosec G304 -- of the process with this number
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 6) // range, permissions, offset, device, inode, path
		if len(f) < 6 || len(f[1]) < 4 || f[1][1] != 'w' || f[1][3] != 's' {
			continue
		}
		ino, _ := strconv.ParseUint(f[4], 10, 64)
		path := strings.TrimLeft(f[5], " ")
		if _, err := os.Readlink(dir + "/map_files/" + f[0]); err == nil { // only a privileged process may
			path = dir + "/map_files/" + f[0]
		}
		o.known[ino] = append(o.known[ino], opener{pid, path})
	}
}
