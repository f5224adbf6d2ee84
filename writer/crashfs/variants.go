package crashfs

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
)

// maxTears bounds the places at which one write is torn.
const maxTears = 8

// Variants are outcomes of a power cut now, no two of them alike: all that is
// systematic, then random ones. What is systematic: nothing or all of what is not
// synced; names without data, with NULs, data without names; each prefix of the
// changes of entries, with and without data; each change alone dropped; the last
// write of each file torn, with a hole, as garbage. What a failed sync lost is there
// in the second and in random ones only. rng may be nil if none are random.
func (d *Disk) Variants(rng *rand.Rand, random int) []Variant {
	if rng == nil {
		rng = rand.New(rand.NewPCG(1, 1))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &lister{d: d, rng: rng, hasher: newHasher(), seen: map[uint64]bool{}}
	for ino, i := range d.inodes {
		if len(i.pend) > 0 {
			l.dirty = append(l.dirty, ino)
		}
	}
	slices.Sort(l.dirty)
	l.paths = map[uint64]string{}
	if len(l.dirty) > 0 {
		l.name(d.inodes[rootIno], "")
	}
	l.whole()
	l.prefixes()
	l.singles()
	for _, ino := range l.dirty {
		l.torn(ino)
	}
	for n := range random {
		l.random(n + 1)
	}
	return l.list
}

// A lister collects variants.
type lister struct {
	d      *Disk
	rng    *rand.Rand
	hasher *hasher
	seen   map[uint64]bool // hashes of images
	dirty  []uint64        // inodes with changes, sorted: rng is used in this order
	paths  map[uint64]string
	list   []Variant
}

func (l *lister) add(v Variant) {
	l.d.closeDrops(v.names)
	if v.sum = l.hasher.disk(l.d.crash(v)); !l.seen[v.sum] {
		l.seen[v.sum] = true
		l.list = append(l.list, v)
	}
}

// name notes the paths that the cache has for the inodes.
func (l *lister) name(dir *inode, at string) {
	for name, ino := range dir.entries {
		i, full := l.d.inodes[ino], path.Join(at, name)
		if old, ok := l.paths[ino]; !ok || full < old {
			l.paths[ino] = full
		}
		l.name(i, full)
	}
}

func (l *lister) path(ino uint64) string {
	if name, ok := l.paths[ino]; ok {
		return name
	}
	return "inode " + strconv.FormatUint(ino, 10)
}

// names is a mask that keeps the first n changes of entries.
func (l *lister) names(n int) []bool {
	mask := make([]bool, len(l.d.ops))
	for k := range n {
		mask[k] = true
	}
	return mask
}

func (l *lister) all() []bool { return l.names(len(l.d.ops)) }

func (l *lister) whole() {
	l.add(Variant{Name: "nothing unsynced"})
	l.add(Variant{Name: "all", names: l.all(), rest: fate{kind: keepLost}})
	l.add(Variant{Name: "all but what a failed sync lost", names: l.all(), rest: fate{kind: keep}})
	l.add(Variant{Name: "names without data", names: l.all()})
	l.add(Variant{Name: "names with NULs", names: l.all(), rest: fate{kind: nuls}})
	l.add(Variant{Name: "data without names", rest: fate{kind: keep}})
}

func (l *lister) prefixes() {
	for n := range l.d.ops {
		if n == 0 {
			continue // whole has it
		}
		until := "names until " + l.d.ops[n-1].String()
		l.add(Variant{Name: until + ", no data", names: l.names(n)})
		l.add(Variant{Name: until + ", all data", names: l.names(n), rest: fate{kind: keep}})
	}
}

func (l *lister) singles() {
	for n := range l.d.ops {
		names := l.all()
		names[n] = false
		l.add(Variant{Name: "all but " + l.d.ops[n].String(), names: names, rest: fate{kind: keep}})
	}
	for _, ino := range l.dirty {
		pend := l.d.inodes[ino].pend
		for n, c := range pend {
			if c.lost {
				continue
			}
			mask := notLost(pend)
			mask[n] = false
			l.file(fmt.Sprintf("all but change %d of %s", n, l.path(ino)), ino, fate{kind: chosen, mask: mask})
		}
	}
}

func notLost(pend []change) []bool {
	mask := make([]bool, len(pend))
	for k, c := range pend {
		mask[k] = !c.lost
	}
	return mask
}

// file adds a variant in which every change survives but those of one file.
func (l *lister) file(name string, ino uint64, x fate) {
	l.add(Variant{Name: name, names: l.all(), rest: fate{kind: keep}, special: map[uint64]fate{ino: x}})
}

func (l *lister) torn(ino uint64) {
	pend := l.d.inodes[ino].pend
	at := len(pend) - 1
	for at >= 0 && (pend[at].kind != written || pend[at].lost) {
		at--
	}
	if at < 0 {
		return
	}
	add := func(h harm, where int64, seed uint64) {
		x := fate{kind: keep, harm: h, at: at, where: where, seed: seed}
		l.file(l.path(ino)+" "+x.String(), ino, x)
	}
	for _, where := range tears(pend[at], maxTears) {
		add(torn, where, 0)
		add(tornNUL, where, 0)
	}
	add(garbage, 0, l.rng.Uint64())
	add(hole, middle(pend[at]), 0)
}

func (l *lister) random(n int) {
	v := Variant{Name: fmt.Sprintf("random %d", n), names: l.all(), special: map[uint64]fate{}}
	if l.rng.IntN(2) == 0 { // in journal order
		v.names = l.names(l.rng.IntN(len(l.d.ops) + 1))
	} else {
		for k := range v.names {
			v.names[k] = l.rng.IntN(3) > 0
		}
	}
	l.d.closeDrops(v.names)
	for k, survives := range v.names {
		if !survives {
			v.Name += ", no " + l.d.ops[k].String()
		}
	}
	for _, ino := range l.dirty {
		x := l.fate(l.d.inodes[ino].pend)
		v.special[ino] = x
		v.Name += ", " + l.path(ino) + " " + x.String()
	}
	l.add(v)
}

// fate draws one for a file: a subset of its changes, one of them perhaps harmed.
func (l *lister) fate(pend []change) fate {
	x := fate{kind: fateKind(l.rng.IntN(int(chosen) + 1))}
	if x.kind != chosen {
		return x
	}
	x.mask = make([]bool, len(pend))
	if l.rng.IntN(2) == 0 { // in order
		for k := range l.rng.IntN(len(pend) + 1) {
			x.mask[k] = true
		}
	} else {
		for k := range x.mask {
			x.mask[k] = l.rng.IntN(2) == 0
		}
	}
	x.at = l.rng.IntN(len(pend))
	if c := pend[x.at]; c.kind == written && l.rng.IntN(2) == 0 {
		x.mask[x.at] = true
		x.harm = harm(l.rng.IntN(int(garbage) + 1))
		x.where, x.seed = middle(c), l.rng.Uint64()
		if spots := tears(c, maxTears); len(spots) > 0 {
			x.where = spots[l.rng.IntN(len(spots))]
		} else if x.harm == torn || x.harm == tornNUL {
			x.harm = unharmed // it lies within one block
		}
	}
	return x
}
