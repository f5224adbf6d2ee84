package identity

import (
	"io/fs"
	"time"
)

// granularity is how far apart two changes may be and leave the same time of
// modification: FAT counts in two seconds, everything else more finely.
const granularity = 2 * time.Second

// An Identity is what one stat says of a file's content. What the system does
// not tell is zero.
type Identity struct {
	Size     int64
	Modified int64 // nanoseconds since 1970
	Inode    uint64
	Changed  int64 // of content or inode, which no program can set; nanoseconds since 1970
}

// Racy says whether a file that was looked at from begun on could have been
// changed since then without another identity. A time in the future says nothing.
func (id Identity) Racy(begun time.Time) bool {
	return max(id.Modified, id.Changed) >= begun.Add(-granularity).UnixNano()
}

// Of returns the identity of the file that a stat was of.
func Of(info fs.FileInfo) Identity {
	id := Identity{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	id.Inode, id.Changed = inodeOf(info)
	return id
}
