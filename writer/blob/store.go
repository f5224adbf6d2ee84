package blob

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/lopen-dev/lopen/writer"
)

// lockName is the lock's file. It is never unlinked.
const lockName = ".lock"

// A Store is a folder of blobs. Any number of Stores, in any number of
// processes, may be on one folder.
type Store struct {
	dir     writer.FS
	newHash func() hash.Hash // Immutable.
	packMax int              // Immutable: PackMax but in tests.
	objects int              // Immutable: of a pack, maxObjects but in tests.
	folders [packsFolder + 1]folderState

	mu     sync.Mutex
	packs  []*pack // Guarded by mu: the newest first; replaced, never changed.
	looked bool    // Guarded by mu: packs says what was there once.
}

// A folder is one of those in a store: the shard of the hashes that begin with this byte, or
// packsFolder.
type folder int

const packsFolder folder = 256

func (f folder) name() string {
	if f == packsFolder {
		return "packs"
	}
	return fmt.Sprintf("%02x", int(f))
}

// folderState is what this Store knows of a folder.
type folderState struct {
	durable atomic.Bool // its own name is on the disk; nobody removes it again
	// suspect: a sync failed. The kernel may have dropped what was to be written,
	// and the next sync says nothing of it. Never cleared.
	suspect atomic.Bool
}

// New is the Store in dir, which stays the caller's to close, after the last use
// of the Store. It touches nothing: the lock and the folders are made when
// something is stored.
func New(dir writer.FS) *Store {
	return &Store{dir: dir, newHash: sha256.New, packMax: PackMax, objects: maxObjects}
}

// NewHash makes a hash that names contents: how they are named is a property of the
// store. Its sum has the size of a [Hash].
func (s *Store) NewHash() hash.Hash { return s.newHash() }

// sum is the name of a content.
func (s *Store) sum(data []byte) Hash {
	sum := s.NewHash()
	sum.Write(data)
	return Hash(sum.Sum(nil))
}

// path is where a name of the store is, for messages.
func (s *Store) path(name string) string { return filepath.Join(s.dir.Name(), name) }

// failed is the error of an operation on the blob of h that has a file of its own.
func (s *Store) failed(op string, h Hash, outcome writer.Outcome, err error) *writer.Error {
	return s.failedAt(op, h.name(), h, outcome, err)
}

// failedAt is the error of an operation on the blob of h: the file that has it, and the
// hash to search for. The class is that of the cause, and a *writer.Error's operation
// and path are left out for ours.
func (s *Store) failedAt(op, name string, h Hash, outcome writer.Outcome, err error) *writer.Error {
	e := writer.NewError(op, s.path(name), outcome, err)
	var inner *writer.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	e.Err = fmt.Errorf("blob %s: %w", h, err)
	return e
}

// Has says whether h is there. Whether it is whole, Verify says. Anything may call it;
// the answer is good for as long as a [Hold] is out. A damaged pack, which may have it,
// is an error.
func (s *Store) Has(h Hash) (bool, error) {
	_, err := s.size("look at blob", h)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Size is how many bytes the content of h has. The errors are those of [Store.Open]; it
// reads nothing of the content.
func (s *Store) Size(h Hash) (int64, error) { return s.size("look at blob", h) }

func (s *Store) size(op string, h Hash) (size int64, err error) {
	return size, s.find(op, h, func() error {
		return s.eachPack(op, h, func(p *pack, r *record) error {
			size = int64(r.size())
			_, err := s.dir.Lstat(p.path()) // a sweep may have removed it
			return err
		})
	}, func() error {
		info, err := s.dir.Lstat(h.name())
		if err == nil && !info.Mode().IsRegular() {
			err = &writer.Error{Class: writer.ClassInvalid, Err: errors.New("it is no regular file; move it away")}
		}
		if err == nil {
			size = info.Size()
		}
		return err
	})
}

// quote makes foreign text fit for a message.
func quote(s string) string {
	const longest = 80
	if len(s) > longest {
		s = s[:longest]
	}
	return strconv.Quote(s)
}
