package writer

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func renameAt(from *os.File, oldname string, to *os.File, newname string) error {
	a, b := int(from.Fd()), int(to.Fd())
	err := unix.Renameat2(a, oldname, b, newname, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// The file system does not know the flag.
	var st unix.Stat_t
	if err := vacant(unix.Fstatat(b, newname, &st, unix.AT_SYMLINK_NOFOLLOW)); err != nil {
		return err
	}
	return unix.Renameat(a, oldname, b, newname)
}
