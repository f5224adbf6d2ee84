package backup

import (
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	// chunkSize is the size of an object of a file, in bytes: what still goes into a pack.
	chunkSize = blob.PackMax
	hashSize  = len(blob.Hash{})
	// nodeMax is the size of a node, in bytes.
	nodeMax = chunkSize / hashSize * hashSize
	// maxDepth is far above what any content needs: two hashes a node are 2^40 objects.
	maxDepth = 40
)

// A ref names a sequence of objects by one hash. With depth 0 it is the hash of the only
// object. Else the hash is that of a node: an object that has the hashes of the nodes, or of
// the objects, one level below, one after the other. The bytes of all objects are size.
type ref struct {
	Hash  blob.Hash `json:"hash"`
	Depth int       `json:"depth,omitempty"`
	Size  int64     `json:"size"`
}

// A tree makes a ref. A node ends behind a hash whose last byte is 0, about every 256 hashes, so
// that two sequences which differ in one place share most of their nodes.
type tree struct {
	put    func([]byte) (blob.Hash, error)
	levels [][]byte // the hashes of each level that are in no node yet
	size   int64
}

// add appends an object to the sequence.
func (t *tree) add(data []byte) error {
	h, err := t.put(data)
	if err != nil {
		return err
	}
	t.size += int64(len(data))
	return t.addAt(0, h)
}

func (t *tree) addAt(level int, h blob.Hash) error {
	if len(t.levels) == level {
		t.levels = append(t.levels, nil)
	}
	t.levels[level] = append(t.levels[level], h[:]...)
	n := len(t.levels[level])
	if n == nodeMax || h[hashSize-1] == 0 && n > hashSize { // a node of one would not shorten the level
		return t.node(level)
	}
	return nil
}

func (t *tree) node(level int) error {
	h, err := t.put(t.levels[level])
	if err != nil {
		return err
	}
	t.levels[level] = t.levels[level][:0]
	return t.addAt(level+1, h)
}

// end returns the ref of the sequence. Without objects it is the zero ref.
func (t *tree) end() (ref, error) {
	for level := 0; level < len(t.levels); level++ {
		n := len(t.levels[level])
		if level == len(t.levels)-1 && n == hashSize {
			return ref{blob.Hash(t.levels[level]), level, t.size}, nil
		}
		if n > 0 {
			if err := t.node(level); err != nil {
				return ref{}, err
			}
		}
	}
	return ref{}, nil
}

// A walk goes through the objects of a ref in order. It holds one node of each level.
type walk struct {
	read  func(blob.Hash) ([]byte, error) // reads a node
	enter func(node ref) bool             // whether to read a node; nil means each
	todo  []level
}

// A level is what is left of a node: the hashes of nodes, or of objects with depth 0.
type level struct {
	hashes []byte
	depth  int
}

func newWalk(r ref, read func(blob.Hash) ([]byte, error)) *walk {
	w := &walk{read: read}
	if r.Size > 0 {
		w.todo = []level{{r.Hash[:], r.Depth}}
	}
	return w
}

// next returns the next object. The boolean is false at the end. A node that cannot be read is
// passed: the walk continues behind it.
func (w *walk) next() (h blob.Hash, more bool, err error) {
	for len(w.todo) > 0 {
		at := &w.todo[len(w.todo)-1]
		if len(at.hashes) == 0 {
			w.todo = w.todo[:len(w.todo)-1]
			continue
		}
		h, at.hashes = blob.Hash(at.hashes[:hashSize]), at.hashes[hashSize:]
		if at.depth == 0 {
			return h, true, nil
		}
		depth := at.depth
		if w.enter != nil && !w.enter(ref{Hash: h, Depth: depth}) {
			continue
		}
		node, err := w.read(h)
		if err == nil && (len(node) == 0 || len(node)%hashSize != 0) {
			err = damaged(fmt.Errorf("object %s: %d bytes are no list of hashes", h, len(node)))
		}
		if err != nil {
			return blob.Hash{}, true, err
		}
		w.todo = append(w.todo, level{node, depth - 1})
	}
	return blob.Hash{}, false, nil
}

// check refuses a ref that no tree makes.
func (r *ref) check() error {
	if r.Depth < 0 || r.Depth > maxDepth || r.Size < 0 || r.Size == 0 && (r.Depth > 0 || r.Hash != blob.Hash{}) {
		return damaged(errors.New("it names contents as no backup does"))
	}
	return nil
}

// damaged returns an error of class corrupt without a path, which the caller adds.
func damaged(err error) *writer.Error { return &writer.Error{Class: writer.ClassCorrupt, Err: err} }
