package crashfs

import (
	"syscall"

	"github.com/lopen-dev/lopen/writer"
)

// RenameTo renames a name in a folder to a name in another one that replaces nothing, see
// [writer.RenameTo].
func (f *file) RenameTo(oldname string, to writer.File, newname string) error {
	g, ok := to.(*file)
	if !ok || g.d != f.d {
		return linkError("rename", oldname, newname, syscall.EXDEV)
	}
	from := &folder{d: f.d, ino: f.node.ino, name: f.name, prefix: f.rel}
	into := &folder{d: g.d, ino: g.node.ino, name: g.name, prefix: g.rel}
	return linkError("rename", oldname, newname, into.call("rename", newname, true, func() error {
		if p, err := into.walk(newname, false); err == nil && p.node != nil {
			return syscall.EEXIST
		}
		return from.renameTo(oldname, into, newname)
	}))
}
