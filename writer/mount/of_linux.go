package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// lacksStatx is set once the kernel, or a sandbox, has refused statx.
var lacksStatx atomic.Bool

// StatAt is statx of a name in an open folder, or of the folder itself for the name "". It
// follows no symlink and mounts nothing. mount is the ID of the mount that the name is on, which
// the same call returns: a bind mount has no device number of its own. Kernels before 5.8 have no
// such ID, and the device number takes its place.
func StatAt(dir int, name string, st *unix.Statx_t) (mount uint64, err error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	if lacksStatx.Load() {
		return statAt(dir, name, flags, st)
	}
	for {
		err = unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, st)
		switch {
		case err == nil && st.Mask&unix.STATX_MNT_ID != 0:
			return st.Mnt_id, nil
		case err == nil:
			return unix.Mkdev(st.Dev_major, st.Dev_minor), nil
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			if mount, err = statAt(dir, name, flags, st); err == nil {
				lacksStatx.Store(true)
			}
			return mount, err
		case !errors.Is(err, unix.EINTR):
			return 0, err
		}
	}
}

// statAt is StatAt without statx.
func statAt(dir int, name string, flags int, st *unix.Statx_t) (mount uint64, err error) {
	var old unix.Stat_t
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Fstatat(dir, name, &old, flags)
	}
	*st = unix.Statx_t{
		Mode: uint16(old.Mode), Ino: old.Ino, Size: uint64(old.Size), // #nosec G115 -- as the kernel has them
		Mtime: unix.StatxTimestamp{Sec: old.Mtim.Sec, Nsec: uint32(old.Mtim.Nsec)}, // #nosec G115 -- below 1e9
		Ctime: unix.StatxTimestamp{Sec: old.Ctim.Sec, Nsec: uint32(old.Ctim.Nsec)}, // #nosec G115 -- below 1e9
	}
	return old.Dev, err
}

// bootID returns 8 hex digits of the ID of this boot of the machine, or "".
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(id) < 8 {
		return ""
	}
	return string(id[:8])
})

// VolumeAt returns what identifies the volume of which a name in an open folder, or the folder itself for
// ".", is the root: the device number, the inode number and the time of birth of that root, and the boot, as
// device numbers are given anew at each. The time tells a disk from another one that has its number now. The
// result is "" where that is not known. VolumeAt follows no symlink.
func VolumeAt(dir *os.File, name string) string {
	boot, flags := bootID(), unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT
	if boot == "" {
		return ""
	}
	var st unix.Statx_t
	var err error
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Statx(int(dir.Fd()), name, flags, unix.STATX_INO|unix.STATX_BTIME, &st)
	}
	runtime.KeepAlive(dir)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d/%d/%d.%09d/%s", st.Dev_major, st.Dev_minor, st.Ino, st.Btime.Sec, st.Btime.Nsec, boot)
}

// Of returns the number of the mount that a name in an open folder is on, or the folder itself for
// ".". It follows no symlink.
func Of(dir *os.File, name string) (uint64, error) {
	at := name
	if at == "." {
		at = ""
	}
	var st unix.Statx_t
	mount, err := StatAt(int(dir.Fd()), at, &st)
	runtime.KeepAlive(dir)
	if err != nil {
		return 0, &fs.PathError{Op: "statx", Path: name, Err: err}
	}
	return mount, nil
}
