package sections

import (
	"io/fs"
	"time"
)

// granularity is how far apart two changes may be and leave the same time of
// modification: FAT counts in two seconds, everything else more finely.
const granularity = 2 * time.Second

// An identity is what one stat says of a file's content. What the system does
// not tell is zero.
type identity struct {
	size     int64
	modified int64 // nanoseconds since 1970
	inode    uint64
	changed  int64 // of content or inode, which no program can set; nanoseconds since 1970
}

// racy says whether a file that was read from begun on could have been changed
// since then without another identity. A time in the future says nothing.
func (id identity) racy(begun time.Time) bool {
	return max(id.modified, id.changed) >= begun.Add(-granularity).UnixNano()
}

func identityOf(info fs.FileInfo) identity {
	id := identity{size: info.Size(), modified: info.ModTime().UnixNano()}
	id.inode, id.changed = inodeOf(info)
	return id
}
