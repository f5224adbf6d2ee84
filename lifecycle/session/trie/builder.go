package trie

import (
	"math/bits"
	"slices"
)

// A Builder makes a map of many entries in a fraction of the time of as many Puts. It sorts
// them by their hashes, five bits at a time, and makes each node once, in its final size.
// The zero value is ready to use. A Builder belongs to one goroutine.
type Builder[V any] struct {
	slabs  [][]entry[V] // the entries, in the order in which they were added
	hashes []hashed
	// Slabs from which the next nodes and their slices are cut.
	nodes   []node[V]
	entries []*entry[V]
	kids    []*node[V]
}

// The number of entries, and of nodes or pointers, that are allocated at once. An element in
// use keeps its whole slab alive, so that a map holds at worst everything that its Builder
// was given and that was put into it since.
const (
	slabSize = 29 // of a few hundred bytes each they fill a size class of 8 KiB
	listSlab = 128
)

// hashed is the hash and the place of an entry. It has no pointer, so that sorting needs no
// write barriers of the garbage collector.
type hashed struct {
	hash  uint64
	place int
}

func (h *hashed) slot(shift int) uint64 { return h.hash >> shift & mask }

// Grow makes room for n more entries at once.
func (b *Builder[V]) Grow(n int) {
	b.hashes = slices.Grow(b.hashes, n)
	for range n / slabSize {
		b.slabs = append(b.slabs, make([]entry[V], slabSize))
	}
}

// Add adds an entry and returns its place and its value. The caller sets the key with Key,
// and may change the value until Map is called.
func (b *Builder[V]) Add() (int, *V) {
	place := len(b.hashes)
	if place == len(b.slabs)*slabSize {
		b.slabs = append(b.slabs, make([]entry[V], slabSize))
	}
	b.hashes = append(b.hashes, hashed{place: place})
	return place, b.At(place)
}

// Key gives the entry at a place its key.
func (b *Builder[V]) Key(place int, key string) {
	e := b.at(place)
	e.hash, e.key = hash(key), key
	b.hashes[place].hash = e.hash
}

// Len returns the number of entries that were added.
func (b *Builder[V]) Len() int { return len(b.hashes) }

// At returns the value at a place.
func (b *Builder[V]) At(place int) *V { return &b.at(place).value }

func (b *Builder[V]) at(place int) *entry[V] { return &b.slabs[place/slabSize][place%slabSize] }

// Map returns the map of all entries and empties the Builder. If a key was added twice, ok
// is false and twice is that key.
func (b *Builder[V]) Map() (m Map[V], twice string, ok bool) {
	defer func() { *b = Builder[V]{} }()
	if len(b.hashes) == 0 {
		return m, "", true
	}
	root, twice := b.build(b.hashes, make([]hashed, len(b.hashes)), 0)
	if root == nil {
		return m, twice, false
	}
	return Map[V]{root: root, size: len(b.hashes)}, "", true
}

// build returns a node with the entries all, which it sorts with room as scratch space. If a
// key is there twice, it returns nil and the key.
func (b *Builder[V]) build(all, room []hashed, shift int) (*node[V], string) {
	n := &cut(&b.nodes, 1)[0]
	if shift > maxShift {
		for _, h := range all {
			e := b.at(h.place)
			if n.inList(e.key) != nil {
				return nil, e.key
			}
			n.entries = append(n.entries, e)
		}
		return n, ""
	}
	all, room = arrange(all, room, shift)
	var taken uint32
	for i := range all {
		bit := bitOf(all[i].hash, shift)
		n.branches |= taken & bit
		taken |= bit
	}
	n.inline = taken &^ n.branches
	n.entries, n.kids = cut(&b.entries, bits.OnesCount32(n.inline))[:0], cut(&b.kids, bits.OnesCount32(n.branches))[:0]
	for len(all) > 0 {
		end := 1
		for end < len(all) && all[end].slot(shift) == all[0].slot(shift) {
			end++
		}
		if end == 1 {
			n.entries = append(n.entries, b.at(all[0].place))
		} else {
			kid, twice := b.build(all[:end], room[:end], shift+width)
			if kid == nil {
				return nil, twice
			}
			n.kids = append(n.kids, kid)
		}
		all, room = all[end:], room[end:]
	}
	return n, ""
}

// few is the number of entries up to which arrange uses insertion sort instead of counting
// sort.
const few = 12

// arrange sorts entries by their slots, with room as scratch space. It returns the slice with
// the sorted entries and the other slice.
func arrange(all, room []hashed, shift int) (sorted, other []hashed) {
	if len(all) <= few {
		for i := range all {
			for j := i; j > 0 && all[j].slot(shift) < all[j-1].slot(shift); j-- {
				all[j], all[j-1] = all[j-1], all[j]
			}
		}
		return all, room
	}
	var starts [mask + 1]int
	for i := range all {
		starts[all[i].slot(shift)]++
	}
	sum := 0
	for i, size := range starts {
		starts[i], sum = sum, sum+size
	}
	for i := range all {
		at := &starts[all[i].slot(shift)]
		room[*at] = all[i]
		*at++
	}
	return room, all
}

// cut takes n elements off a slab. If the slab has fewer, cut allocates a new one.
func cut[T any](slab *[]T, n int) []T {
	if n == 0 {
		return nil
	}
	if len(*slab) < n {
		*slab = make([]T, listSlab)
	}
	part := (*slab)[:n:n]
	*slab = (*slab)[n:]
	return part
}
