// Package trie is a persistent hash trie: a map from strings whose versions
// share what they have in common. A change copies the path from the root to one
// leaf; two versions are compared by walking only where they differ.
//
// It is Bagwell's hash array mapped trie (Ideal Hash Trees, 2001), 32-way, with
// the transient edits of Clojure's: an [Edit] owns the nodes that it made and
// changes them in place until it is sealed.
//
// # Concurrency
//
// A [Map] is immutable and may be read from any goroutine. An Edit belongs to one.
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

// node is a branch, or, below maxShift, a list of entries whose hashes are equal.
type node[V any] struct {
	owner *byte // the edit that may change the node in place; nil once sealed
	bits  uint32
	slots []slot[V] // one a bit that is set; all entries in a collision node
}

type slot[V any] struct {
	child *node[V]
	entry *entry[V]
}

type entry[V any] struct {
	hash  uint64
	key   string
	value V
}

var seed = maphash.MakeSeed()

// hash is a variable so that a test can make keys collide.
var hash = func(key string) uint64 { return maphash.String(seed, key) }

// Len returns the number of keys.
func (m Map[V]) Len() int { return m.size }

// Get returns the value of a key. The pointer leads into the map: read only.
func (m Map[V]) Get(key string) (*V, bool) {
	h := hash(key)
	n := m.root
	for shift := 0; n != nil; shift += width {
		if shift > maxShift {
			for i := range n.slots {
				if e := n.slots[i].entry; e.key == key {
					return &e.value, true
				}
			}
			return nil, false
		}
		bit := uint32(1) << (h >> shift & mask)
		if n.bits&bit == 0 {
			return nil, false
		}
		s := n.slots[bits.OnesCount32(n.bits&(bit-1))]
		if s.entry != nil {
			if s.entry.hash == h && s.entry.key == key {
				return &s.entry.value, true
			}
			return nil, false
		}
		n = s.child
	}
	return nil, false
}

// All returns the entries in no particular order.
func (m Map[V]) All() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) { m.root.each(yield) }
}

func (n *node[V]) each(yield func(string, *V) bool) bool {
	return eachEntry(n, func(e *entry[V]) bool { return yield(e.key, &e.value) })
}

// An Edit changes a map into a new one. Make it with [Map.Edit].
type Edit[V any] struct {
	m     Map[V]
	owner *byte
}

// Edit begins a change of m, which itself stays as it is.
func (m Map[V]) Edit() *Edit[V] { return &Edit[V]{m: m, owner: new(byte)} }

// Now is the map as the edit has it. It is good until the next change.
func (e *Edit[V]) Now() Map[V] { return e.m }

// Map seals the edit and returns the new map. The edit may go on: what it
// changes from then on is copied first.
func (e *Edit[V]) Map() Map[V] {
	e.owner = new(byte)
	return e.m
}

// Len returns the number of keys as of now.
func (e *Edit[V]) Len() int { return e.m.size }

// Get returns the value of a key as of now, read only.
func (e *Edit[V]) Get(key string) (*V, bool) { return e.m.Get(key) }

// Put sets the value of a key and says whether the key is new.
func (e *Edit[V]) Put(key string, value V) (added bool) {
	en := &entry[V]{hash: hash(key), key: key, value: value}
	e.m.root, added = e.put(e.m.root, 0, en)
	if added {
		e.m.size++
	}
	return added
}

// Delete removes a key if it is there.
func (e *Edit[V]) Delete(key string) {
	if _, ok := e.m.Get(key); !ok {
		return
	}
	e.m.root = e.remove(e.m.root, 0, hash(key), key)
	e.m.size--
}

// own returns n if this edit may change it, else a copy with room for one more.
func (e *Edit[V]) own(n *node[V]) *node[V] {
	if n.owner == e.owner {
		return n
	}
	c := &node[V]{owner: e.owner, bits: n.bits, slots: make([]slot[V], len(n.slots), len(n.slots)+1)}
	copy(c.slots, n.slots)
	return c
}

func (e *Edit[V]) put(n *node[V], shift int, en *entry[V]) (*node[V], bool) {
	if n == nil {
		n = &node[V]{owner: e.owner}
	}
	n = e.own(n)
	if shift > maxShift {
		for i := range n.slots {
			if n.slots[i].entry.key == en.key {
				n.slots[i].entry = en
				return n, false
			}
		}
		n.slots = append(n.slots, slot[V]{entry: en})
		return n, true
	}
	bit := uint32(1) << (en.hash >> shift & mask)
	i := bits.OnesCount32(n.bits & (bit - 1))
	if n.bits&bit == 0 {
		n.bits |= bit
		n.slots = append(n.slots, slot[V]{})
		copy(n.slots[i+1:], n.slots[i:])
		n.slots[i] = slot[V]{entry: en}
		return n, true
	}
	s := &n.slots[i]
	if old := s.entry; old != nil {
		if old.hash == en.hash && old.key == en.key {
			s.entry = en
			return n, false
		}
		child, _ := e.put(nil, shift+width, old)
		s.child, s.entry = child, nil
	}
	child, added := e.put(s.child, shift+width, en)
	s.child = child
	return n, added
}

// remove takes a key that is there out of n. A branch that is left with a single
// entry is folded into its parent, so that equal maps have equal shapes.
func (e *Edit[V]) remove(n *node[V], shift int, h uint64, key string) *node[V] {
	n = e.own(n)
	if shift > maxShift {
		for i := range n.slots {
			if n.slots[i].entry.key == key {
				n.slots = append(n.slots[:i], n.slots[i+1:]...)
				break
			}
		}
	} else {
		bit := uint32(1) << (h >> shift & mask)
		i := bits.OnesCount32(n.bits & (bit - 1))
		if s := &n.slots[i]; s.entry != nil {
			n.slots = append(n.slots[:i], n.slots[i+1:]...)
			n.bits &^= bit
		} else if c := e.remove(s.child, shift+width, h, key); len(c.slots) == 1 && c.slots[0].entry != nil {
			*s = slot[V]{entry: c.slots[0].entry}
		} else {
			s.child = c
		}
	}
	if len(n.slots) == 0 {
		return nil
	}
	return n
}

// Diff calls fn for every key whose entry differs between two maps, with nil
// where one has none, until fn returns false. Parts that the maps share are not
// walked. An entry that was put anew counts as different, whatever its value.
func Diff[V any](from, to Map[V], fn func(key string, from, to *V) bool) {
	diff(from.root, to.root, 0, fn)
}

func diff[V any](a, b *node[V], shift int, fn func(string, *V, *V) bool) bool {
	switch {
	case a == b:
		return true
	case a == nil:
		return b.each(func(k string, v *V) bool { return fn(k, nil, v) })
	case b == nil:
		return a.each(func(k string, v *V) bool { return fn(k, v, nil) })
	case shift > maxShift:
		return diffEntries(a, b, fn)
	}
	for all := a.bits | b.bits; all != 0; all &= all - 1 {
		bit := all & -all
		if !diffSlots(a.at(bit), b.at(bit), shift, fn) {
			return false
		}
	}
	return true
}

func (n *node[V]) at(bit uint32) slot[V] {
	if n.bits&bit == 0 {
		return slot[V]{}
	}
	return n.slots[bits.OnesCount32(n.bits&(bit-1))]
}

func diffSlots[V any](x, y slot[V], shift int, fn func(string, *V, *V) bool) bool {
	switch {
	case x == y:
		return true
	case x.entry == nil && y.entry == nil:
		return diff(x.child, y.child, shift+width, fn)
	case x.entry != nil && y.entry != nil && x.entry.key == y.entry.key:
		return fn(x.entry.key, &x.entry.value, &y.entry.value)
	}
	return diffEntries(x.node(), y.node(), fn)
}

// node is a slot's content as a node, for comparing an entry with a branch.
func (s slot[V]) node() *node[V] {
	if s.entry != nil {
		return &node[V]{slots: []slot[V]{s}}
	}
	return s.child
}

// diffEntries compares nodes of different shapes, of which one is small: an
// entry against the branch that took its place, or two lists of collisions.
func diffEntries[V any](a, b *node[V], fn func(string, *V, *V) bool) bool {
	return eachEntry(a, func(was *entry[V]) bool {
		now := find(b, was.key)
		switch {
		case now == nil:
			return fn(was.key, &was.value, nil)
		case now != was:
			return fn(was.key, &was.value, &now.value)
		}
		return true
	}) && eachEntry(b, func(now *entry[V]) bool {
		return find(a, now.key) != nil || fn(now.key, nil, &now.value)
	})
}

func eachEntry[V any](n *node[V], yield func(*entry[V]) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.slots {
		s := &n.slots[i]
		if s.entry != nil {
			if !yield(s.entry) {
				return false
			}
		} else if !eachEntry(s.child, yield) {
			return false
		}
	}
	return true
}

// find looks through all entries beneath a node.
func find[V any](n *node[V], key string) (found *entry[V]) {
	eachEntry(n, func(e *entry[V]) bool {
		if e.key == key {
			found = e
		}
		return found == nil
	})
	return found
}
