package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
)

// ask returns a [*refusal] if the kernel will not allow the change. What it cannot find out, on a
// simulated disk or from a folder that may not be read, it leaves to the change itself.
func (q *question) ask(dir writer.FS) error {
	f, err := dir.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	of, ok := f.(interface{ OS() *os.File })
	if !ok {
		return nil
	}
	fd := int(of.OS().Fd())
	var in, at unix.Statx_t
	const mask = unix.STATX_BASIC_STATS | unix.STATX_MNT_ID
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, mask, &in) != nil {
		return nil
	}
	if r := attributes(in.Attributes, q.in); r != nil && q.names {
		r.why = "its folder is " + r.why
		return r
	}
	if q.name == "" || unix.Statx(fd, q.name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, mask, &at) != nil {
		return nil
	}
	path := filepath.Join(q.in, q.name)
	if r := attributes(at.Attributes, path); r != nil {
		r.why = "it is " + r.why
		return r
	}
	if !q.names {
		return nil
	}
	if mounted(&in, &at) {
		return &refusal{"it is a mount point", "umount " + shellWord(path), unix.EBUSY}
	}
	if in.Mode&unix.S_ISVTX != 0 && foreign(&in) && foreign(&at) && !overrides() {
		return &refusal{fmt.Sprintf("it belongs to user %d and its folder is sticky", at.Uid), "", unix.EPERM}
	}
	return nil
}

// attributes returns the refusal of a file or folder with these attributes, or nil.
func attributes(all uint64, path string) *refusal {
	switch {
	case all&unix.STATX_ATTR_IMMUTABLE != 0:
		return &refusal{"immutable", "chattr -i " + shellWord(path), unix.EPERM}
	case all&unix.STATX_ATTR_APPEND != 0:
		return &refusal{"append-only", "chattr -a " + shellWord(path), unix.EPERM}
	}
	return nil
}

// mounted reports whether something is mounted at a path. A bind mount has the device number of
// its folder, but never the mount ID.
func mounted(in, at *unix.Statx_t) bool {
	if at.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return at.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	return in.Mask&at.Mask&unix.STATX_MNT_ID != 0 && in.Mnt_id != at.Mnt_id
}

// foreign reports whether a file belongs to another user than this thread acts as.
func foreign(at *unix.Statx_t) bool {
	uid, err := unix.SetfsuidRetUid(-1) // changes nothing and returns the present one
	return err == nil && uint32(uid) != at.Uid
}

// overrides reports whether this process may act as the owner of every file.
func overrides() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_FOWNER) != 0
}

// shellWord returns a path as a shell reads it.
func shellWord(path string) string {
	if strings.IndexFunc(path, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+,@%", r))
	}) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
