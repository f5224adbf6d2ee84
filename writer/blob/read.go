package blob

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"

	"github.com/lopen-dev/lopen/writer"
)

// chunk is how many bytes are read or written at once.
const chunk = 64 << 10

// Open opens the blob of h for reading. The bytes are hashed as they are read,
// and the last ones are handed out only when the hash fits: who has read to io.EOF
// has the content, and who got an error has no more than a beginning that nothing
// vouches for. The reader's error has class corrupt for a damaged blob. It is for
// one goroutine at a time; closing it early is fine.
//
// A missing blob is an fs.ErrNotExist; anything but a regular file in its place,
// a symlink too, has class invalid. Anything may call Open, without a [Hold] for
// what a durable manifest names.
func (s *Store) Open(h Hash) (io.ReadCloser, error) {
	r, err := s.open("read blob", h)
	if err != nil {
		return nil, err // not r: a nil *reader is no nil interface
	}
	return r, nil
}

func (s *Store) open(op string, h Hash) (*reader, error) {
	f, info, err := writer.OpenRegular(s.dir, op, h.name(), os.O_RDONLY)
	if err != nil {
		return nil, s.failed(op, h, writer.NotCommitted, err)
	}
	return &reader{s: s, op: op, h: h, f: f, br: bufio.NewReaderSize(f, int(min(chunk, info.Size()+1))), sum: sha256.New()}, nil
}

// Verify reads the whole blob of h and returns nil if it has that hash. The
// errors are those of [Store.Open] and its reader. It needs the memory of one
// buffer, whatever the size.
func (s *Store) Verify(h Hash) error { return s.verify("verify blob", h) }

func (s *Store) verify(op string, h Hash) error {
	r, err := s.open(op, h)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	_ = r.Close() // nothing was written: its failure takes nothing back
	return err
}

// reader hashes what it hands out. It looks one byte ahead, so that it knows the
// end before it hands out what comes before it.
type reader struct {
	s   *Store
	op  string // what errors say was being done
	h   Hash
	f   writer.File
	br  *bufio.Reader
	sum hash.Hash
	err error // what every further Read returns
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.br.Read(p)
	r.sum.Write(p[:n])
	if err == nil {
		_, err = r.br.Peek(1)
	}
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		r.err = r.s.failed(r.op, r.h, writer.NotCommitted, err)
	case Hash(r.sum.Sum(nil)) != r.h:
		e := r.s.failed(r.op, r.h, writer.NotCommitted, errors.New("its content is damaged: it has another hash"))
		e.Class = writer.ClassCorrupt
		r.err, n = e, 0
	default:
		r.err = io.EOF
	}
	return n, r.err
}

// Close closes the file. What was read stays read, whatever it returns.
func (r *reader) Close() error {
	if err := r.f.Close(); err != nil {
		return r.s.failed("close blob", r.h, writer.NotCommitted, err)
	}
	return nil
}
