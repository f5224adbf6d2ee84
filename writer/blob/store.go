package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/lopen-dev/lopen/writer"
)

// lockName is the lock's file. It is never unlinked.
const lockName = ".lock"

// A Store is a folder of blobs. Any number of Stores, in any number of
// processes, may be on one folder.
type Store struct {
	dir    writer.FS
	shards [256]shardState // by the first byte of a hash
}

// shardState is what this Store knows of one of the 256 folders.
type shardState struct {
	durable atomic.Bool // its own name is on the disk; nobody removes it again
	// suspect: a sync failed. The kernel may have dropped what was to be written,
	// and the next sync says nothing of it. Never cleared.
	suspect atomic.Bool
}

// New is the Store in dir, which stays the caller's to close, after the last use
// of the Store. It touches nothing: the lock and the folders are made when
// something is stored.
func New(dir writer.FS) *Store { return &Store{dir: dir} }

// path is where a name of the store is, for messages.
func (s *Store) path(name string) string { return filepath.Join(s.dir.Name(), name) }

// failed is the error of an operation on the blob of h: its path, and the hash
// to search for. The class is that of the cause, and a *writer.Error's operation
// and path are left out for ours.
func (s *Store) failed(op string, h Hash, outcome writer.Outcome, err error) *writer.Error {
	e := writer.NewError(op, s.path(h.name()), outcome, err)
	var inner *writer.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	e.Err = fmt.Errorf("blob %s: %w", h, err)
	return e
}

// Has says whether there is a file for h. Whether it is whole, Verify says.
// Anything may call it; the answer is good for as long as a [Hold] is out.
func (s *Store) Has(h Hash) (bool, error) {
	info, err := s.dir.Lstat(h.name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, s.failed("look at blob", h, writer.NotCommitted, err)
	}
	return info.Mode().IsRegular(), nil
}

// quote makes foreign text fit for a message.
func quote(s string) string {
	const longest = 80
	if len(s) > longest {
		s = s[:longest]
	}
	return strconv.Quote(s)
}
