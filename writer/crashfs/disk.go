package crashfs

import (
	"maps"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/writer"
)

// A Mode says what a failed sync does to the cache.
type Mode int

const (
	// Ext4 keeps showing what a failed sync did not write, marked clean.
	Ext4 Mode = iota
	// XFS shows the durable content after a failed sync.
	XFS
	// Folding is Ext4 with names that differ in case only being one: a name is stored
	// as it was made. A rename to such a name of the same file does nothing, as on Linux.
	Folding
)

func (m Mode) String() string {
	return [...]string{"ext4", "xfs", "folding"}[m]
}

// rootIno is the number of the root folder. 0 is no inode.
const rootIno = 1

// A Disk is a simulated disk. Make one with [New].
type Disk struct {
	mode Mode

	mu         sync.Mutex
	inodes     map[uint64]*inode   // those that the cache, the durable image or a change may name
	ops        []nameOp            // not durable, in order. Clipped copies are shared: elements are not written to
	locks      map[uint64]*holders // by inode
	mounted    map[uint64]bool     // inodes that are roots of mounts
	hook       func(Op) Fault
	calls      int // counted calls
	nextIno    uint64
	clock      int64 // ticks, for modification times
	maxBytes   int   // 0: no limit
	maxInodes  int
	usedBytes  int // of files with a name or a handle
	usedInodes int // without the root
}

// New makes a disk with an empty root folder.
func New(mode Mode) *Disk {
	d := &Disk{mode: mode, nextIno: rootIno, inodes: map[uint64]*inode{}, locks: map[uint64]*holders{}}
	root := d.newInode(modeDir | 0o700)
	root.nlink = 1
	d.usedInodes = 0
	return d
}

// FS is the root folder. Every call gives a handle of its own.
func (d *Disk) FS() writer.FS { return &folder{d: d, ino: rootIno, name: "/sim"} }

// Capacity limits the disk: what goes beyond fails with ENOSPC, a write after the
// part that fits. 0 is no limit. A link takes no inode and fails when none is free,
// as a folder with no room for an entry does. What is removed is given back with its
// last handle.
func (d *Disk) Capacity(bytes, inodes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.maxBytes, d.maxInodes = bytes, inodes
}

// Snapshot copies the disk, the cache included. The copy has no hook, no open
// files and no locks, and counts calls from 1 again. In a hook it is the disk
// before the call.
func (d *Disk) Snapshot() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.empty()
	n.ops, n.mounted = clip(d.ops), maps.Clone(d.mounted)
	slab := make([]inode, 0, len(d.inodes))
	for ino, i := range d.inodes {
		slab = append(slab, i.copy())
		c := &slab[len(slab)-1]
		n.inodes[ino] = c
		n.count(c)
	}
	return n
}

// empty is a disk without inodes and of the same settings.
func (d *Disk) empty() *Disk {
	return &Disk{
		mode: d.mode, nextIno: d.nextIno, clock: d.clock,
		maxBytes: d.maxBytes, maxInodes: d.maxInodes,
		inodes: make(map[uint64]*inode, len(d.inodes)), locks: map[uint64]*holders{},
	}
}

// count adds a copied inode to what is in use.
func (d *Disk) count(i *inode) {
	if i.nlink > 0 && i.ino != rootIno {
		d.usedInodes++
		d.usedBytes += len(i.data)
	}
}

func (d *Disk) newInode(mode fileMode) *inode {
	d.usedInodes++
	i := &inode{ino: d.nextIno, mode: mode, durableMode: mode}
	d.nextIno++
	if mode.IsDir() {
		i.entries, i.durableEntries = map[string]uint64{}, map[string]uint64{}
	}
	d.inodes[i.ino] = i
	d.touch(i)
	return i
}

// release gives back the space of an inode without name and handle. The inode
// stays as long as a power cut may bring it back; sweep removes it.
func (d *Disk) release(i *inode) {
	if i.nlink == 0 && i.open == 0 {
		d.usedInodes--
		d.usedBytes -= len(i.data)
	}
}

// sweep forgets the inodes that neither the cache nor any cut can reach.
func (d *Disk) sweep() {
	seen := make(map[uint64]bool, len(d.inodes))
	var mark func(uint64)
	mark = func(ino uint64) {
		i := d.inodes[ino]
		if seen[ino] || i == nil {
			return
		}
		seen[ino] = true
		for _, child := range i.entries {
			mark(child)
		}
		for _, child := range i.durableEntries {
			mark(child)
		}
	}
	mark(rootIno)
	for _, op := range d.ops {
		for _, s := range op.list() {
			mark(s.dir)
			mark(s.ino)
		}
	}
	for ino, i := range d.inodes {
		if i.open > 0 {
			mark(ino)
		} else if !seen[ino] {
			delete(d.inodes, ino)
		}
	}
}

// touch gives an inode the next modification time.
func (d *Disk) touch(i *inode) {
	d.clock++
	i.mtime = d.clock
}

func (d *Disk) time(ticks int64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(ticks) * time.Millisecond).UTC()
}

// clip makes a shared view of a list that nobody's append writes through.
func clip[T any](s []T) []T { return s[:len(s):len(s)] }
