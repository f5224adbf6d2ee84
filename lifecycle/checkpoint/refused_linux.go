package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
	mounts "github.com/lopen-dev/lopen/writer/mount"
)

// An asker asks the kernel about paths. It has the folder open that was asked about last.
type asker struct {
	path   string
	file   writer.File
	fd     int // -1 if the kernel does not know the folder
	in     unix.Statx_t
	inside uint64
}

func (k *asker) close() {
	if k.file != nil {
		_ = k.file.Close()
	}
	*k = asker{fd: -1}
}

func (k *asker) open(dir writer.FS, path string) {
	k.close()
	k.path = path
	f, err := dir.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return
	}
	k.file = f
	if of, ok := f.(interface{ OS() *os.File }); ok {
		fd := int(of.OS().Fd())
		if k.inside, err = mounts.StatAt(fd, "", &k.in); err == nil {
			k.fd = fd
		}
	}
}

// ask returns a [*refusal] if the kernel will not allow the change. What it cannot find out, on a
// simulated disk or from a folder that may not be read, it leaves to the change itself.
func (k *asker) ask(dir writer.FS, q *question) error {
	if k.path != q.in {
		k.open(dir, q.in)
	}
	if k.fd < 0 {
		return nil
	}
	in := &k.in
	var at unix.Statx_t
	if r := attributes(in.Attributes, q.in); r != nil && q.names {
		r.why = "its folder is " + r.why
		return r
	}
	if q.name == "" {
		return nil
	}
	mount, err := mounts.StatAt(k.fd, q.name, &at)
	if err != nil {
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
	if mount != k.inside {
		return &refusal{"it is a mount point", "umount " + shellWord(path), unix.EBUSY}
	}
	if sticky(in, &at) {
		return &refusal{fmt.Sprintf("it belongs to user %d and its folder is sticky", at.Uid), "", unix.EPERM}
	}
	return nil
}

// sticky reports whether a folder lets only the owners of its files change their names, and this
// process is none of them.
func sticky(in, at *unix.Statx_t) bool {
	return in.Mode&unix.S_ISVTX != 0 && at.Mask&unix.STATX_UID != 0 && foreign(in) && foreign(at) && !overrides()
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
