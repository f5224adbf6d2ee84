package crashfs

import (
	"hash/maphash"
	"maps"
	"unsafe"
)

// A Variant is one outcome of a power cut. It belongs to the disk that
// [Disk.Variants] was asked for, unchanged since, and its snapshots.
type Variant struct {
	Name string // for messages

	names   []bool // the changes of entries that survive
	rest    fate   // of the files that are not special
	special map[uint64]fate
	sum     uint64
}

// Sum is the same for outcomes in which a reader finds the same files, also of other
// moments of the disk. It differs from process to process.
func (v Variant) Sum() uint64 { return v.sum }

// Crash is the disk that is found after a power cut: all of it is durable, nothing
// is open or locked, and there is no hook. d stays as it is.
func (d *Disk) Crash(v Variant) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.crash(v)
}

func (d *Disk) crash(v Variant) *Disk {
	changed := map[uint64]map[string]uint64{}
	for k := range d.ops {
		if k >= len(v.names) || !v.names[k] {
			continue
		}
		for _, s := range d.ops[k].list() {
			entries := changed[s.dir]
			if entries == nil {
				entries = maps.Clone(d.inodes[s.dir].durableEntries)
				changed[s.dir] = entries
			}
			if s.ino == 0 {
				delete(entries, s.name)
			} else {
				entries[s.name] = s.ino
			}
		}
	}
	n := d.empty()
	slab := make([]inode, 0, len(d.inodes))
	todo := []uint64{rootIno}
	for len(todo) > 0 {
		ino := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if i := n.inodes[ino]; i != nil { // another name of a file
			i.nlink++
			continue
		}
		old := d.inodes[ino]
		slab = append(slab, inode{ino: ino, mode: old.mode, durableMode: old.mode, mtime: old.mtime, nlink: 1, target: old.target})
		i := &slab[len(slab)-1]
		n.inodes[ino] = i
		x, ok := v.special[ino]
		if !ok {
			x = v.rest
		}
		i.data, i.mode = old.content(x)
		i.data = clip(i.data)
		i.durable, i.durableMode, i.frozen = i.data, i.mode, len(i.data)
		n.count(i)
		if !old.mode.IsDir() {
			continue
		}
		i.entries = changed[ino]
		if i.entries == nil {
			i.entries = old.durableEntries
			old.durableShared = true
		}
		i.durableEntries, i.shared, i.durableShared = i.entries, true, true
		for _, child := range i.entries {
			todo = append(todo, child)
		}
	}
	return n
}

// A hasher hashes the images of one disk. Contents that images share are hashed
// once; the memo holds them, so that no other one gets their address.
type hasher struct {
	seed maphash.Seed
	memo map[span]uint64
}

type span struct {
	at *byte
	n  int
}

// seed is one for all disks: their sums can be compared.
var seed = maphash.MakeSeed()

func newHasher() *hasher { return &hasher{seed, map[span]uint64{}} }

// disk hashes what a reader of a durable image finds. Sums do not depend on the
// order of the maps.
func (h *hasher) disk(d *Disk) uint64 {
	var sum uint64
	for ino, i := range d.inodes {
		sum += maphash.Comparable(h.seed, [3]uint64{ino, uint64(i.mode), h.bytes(i.data)})
		for name, child := range i.entries {
			sum += maphash.Comparable(h.seed, set{ino, name, child})
		}
	}
	return sum
}

func (h *hasher) bytes(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	at := span{unsafe.SliceData(b), len(b)}
	sum, ok := h.memo[at]
	if !ok {
		sum = maphash.Bytes(h.seed, b)
		h.memo[at] = sum
	}
	return sum
}
