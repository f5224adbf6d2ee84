package writer

import (
	"fmt"
	"syscall"
)

// FreeBytes returns the free space that this user may use on the file system of path, in
// bytes.
func FreeBytes(path string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, NewError("look for free space", path, NotCommitted, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// fsTypes maps the magic number of a file system to its name. Most numbers are in
// linux/magic.h. network marks those that another machine may serve.
var fsTypes = map[int64]struct {
	name    string
	network bool
}{
	0xef53: {"ext4", false}, 0x58465342: {"xfs", false}, 0x9123683e: {"btrfs", false}, 0x01021994: {"tmpfs", false},
	0x794c7630: {"overlayfs", false}, 0x2fc12fc1: {"zfs", false}, 0xf2f52010: {"f2fs", false}, 0x4d44: {"fat", false},
	0x2011bab0: {"exfat", false}, 0x5346544e: {"ntfs", false}, 0xca451a4e: {"bcachefs", false}, 0x65735546: {"fuse", true},
	0x6969: {"nfs", true}, 0xff534d42: {"cifs", true}, 0xfe534d42: {"smb2", true}, 0x01021997: {"9p", true}, 0x00c36400: {"ceph", true},
}

// FSType returns the name of the file system of path, and whether another machine may
// serve it.
func FSType(path string) (name string, network bool, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return "", false, NewError("look at the file system", path, NotCommitted, err)
	}
	magic := int64(s.Type) & 0xffffffff //nolint:unconvert // its type differs between architectures
	if t, ok := fsTypes[magic]; ok {
		return t.name, t.network, nil
	}
	return fmt.Sprintf("of type %#x", magic), false, nil
}
