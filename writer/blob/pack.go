package blob

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// PackMax is the size in bytes up to which a content goes into a pack.
const PackMax = 64 << 10

// A pack is a file of contents. All numbers are big endian:
//
//	"lopenpk" and the version, one byte
//	the contents, one after the other
//	the index: a record for each content, sorted by hash
//	the number of records and the CRC-32C of header, index and that number, 4 bytes each
//
// A record is the hash and 8 bytes: the lower 17 bits are the size of the content, the
// others its offset in the file.
const (
	packMagic   = "lopenpk"
	packVersion = 1
	headerSize  = len(packMagic) + 1
	trailerSize = 8
	recordSize  = len(Hash{}) + 8
	sizeBits    = 17
	// maxObjects bounds the index of a pack, which is read into memory, at 40 MiB.
	maxObjects = 1 << 20
	packSuffix = ".pack"
)

// packHeader returns the bytes that begin every pack.
func packHeader() []byte { return append([]byte(packMagic), packVersion) }

// packTrailer returns the bytes that end a pack with this index.
func packTrailer(x index) []byte {
	end := binary.BigEndian.AppendUint32(nil, uint32(x.len()))
	return binary.BigEndian.AppendUint32(end, envelope.Sum(packHeader(), x, end))
}

// newPackName returns the name of a new pack. Names begin with the time, so that the newest
// pack sorts last and is searched first. A clock that goes back only makes a search slower.
func newPackName() string {
	return fmt.Sprintf("%016x-%s%s", time.Now().UnixNano(), rand.Text(), packSuffix)
}

// isPackName reports whether newPackName may have returned this name.
func isPackName(name string) bool {
	stem, ok := strings.CutSuffix(name, packSuffix)
	return ok && len(stem) == 16+1+26 && strings.Trim(stem, "0123456789abcdefABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// A record is an entry of an index.
type record [recordSize]byte

func newRecord(h Hash, offset int64, size int) (r record) {
	copy(r[:], h[:])
	binary.BigEndian.PutUint64(r[len(h):], uint64(offset)<<sizeBits|uint64(size))
	return r
}

func (r *record) hash() Hash { return Hash(r[:len(Hash{})]) }

func (r *record) place() uint64 { return binary.BigEndian.Uint64(r[len(Hash{}):]) }

func (r *record) offset() int64 { return int64(r.place() >> sizeBits) }

func (r *record) size() int { return int(r.place() & (1<<sizeBits - 1)) }

// An index has the records of a pack as they are in the file, so that a million records take
// one allocation.
type index []byte

func (x index) len() int { return len(x) / recordSize }

func (x index) at(i int) *record { return (*record)(x[i*recordSize:]) }

// find returns the record of a hash, or nil.
func (x index) find(h Hash) *record {
	i, found := sort.Find(x.len(), func(i int) int { return bytes.Compare(h[:], x.at(i)[:len(h)]) })
	if !found {
		return nil
	}
	return x.at(i)
}

// check refuses an index that no writer makes: records out of order, contents that are too
// large or outside of the end bytes before the index, or contents whose sizes do not add up
// to those bytes. So the contents of a pack are never more than the file has, even if a
// foreign index lets some overlap. A content is believed only if it has its hash.
func (x index) check(end int64) error {
	left := end - int64(headerSize)
	for i := range x.len() {
		r := x.at(i)
		switch {
		case i > 0 && bytes.Compare(x.at(i - 1)[:len(Hash{})], r[:len(Hash{})]) >= 0:
			return fmt.Errorf("record %d of its index is not behind the one before", i)
		case r.size() > PackMax || r.offset() < int64(headerSize) || r.offset() > end-int64(r.size()):
			return fmt.Errorf("record %d of its index names %d bytes at %d, of %d", i, r.size(), r.offset(), end)
		}
		left -= int64(r.size())
	}
	if left != 0 {
		return fmt.Errorf("its index leaves %d bytes over", left)
	}
	return nil
}

// readIndex reads the index of a pack of size bytes. If the file is no valid pack, the error
// has class corrupt or future-version; else it is that of r. Whatever the file has, readIndex
// takes no more memory than an index of maxObjects.
func readIndex(r io.ReaderAt, size int64) (index, error) {
	var head [8]byte
	var tail [trailerSize]byte
	if size < int64(len(head)+len(tail)) {
		return nil, damaged(fmt.Errorf("it has %d bytes", size))
	}
	if err := readFull(r, head[:], 0); err != nil {
		return nil, err
	}
	if string(head[:len(packMagic)]) != packMagic || head[len(packMagic)] == 0 {
		return nil, damaged(errors.New("it does not begin like a pack"))
	}
	if v := head[len(packMagic)]; v > packVersion {
		return nil, &writer.Error{Class: writer.ClassFutureVersion, Err: fmt.Errorf("it has version %d, and %d is the newest that is known", v, packVersion)}
	}
	if err := readFull(r, tail[:], size-trailerSize); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(tail[:]))
	end := size - trailerSize - n*int64(recordSize)
	if n > maxObjects || end < int64(headerSize) {
		return nil, damaged(fmt.Errorf("it says that it has %d contents", n))
	}
	x := make(index, n*int64(recordSize))
	if err := readFull(r, x, end); err != nil {
		return nil, err
	}
	if !bytes.Equal(packTrailer(x), tail[:]) {
		return nil, damaged(errors.New("the checksum of its index is wrong"))
	}
	if err := x.check(end); err != nil {
		return nil, damaged(err)
	}
	return x, nil
}

// readFull fills p. If the file ends before that, the error has class corrupt.
func readFull(r io.ReaderAt, p []byte, offset int64) error {
	n, err := r.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return damaged(errors.New("it ends too early"))
	}
	return err
}

// errOther means that the bytes of a content do not have its hash.
var errOther = damaged(errors.New("its content is damaged: it has another hash"))

// damaged returns an error of class corrupt without a path, which the caller adds.
func damaged(err error) error { return &writer.Error{Class: writer.ClassCorrupt, Err: err} }

// A pack is a file of the packs' folder. Its index is read when it is needed.
type pack struct {
	name    string
	durable atomic.Bool // this Store has synced the folder since the pack is there

	mu    sync.Mutex
	read  bool  // Guarded by mu.
	index index // Guarded by mu until read, then immutable.
	bytes int64 // Length of the file; guarded as index is.
	err   error // Why the index can never be read; guarded as index is.
}

// path returns the pack's path in the store.
func (p *pack) path() string { return packsFolder.name() + "/" + p.name }

// openPack opens a pack for reading. If a sweep removed it, the error is fs.ErrNotExist.
func (s *Store) openPack(op string, p *pack) (writer.File, int64, error) {
	f, info, err := writer.OpenRegular(s.dir, op, p.path(), os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// index returns the index of a pack. It reads and checks the index once and caches the
// result, also when the index is damaged. The error names the pack.
func (s *Store) index(op string, p *pack) (index, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read {
		return p.index, p.err
	}
	f, size, err := s.openPack(op, p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x, err := readIndex(f, size)
	if err != nil {
		e := s.packError(op, p, err)
		if e.Class == writer.ClassCorrupt || e.Class == writer.ClassFutureVersion {
			p.read, p.bytes, p.err = true, size, e
		}
		return nil, e
	}
	p.read, p.index, p.bytes = true, x, size
	return x, nil
}

// readObject reads a content from an open pack and verifies its hash.
func (s *Store) readObject(f io.ReaderAt, r *record) ([]byte, error) {
	data := make([]byte, r.size())
	if err := readFull(f, data, r.offset()); err != nil {
		return nil, err
	}
	if s.sum(data) != r.hash() {
		return nil, errOther
	}
	return data, nil
}

// packError returns err with the path of a pack.
func (s *Store) packError(op string, p *pack, err error) *writer.Error {
	e := writer.NewError(op, s.path(p.path()), writer.NotCommitted, err)
	if inner, ok := errors.AsType[*writer.Error](err); ok {
		e.Err = inner.Err
	}
	return e
}
