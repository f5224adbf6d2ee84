package trie

import "slices"

// A Builder makes a map out of many entries at once, in a fraction of the time
// of as many Puts: it sorts them by their hashes, five bits at a time, and makes each
// node once, in its final size. The zero value is ready; it belongs to one goroutine.
type Builder[V any] struct {
	entries []hashed[V]
	slab    []entry[V] // of which the next entries are cut
}

// slabSize is how many entries are allocated at once. An entry keeps its slab
// alive, so that a map holds, at worst, what its Builder was given beside what was
// put into it since.
const slabSize = 32

// hashed keeps the hash beside the pointer, as sorting looks at nothing else.
type hashed[V any] struct {
	hash uint64
	*entry[V]
}

// Grow makes room for n more entries at once.
func (b *Builder[V]) Grow(n int) { b.entries = slices.Grow(b.entries, n) }

// Add adds an entry.
func (b *Builder[V]) Add(key string, value V) {
	h := hash(key)
	if len(b.slab) == 0 {
		b.slab = make([]entry[V], slabSize)
	}
	e := &b.slab[0]
	b.slab = b.slab[1:]
	e.hash, e.key, e.value = h, key, value
	b.entries = append(b.entries, hashed[V]{h, e})
}

// Len returns the number of entries that were added.
func (b *Builder[V]) Len() int { return len(b.entries) }

// At returns the value that was added after i others. It may be changed until
// Map is called.
func (b *Builder[V]) At(i int) *V { return &b.entries[i].value }

// Map returns the map of all entries, after which the Builder is empty. A key
// that was added twice is returned instead of a map.
func (b *Builder[V]) Map() (m Map[V], twice string, ok bool) {
	all := b.entries
	b.entries, b.slab = nil, nil
	if len(all) == 0 {
		return m, "", true
	}
	root, twice := build(all, make([]hashed[V], len(all)), 0)
	if root == nil {
		return m, twice, false
	}
	return Map[V]{root: root, size: len(all)}, "", true
}

// build returns a node of all, which it puts in order by way of room; nil and
// the key if one is there twice.
func build[V any](all, room []hashed[V], shift int) (*node[V], string) {
	n := &node[V]{}
	if shift > maxShift {
		for _, h := range all {
			if n.inList(h.key) != nil {
				return nil, h.key
			}
			n.entries = append(n.entries, h.entry)
		}
		return n, ""
	}
	var ends [mask + 1]int
	for _, h := range all {
		ends[h.hash>>shift&mask]++
	}
	entries, kids, sum := 0, 0, 0
	for i, size := range ends {
		switch {
		case size == 1:
			entries++
			n.inline |= 1 << i
		case size > 1:
			kids++
			n.branches |= 1 << i
		}
		ends[i], sum = sum, sum+size
	}
	for _, h := range all {
		at := &ends[h.hash>>shift&mask]
		room[*at] = h
		*at++
	}
	n.entries, n.kids = make([]*entry[V], 0, entries), make([]*node[V], 0, kids)
	start := 0
	for _, end := range ends {
		switch {
		case end-start == 1:
			n.entries = append(n.entries, room[start].entry)
		case end-start > 1:
			kid, twice := build(room[start:end], all[start:end], shift+width)
			if kid == nil {
				return nil, twice
			}
			n.kids = append(n.kids, kid)
		}
		start = end
	}
	return n, ""
}
