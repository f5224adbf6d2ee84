package crashfs

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A fate is what becomes of a file's changes in a power cut.
type fate struct {
	kind  fateKind
	mask  []bool // of chosen: the changes that survive
	harm  harm
	at    int    // the change that is harmed
	where int64  // file offset of the tear or the hole
	seed  uint64 // of garbage
}

type fateKind byte

const (
	drop     fateKind = iota
	keep              // but for what a failed sync lost
	keepLost          // that as well
	nuls              // lengths stay, new bytes are NULs, old ones stay
	chosen
)

type harm byte

const (
	unharmed harm = iota
	torn          // the write ends there
	tornNUL       // NULs from there on
	hole          // NULs in one block
	garbage       // other bytes all along
)

// block is what a disk writes whole or not at all.
const block = 512

func (x fate) String() string {
	name := [...]string{"dropped", "kept", "kept, with what a failed sync lost", "NULs"}
	var what string
	if x.kind == chosen {
		b := make([]byte, len(x.mask))
		for k, survives := range x.mask {
			b[k] = '-'
			if survives {
				b[k] = '+'
			}
		}
		what = "changes " + string(b)
	} else {
		what = name[x.kind]
	}
	switch x.harm {
	case torn:
		what += fmt.Sprintf(", change %d torn at %d", x.at, x.where)
	case tornNUL:
		what += fmt.Sprintf(", change %d NULs from %d", x.at, x.where)
	case hole:
		what += fmt.Sprintf(", change %d without the block at %d", x.at, x.where)
	case garbage:
		what += fmt.Sprintf(", change %d garbage", x.at)
	}
	return what
}

func (x fate) keeps(k int, c change) bool {
	switch x.kind {
	case keep, nuls:
		return !c.lost
	case keepLost:
		return true
	case chosen:
		return k < len(x.mask) && x.mask[k]
	}
	return false
}

// content is what a cut with this fate leaves of a file; it is shared.
func (i *inode) content(x fate) ([]byte, fileMode) {
	switch {
	case len(i.pend) == 0 || x.kind == drop:
		return i.durable, i.durableMode
	case x.harm == unharmed && (x.kind == keepLost || x.kind == keep && !slices.ContainsFunc(i.pend, func(c change) bool { return c.lost })):
		i.frozen = len(i.data)
		return clip(i.data), i.mode
	}
	mode := i.durableMode
	for k, c := range i.pend {
		if c.kind == modeSet && x.keeps(k, c) {
			mode = c.mode
		}
	}
	return i.replay(x), mode
}

// replay applies the surviving changes to a copy of the durable content.
func (i *inode) replay(x fate) []byte {
	b := slices.Clone(i.durable)
	for k, c := range i.pend {
		end := int(c.off) + len(c.data)
		switch {
		case !x.keeps(k, c):
		case c.kind == truncated:
			b = b[:min(len(b), int(c.off))]
		case c.kind != written:
		case x.kind == nuls:
			b = extend(b, end)
		case x.harm != unharmed && x.at == k:
			b = put(b, harmed(c, x), c.off)
		default:
			b = put(b, c.data, c.off)
		}
	}
	return b
}

// harmed is what is written of a write.
func harmed(c change, x fate) []byte {
	at := min(max(x.where-c.off, 0), int64(len(c.data)))
	if x.harm == torn {
		return c.data[:at]
	}
	p := slices.Clone(c.data)
	switch x.harm {
	case tornNUL:
		clear(p[at:])
	case hole:
		clear(p[at:min(max(x.where+block-c.off, 0), int64(len(p)))])
	case garbage:
		rng := rand.New(rand.NewPCG(x.seed, x.seed))
		for k := range p {
			p[k] = byte(rng.Uint32())
		}
	}
	return p
}

// tears are the block boundaries in a write, at most limit of them, the first and
// the last included.
func tears(c change, limit int) []int64 {
	first := (c.off/block + 1) * block
	n := int((c.off + int64(len(c.data)) - 1 - first) / block)
	if c.off+int64(len(c.data)) <= first {
		return nil
	}
	var list []int64
	for k := range min(n+1, limit) {
		at := k
		if n+1 > limit {
			at = k * n / (limit - 1)
		}
		list = append(list, first+int64(at)*block)
	}
	return list
}

// middle is the block in the middle of a write, by file offset.
func middle(c change) int64 { return (c.off + int64(len(c.data))/2) / block * block }
