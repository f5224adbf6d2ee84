package crashfs

import (
	"slices"
	"strings"
)

// A set is one entry after a change: ino, or no entry if that is 0.
type set struct {
	dir  uint64
	name string
	ino  uint64
}

// A nameOp is a change of entries that is not durable and happens as a whole. It
// says what the entries are afterwards, so it can be carried out on any image.
type nameOp struct {
	what   string
	sets   [2]set
	n      int  // sets that are used
	folder bool // a folder was renamed
	lost   bool // a SyncDir of it failed, and its folders were not changed since
}

func (o *nameOp) list() []set { return o.sets[:o.n] }

func (o *nameOp) touches(dir uint64) bool {
	return o.sets[0].dir == dir || o.n == 2 && o.sets[1].dir == dir
}

func (o *nameOp) String() string {
	if o.n == 2 {
		return o.what + " " + o.sets[0].name + " to " + o.sets[1].name
	}
	return o.what + " " + o.sets[0].name
}

// change carries a change of entries out in the cache and notes it. It makes the
// lost changes of the same folders pending again: their blocks are dirty again.
func (d *Disk) change(op nameOp) {
	for _, s := range op.list() {
		dir := d.inodes[s.dir]
		entries := dir.ownEntries()
		if old := d.inodes[entries[s.name]]; old != nil {
			old.nlink--
			defer d.release(old) // not before its new name is set
		}
		if s.ino == 0 {
			delete(entries, s.name)
		} else {
			entries[s.name] = s.ino
			d.inodes[s.ino].nlink++
		}
		d.touch(dir)
	}
	copied := false
	for k := range d.ops {
		if d.ops[k].lost && slices.ContainsFunc(op.list(), func(s set) bool { return d.ops[k].touches(s.dir) }) {
			if !copied {
				d.ops, copied = slices.Clone(d.ops), true
			}
			d.ops[k].lost = false
		}
	}
	d.ops = append(d.ops, op)
}

func (d *Disk) setName(what string, dir *inode, name string, ino uint64) {
	d.change(nameOp{what: what, sets: [2]set{{dir.ino, name, ino}}, n: 1})
}

// synced says which changes a sync of a folder concerns: its own and, of a folder
// that shares a rename with it, those before the rename. A lost one is left out
// unless a later one is written into the same folder.
func (d *Disk) synced(dir uint64) []bool {
	in := make([]bool, len(d.ops))
	need, wrote := []uint64{dir}, []uint64{}
	for k := len(d.ops) - 1; k >= 0; k-- {
		op := &d.ops[k]
		at := func(dir uint64) bool { return op.touches(dir) }
		if !slices.ContainsFunc(need, at) || op.lost && !slices.ContainsFunc(wrote, at) {
			continue
		}
		in[k] = true
		for _, s := range op.list() {
			if !slices.Contains(wrote, s.dir) {
				need, wrote = append(need, s.dir), append(wrote, s.dir)
			}
		}
	}
	return in
}

func (d *Disk) syncDir(dir *inode) {
	in := d.synced(dir.ino)
	var left []nameOp
	removed := false
	for k, op := range d.ops {
		if !in[k] {
			left = append(left, op)
			continue
		}
		for _, s := range op.list() {
			at := d.inodes[s.dir]
			entries := at.ownDurableEntries()
			removed = removed || s.ino == 0 || entries[s.name] != 0
			if s.ino == 0 {
				delete(entries, s.name)
			} else {
				entries[s.name] = s.ino
			}
		}
	}
	d.ops = left
	if removed {
		d.sweep()
	}
}

func (d *Disk) failSyncDir(dir *inode) {
	in := d.synced(dir.ino)
	d.ops = slices.Clone(d.ops)
	for k := range d.ops {
		d.ops[k].lost = d.ops[k].lost || in[k]
	}
}

// closeDrops drops what builds on a dropped change: a later one of the same name,
// and the rename of a folder into or out of a folder whose own name was dropped.
func (d *Disk) closeDrops(survives []bool) {
	for k := range survives {
		for e := 0; e < k && survives[k]; e++ {
			survives[k] = survives[e] || !d.dependent(&d.ops[k], &d.ops[e])
		}
	}
}

func (d *Disk) dependent(later, earlier *nameOp) bool {
	for _, a := range later.list() {
		for _, b := range earlier.list() {
			if a.dir == b.dir && (a.name == b.name || d.mode == Folding && strings.EqualFold(a.name, b.name)) || later.folder && a.dir == b.ino {
				return true
			}
		}
	}
	return false
}
