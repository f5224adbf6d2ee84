package checkpoint

import "github.com/lopen-dev/lopen/writer/blob"

// A ledger adds up what entries take on the disk, each object once. It reads an object once:
// an entry that is known is used and released without a look at the disk.
type ledger struct {
	tree    *Tree
	sizes   map[blob.Hash]int64
	known   map[node]int32 // the index of an object
	objects []object
	total   int64 // bytes of the objects in use
}

// An object is what a ledger knows of a node.
type object struct {
	uses  int     // number of entries and objects in use that name it
	bytes int64   // that it takes on the disk; 0 if it is lost
	below []int32 // the objects that it names
}

// add reads an entry and uses it.
func (l *ledger) add(e *Entry) error {
	for _, n := range e.nodes() {
		if _, err := l.read(n); err != nil {
			return err
		}
	}
	l.use(e)
	return nil
}

// read returns the index of a node. It reads the node, and all that it names, the first time.
func (l *ledger) read(n node) (int32, error) {
	if i, known := l.known[n]; known {
		return i, nil
	}
	names, err := l.tree.below(n)
	if err != nil && !lost(err) {
		return 0, err
	}
	x := object{bytes: l.sizes[n.hash], below: make([]int32, len(names))}
	for k, sub := range names {
		if x.below[k], err = l.read(sub); err != nil {
			return 0, err
		}
	}
	i := int32(len(l.objects))
	l.known[n], l.objects = i, append(l.objects, x)
	return i, nil
}

// use adds what an entry takes beyond the entries in use.
func (l *ledger) use(e *Entry) {
	for _, n := range e.nodes() {
		l.count(l.known[n], 1)
	}
}

// release takes back one use of an entry.
func (l *ledger) release(e *Entry) {
	for _, n := range e.nodes() {
		l.count(l.known[n], -1)
	}
}

// count adds one to the uses of an object, or subtracts it, and does the same to the objects that
// it names if it is used now and was not, or the other way round.
func (l *ledger) count(i int32, by int) {
	x := &l.objects[i]
	x.uses += by
	if x.uses != max(by, 0) {
		return
	}
	l.total += int64(by) * x.bytes
	for _, sub := range x.below {
		l.count(sub, by)
	}
}
