package trie

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

const (
	width    = 5
	mask     = 1<<width - 1
	maxShift = 60 // the last level that has hash bits left: 64 = 12*5 + 4
)

// A Map is an immutable map. The zero value is empty.
type Map[V any] struct {
	root *node[V]
	size int
}

// node is a branch or, below maxShift, a list of entries with equal hashes. The next five
// bits of the hash select a slot. The slot's bit is set in inline if the slot has one entry,
// and in branches if it has more. Only the root may have a single entry and nothing else, so
// that equal maps have equal shapes.
type node[V any] struct {
	owner    *byte // the edit that may change the node in place
	inline   uint32
	branches uint32
	entries  []*entry[V] // one for each bit of inline; in a list, all entries
	kids     []*node[V]  // one for each bit of branches
}

type entry[V any] struct {
	hash  uint64
	key   string
	value V
}

var seed = maphash.MakeSeed()

// hash is a variable so that a test can make keys collide.
var hash = func(key string) uint64 { return maphash.String(seed, key) }

func bitOf(h uint64, shift int) uint32 { return 1 << (h >> shift & mask) }

// place returns the index of a bit's element in entries or kids.
func place(set, bit uint32) int { return bits.OnesCount32(set & (bit - 1)) }

// Len returns the number of keys.
func (m Map[V]) Len() int { return m.size }

// Get returns the value of a key. The value belongs to the map and must not be changed.
func (m Map[V]) Get(key string) (*V, bool) {
	if e := m.root.find(hash(key), 0, key); e != nil {
		return &e.value, true
	}
	return nil, false
}

func (n *node[V]) find(h uint64, shift int, key string) *entry[V] {
	for ; n != nil; shift += width {
		if shift > maxShift {
			return n.inList(key)
		}
		bit := bitOf(h, shift)
		if n.inline&bit != 0 {
			if e := n.entries[place(n.inline, bit)]; e.hash == h && e.key == key {
				return e
			}
			return nil
		}
		if n.branches&bit == 0 {
			return nil
		}
		n = n.kids[place(n.branches, bit)]
	}
	return nil
}

func (n *node[V]) inList(key string) *entry[V] {
	for _, e := range n.entries {
		if e.key == key {
			return e
		}
	}
	return nil
}

// All yields the entries in no particular order. The values belong to the map and must not
// be changed.
func (m Map[V]) All() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		m.root.each(func(e *entry[V]) bool { return yield(e.key, &e.value) })
	}
}

func (n *node[V]) each(yield func(*entry[V]) bool) bool {
	if n == nil {
		return true
	}
	for _, e := range n.entries {
		if !yield(e) {
			return false
		}
	}
	for _, k := range n.kids {
		if !k.each(yield) {
			return false
		}
	}
	return true
}
