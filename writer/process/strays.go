package process

import (
	"crypto/rand"
	"encoding/binary"
)

// newMark is a position beyond the records of a child's lock file, in bytes. The position
// belongs to the open file, as the lock does, and the system shows it: so the holders of
// one lock are distinguished from those of another one on the same file. Nothing reads or writes
// at it.
func newMark() int64 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return childBytes + int64(binary.LittleEndian.Uint32(b[:])%(1<<20))
}

// Strays are the processes outside the command's group that hold the lock's file, as far
// as the system tells (Linux does). ours inherited this very lock, and began after the
// command did: the command started them, or they are its keeper. others hold an earlier one,
// or is unknown.
func (l *Lock) Strays() (ours, others []int) {
	g := l.group.Load()
	if g == nil {
		return nil, nil
	}
	return strays(l.info, l.mark, *g)
}

// GroupLives says whether a process group has a member that is no zombie, as far as the
// system tells.
func GroupLives(pgid int) bool { return groupExists(pgid) }
