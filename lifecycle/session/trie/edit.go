package trie

import "slices"

// An Edit changes a map into a new one. Make it with [Map.Edit].
type Edit[V any] struct {
	m     Map[V]
	owner *byte // nil until something changes
}

// Edit begins a change. It does not change m itself.
func (m Map[V]) Edit() *Edit[V] { return &Edit[V]{m: m} }

// Map returns the new map. The edit may be used further, and then copies the nodes that it
// changes.
func (e *Edit[V]) Map() Map[V] {
	e.owner = nil
	return e.m
}

// Now returns the map as the edit has it. It is valid until the next change.
func (e *Edit[V]) Now() Map[V] { return e.m }

// Get returns the value of a key as the edit has it. The value must not be changed.
func (e *Edit[V]) Get(key string) (*V, bool) { return e.m.Get(key) }

// Put sets the value of a key and reports whether the key is new.
func (e *Edit[V]) Put(key string, value V) (added bool) {
	e.begin()
	en := &entry[V]{hash: hash(key), key: key, value: value}
	e.m.root, added = e.put(e.m.root, 0, en)
	if added {
		e.m.size++
	}
	return added
}

// Delete removes a key if it is there.
func (e *Edit[V]) Delete(key string) {
	h := hash(key)
	if e.m.root.find(h, 0, key) == nil {
		return
	}
	e.begin()
	e.m.root = e.remove(e.m.root, 0, h, key)
	e.m.size--
}

func (e *Edit[V]) begin() {
	if e.owner == nil {
		e.owner = new(byte)
	}
}

// own returns n if this edit may change it, else a copy.
func (e *Edit[V]) own(n *node[V]) *node[V] {
	if n == nil {
		return &node[V]{owner: e.owner}
	}
	if n.owner == e.owner {
		return n
	}
	c := *n
	c.owner, c.entries, c.kids = e.owner, slices.Clone(n.entries), slices.Clone(n.kids)
	return &c
}

func (e *Edit[V]) put(n *node[V], shift int, en *entry[V]) (*node[V], bool) {
	n = e.own(n)
	if shift > maxShift {
		for i, old := range n.entries {
			if old.key == en.key {
				n.entries[i] = en
				return n, false
			}
		}
		n.entries = append(n.entries, en)
		return n, true
	}
	bit := bitOf(en.hash, shift)
	i, k := place(n.inline, bit), place(n.branches, bit)
	if n.branches&bit != 0 {
		kid, added := e.put(n.kids[k], shift+width, en)
		n.kids[k] = kid
		return n, added
	}
	if n.inline&bit == 0 {
		n.inline |= bit
		n.entries = slices.Insert(n.entries, i, en)
		return n, true
	}
	old := n.entries[i]
	if old.hash == en.hash && old.key == en.key {
		n.entries[i] = en
		return n, false
	}
	kid, _ := e.put(nil, shift+width, old)
	kid, _ = e.put(kid, shift+width, en)
	n.inline &^= bit
	n.entries = slices.Delete(n.entries, i, i+1)
	n.branches |= bit
	n.kids = slices.Insert(n.kids, k, kid)
	return n, true
}

// remove removes an existing key from n and returns the new node, or nil if nothing is left.
// A branch that is left with a single entry is folded into its parent.
func (e *Edit[V]) remove(n *node[V], shift int, h uint64, key string) *node[V] {
	n = e.own(n)
	bit := bitOf(h, shift)
	switch {
	case shift > maxShift:
		n.entries = slices.DeleteFunc(n.entries, func(en *entry[V]) bool { return en.key == key })
	case n.inline&bit != 0:
		i := place(n.inline, bit)
		n.inline &^= bit
		n.entries = slices.Delete(n.entries, i, i+1)
	default:
		k := place(n.branches, bit)
		kid := e.remove(n.kids[k], shift+width, h, key)
		n.kids[k] = kid
		if len(kid.entries) == 1 && len(kid.kids) == 0 {
			n.branches &^= bit
			n.kids = slices.Delete(n.kids, k, k+1)
			n.entries = slices.Insert(n.entries, place(n.inline, bit), kid.entries[0])
			n.inline |= bit
		}
	}
	if len(n.entries)+len(n.kids) == 0 {
		return nil
	}
	return n
}
