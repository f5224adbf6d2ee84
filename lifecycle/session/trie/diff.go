package trie

// Diff calls fn for every key whose entry differs between two maps, until fn returns false.
// A missing entry is nil. Diff skips parts that the maps share. An entry that was put again
// counts as different even with an equal value. The values belong to the maps and must not
// be changed.
func Diff[V any](from, to Map[V], fn func(key string, from, to *V) bool) {
	diff(from.root, to.root, 0, fn)
}

func diff[V any](a, b *node[V], shift int, fn func(string, *V, *V) bool) bool {
	switch {
	case a == b:
		return true
	case a == nil || b == nil || shift > maxShift:
		return diffApart(a, b, shift, fn)
	case a.inline != b.inline || a.branches != b.branches:
		return diffShapes(a, b, shift, fn)
	}
	for i, x := range a.entries {
		if y := b.entries[i]; x != y && !diffEntries(x, y, fn) {
			return false
		}
	}
	for i, x := range a.kids {
		if y := b.kids[i]; x != y && !diff(x, y, shift+width, fn) {
			return false
		}
	}
	return true
}

func diffEntries[V any](x, y *entry[V], fn func(string, *V, *V) bool) bool {
	if x.hash == y.hash && x.key == y.key {
		return fn(x.key, &x.value, &y.value)
	}
	return fn(x.key, &x.value, nil) && fn(y.key, nil, &y.value)
}

// diffShapes compares two nodes slot by slot, since one may have an entry where the other
// has a branch.
func diffShapes[V any](a, b *node[V], shift int, fn func(string, *V, *V) bool) bool {
	for all := a.inline | a.branches | b.inline | b.branches; all != 0; all &= all - 1 {
		bit := all & -all
		x, y := a.slot(bit, shift+width), b.slot(bit, shift+width)
		if !diff(x, y, shift+width, fn) {
			return false
		}
	}
	return true
}

// slot returns the content of a slot as a branch, or nil if it is empty. It wraps an entry in
// a branch of its own, as if the entry were one level deeper.
func (n *node[V]) slot(bit uint32, shift int) *node[V] {
	switch {
	case n.branches&bit != 0:
		return n.kids[place(n.branches, bit)]
	case n.inline&bit != 0:
		i := place(n.inline, bit)
		return &node[V]{inline: bitOf(n.entries[i].hash, shift), entries: n.entries[i : i+1]}
	}
	return nil
}

// diffApart compares nodes entry by entry. It is for lists, and for a missing node.
func diffApart[V any](a, b *node[V], shift int, fn func(string, *V, *V) bool) bool {
	return a.each(func(x *entry[V]) bool {
		y := b.find(x.hash, shift, x.key)
		switch {
		case y == nil:
			return fn(x.key, &x.value, nil)
		case x != y:
			return fn(x.key, &x.value, &y.value)
		}
		return true
	}) && b.each(func(y *entry[V]) bool {
		return a.find(y.hash, shift, y.key) != nil || fn(y.key, nil, &y.value)
	})
}
