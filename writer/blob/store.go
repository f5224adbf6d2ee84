package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// lockName is the name of the lock file, which is never unlinked.
const lockName = ".lock"

// A Store is a folder of blobs. Any number of Stores, in any number of processes, may
// use one folder.
type Store struct {
	dir     writer.FS
	newHash func() hash.Hash // Immutable.
	packMax int              // Immutable: PackMax except in tests.
	objects int              // Immutable: contents per pack at most; maxObjects except in tests.
	by      codec.Options    // Immutable: how files of single contents are compressed
	folders [packsFolder + 1]folderState

	mu     sync.Mutex
	packs  []*pack // Guarded by mu: the newest first; replaced, never changed.
	looked bool    // Guarded by mu: the folder was listed at least once.
}

// A folder is one of the folders in a store: that of the hashes that begin with this byte, or
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
	durable atomic.Bool // the folder's own name is durable
	// suspect says that a sync of the folder failed. The kernel may have dropped the
	// changes, and a later sync may report success without them. It is never cleared.
	suspect atomic.Bool
}

// New returns the Store in dir. The caller closes dir after the last use of the Store. New
// does not touch the disk: the lock and the folders are made when something is stored.
func New(dir writer.FS) *Store {
	return &Store{dir: dir, newHash: sha256.New, packMax: PackMax, objects: maxObjects, by: codec.Options{Codec: "none"}}
}

// Compressing sets how the Store compresses the files of single contents that it writes, and
// returns the Store. Without it they are stored as they are. All are read. It is called before
// the first use of the Store.
func (s *Store) Compressing(by codec.Options) *Store {
	s.by = by
	return s
}

// NewHash returns the hash function that names contents. Callers use it because the
// function is a property of the store. Its sum has the size of a [Hash].
func (s *Store) NewHash() hash.Hash { return s.newHash() }

// sum returns the hash of a content.
func (s *Store) sum(data []byte) Hash {
	sum := s.NewHash()
	sum.Write(data)
	return Hash(sum.Sum(nil))
}

// path returns the full path of a name in the store, for messages.
func (s *Store) path(name string) string { return filepath.Join(s.dir.Name(), name) }

// failed returns the error of an operation on the blob of h that has its own file.
func (s *Store) failed(op string, h Hash, outcome writer.Outcome, err error) *writer.Error {
	for _, c := range codec.All {
		if _, lerr := s.dir.Lstat(h.file(c)); lerr == nil {
			return s.failedAt(op, h.file(c), h, outcome, err)
		}
	}
	return s.failedAt(op, h.name(), h, outcome, err)
}

// failedAt returns the error of an operation on the blob of h. It names the file, and the
// hash so that a person can search for it. It has the class of the cause. If the cause is
// a *writer.Error, its operation and path are replaced.
func (s *Store) failedAt(op, name string, h Hash, outcome writer.Outcome, err error) *writer.Error {
	if errors.Is(err, envelope.ErrCorrupt) {
		err = damaged(err)
	}
	e := writer.NewError(op, s.path(name), outcome, err)
	if inner, ok := errors.AsType[*writer.Error](err); ok {
		err = inner.Err
	}
	e.Err = fmt.Errorf("blob %s: %w", h, err)
	return e
}

// Has reports whether the store has h; Verify checks whether it is intact. Without a [Hold]
// a sweep may remove h at any time. If h is not found, a damaged pack that may have it is an
// error.
func (s *Store) Has(h Hash) (bool, error) {
	_, err := s.Size(h)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Size returns the length of the content of h in bytes. It does not read the content. The
// errors are those of [Store.Open].
func (s *Store) Size(h Hash) (size int64, err error) {
	const op = "look at blob"
	err = s.find(op, h, func() error {
		return s.eachPack(op, h, func(p *pack, r *record) error {
			size = int64(r.size())
			_, err := s.dir.Lstat(p.path()) // a sweep may have removed the pack
			return err
		})
	}, func() (err error) {
		size, err = s.sizeLoose(op, h)
		return err
	})
	return size, err
}

// sizeLoose is Size for a blob with its own file. The error does not name h.
func (s *Store) sizeLoose(op string, h Hash) (size int64, err error) {
	info, err := s.dir.Lstat(h.name())
	switch {
	case err == nil && !info.Mode().IsRegular():
		return 0, &writer.Error{Class: writer.ClassInvalid, Err: errors.New("it is no regular file; move it away")}
	case err == nil:
		return info.Size(), nil
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	for _, c := range codec.All[1:] {
		f, info, oerr := writer.OpenRegular(s.dir, op, h.file(c), os.O_RDONLY)
		if oerr == nil {
			size, oerr = codec.Size(c, f, info.Size())
			_ = f.Close() // nothing was written
		}
		if !errors.Is(oerr, fs.ErrNotExist) {
			if err = oerr; err == nil {
				break
			}
		}
	}
	return size, err
}

// A Hash names a content by its SHA-256. It is comparable, and every value is valid.
type Hash [32]byte

// shardLen is the number of hex digits that name a blob's folder: 256 folders
// keep each one small.
const shardLen = 2

// String returns the hash as 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns what String returns. It never fails.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText parses text as ParseHash does. After an error h is unchanged.
func (h *Hash) UnmarshalText(text []byte) error {
	parsed, err := ParseHash(string(text))
	if err == nil {
		*h = parsed
	}
	return err
}

// ParseHash parses what String returns and nothing else, so that each hash has one text.
// The error has class invalid.
func ParseHash(s string) (Hash, error) {
	var h Hash
	// DecodeString takes upper-case digits as well.
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) || hex.EncodeToString(b) != s {
		return Hash{}, &writer.Error{Op: "parse hash", Path: strconv.Quote(s[:min(len(s), 80)]), Class: writer.ClassInvalid, Err: errors.New("a hash is 64 lower-case hex digits")}
	}
	return Hash(b), nil
}

// name returns the path inside the store that the blob has as a file of its own, if that is
// not compressed.
func (h Hash) name() string { return h.shard() + "/" + h.String()[shardLen:] }

// file returns that path for a codec. The suffix alone says whether a file is compressed: a
// content may begin with any bytes.
func (h Hash) file(c codec.Codec) string { return h.name() + c.Suffix() }

// folder returns the folder of that file.
func (h Hash) folder() folder { return folder(h[0]) }

// shard returns the name of that folder.
func (h Hash) shard() string { return h.folder().name() }
