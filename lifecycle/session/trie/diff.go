package trie

// Diff calls fn for every key whose entry differs between two maps, with nil
// where one has none, until fn returns false. Parts that the maps share are not
// walked. An entry that was put anew counts as different, whatever its value. The
// pointers lead into the maps: read only.
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

// diffShapes compares two branches slot by slot: an entry may stand where the
// other has a branch.
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

// slot is what stands at a bit as a branch, nil when nothing does. An entry
// becomes a branch of its own, which has the shape that its hash gives it.
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

// diffApart compares nodes entry by entry: lists, and where one is missing.
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
