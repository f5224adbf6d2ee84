package blob

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

// chunk is the size of one read or write, in bytes.
const chunk = 64 << 10

// Open opens the blob of h for reading. A content in a pack is read and verified by Open
// itself. A blob with its own file is hashed as it is read, and the reader returns the
// last bytes only if the hash matches: a caller that reached io.EOF has the content, and
// one that got an error has an unverified beginning. For a damaged blob the error of Open
// or of the reader has class corrupt. So it is when the blob is not found and may be in a
// pack whose index is damaged. The reader is for one goroutine at a time, and may be
// closed early.
//
// For a missing blob the error is fs.ErrNotExist. If its file is a symlink or anything
// else that is not regular, the class is invalid. Open needs no [Hold] for a blob that a
// durable manifest names.
func (s *Store) Open(h Hash) (io.ReadCloser, error) {
	return s.OpenSized(h, anySize)
}

// anySize is the size of a content of which no size is known.
const anySize = -1

// OpenSized is Open for a content of which the caller knows the size in bytes. A blob of another
// size is damaged, which is found before its content is read.
func (s *Store) OpenSized(h Hash, size int64) (io.ReadCloser, error) {
	data, r, err := s.open("read blob", h, size)
	switch {
	case err != nil:
		return nil, err // not r: a nil *reader in an interface is not nil
	case r == nil:
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	return r, nil
}

// open returns the content of h, or a reader if h has a file of its own.
func (s *Store) open(op string, h Hash, size int64) (data []byte, r *reader, err error) {
	err = s.find(op, h, func() (err error) {
		data, _, err = s.fromPack(op, h, nil)
		if err == nil && size != anySize && int64(len(data)) != size {
			data, err = nil, otherSize(int64(len(data)), size)
		}
		return err
	}, func() (err error) {
		r, err = s.openLoose(op, h, size)
		return err
	})
	return data, r, err
}

// openLoose opens the blob of h that has its own file. Where there are several, since a damaged
// one was stored again with another codec, it opens an intact one. The error does not name h.
func (s *Store) openLoose(op string, h Hash, size int64) (r *reader, err error) {
	err = fs.ErrNotExist
	for _, c := range codec.All {
		next, oerr := s.openFile(op, h, c, size)
		switch {
		case oerr == nil && r != nil && r.verify(nil) == nil:
			_ = next.Close()
			return s.openFile(op, h, r.codec, size)
		case oerr == nil:
			r = next
		case errors.Is(err, fs.ErrNotExist):
			err = oerr
		}
	}
	if r != nil {
		return r, nil
	}
	return nil, err
}

// openFile opens the blob of h in the file that it has with a codec.
func (s *Store) openFile(op string, h Hash, c codec.Codec, want int64) (*reader, error) {
	f, info, err := writer.OpenRegular(s.dir, op, h.file(c), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	content, size, err := codec.Open(c, f, info.Size())
	if err == nil && want != anySize && size != want {
		err = errors.Join(otherSize(size, want), content.Close())
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return &reader{s: s, op: op, h: h, f: f, codec: c, content: content, size: size, left: size, br: bufio.NewReaderSize(content, int(min(chunk, size+1))), sum: s.NewHash()}, nil
}

// Read returns the content of h, verified. If it has more than limit bytes, the error has
// class invalid. The other errors are those of [Store.Open] and its reader.
func (s *Store) Read(h Hash, limit int64) ([]byte, error) {
	const op = "read blob"
	data, r, err := s.open(op, h, anySize)
	if err != nil {
		return nil, err
	}
	size := int64(len(data))
	if r != nil {
		defer r.Close()
		size = r.size
	}
	if size > limit {
		return nil, s.failed(op, h, writer.NotCommitted, &writer.Error{Class: writer.ClassInvalid, Err: fmt.Errorf("it has %d bytes, more than the %d that are read", size, limit)})
	}
	if r == nil {
		return data, nil
	}
	buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	n, err := buf.ReadFrom(io.LimitReader(r, size+1))
	if err == nil && n > size {
		return nil, s.failed(op, h, writer.NotCommitted, errGrows)
	}
	return buf.Bytes(), err
}

// Verify reads the whole blob of h and returns nil if it has that hash. The errors are
// those of [Store.Open] and its reader. It needs one buffer of memory for any size.
func (s *Store) Verify(h Hash) error { return s.VerifySized(context.Background(), h, anySize) }

// VerifySized is Verify for a content of which the caller knows the size in bytes, or -1. It
// returns the error of ctx when that ends.
func (s *Store) VerifySized(ctx context.Context, h Hash, size int64) error {
	_, r, err := s.open("verify blob", h, size)
	if err != nil || r == nil {
		return err
	}
	return r.verify(ctx.Err)
}

// verifyLoose is Verify for a blob with its own file. ended, unless nil, ends it with an error.
func (s *Store) verifyLoose(op string, h Hash, size int64, ended func() error) error {
	r, err := s.openLoose(op, h, size)
	if err != nil {
		return err
	}
	return r.verify(ended)
}

func otherSize(has, want int64) error {
	return damaged(fmt.Errorf("its content is damaged: it has %d bytes, and not %d", has, want))
}

// errGrows means that a blob has more than it had when it was opened.
var errGrows = damaged(errors.New("it grows"))

// An endable reader reads until a function returns an error.
type endable struct {
	io.Reader
	ended func() error // nil never ends it
}

func (r endable) Read(p []byte) (int, error) {
	if r.ended != nil {
		if err := r.ended(); err != nil {
			return 0, err
		}
	}
	return r.Reader.Read(p)
}

// reader hashes the bytes that it returns. It reads one byte ahead, so that it can check
// the hash before it returns the last bytes.
type reader struct {
	s    *Store
	op   string // the operation that errors name
	h    Hash
	f    writer.File
	size int64 // of the content when the file was opened
	left int64 // bytes of it that were not read
	br   *bufio.Reader
	sum  hash.Hash
	err  error // sticky: what every later Read returns

	codec   codec.Codec
	content io.ReadCloser // decompresses f
}

// verify reads to the end and closes. ended, unless nil, ends it with an error.
func (r *reader) verify(ended func() error) error {
	_, err := io.Copy(io.Discard, endable{r, ended})
	_ = r.Close() // nothing was written, so its error does not matter
	return err
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
	if r.left -= int64(n); err == nil {
		_, err = r.br.Peek(1)
	}
	switch {
	case r.left < 0, r.left == 0 && err == nil:
		r.err, n = r.s.failedAt(r.op, r.h.file(r.codec), r.h, writer.NotCommitted, errGrows), 0
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		r.err = r.s.failedAt(r.op, r.h.file(r.codec), r.h, writer.NotCommitted, err)
	case Hash(r.sum.Sum(nil)) != r.h:
		r.err, n = r.s.failedAt(r.op, r.h.file(r.codec), r.h, writer.NotCommitted, errOther), 0
	default:
		r.err = io.EOF
	}
	return n, r.err
}

// Close closes the file. Its error does not concern what was read.
func (r *reader) Close() error {
	if err := errors.Join(r.content.Close(), r.f.Close()); err != nil {
		return r.s.failedAt("close blob", r.h.file(r.codec), r.h, writer.NotCommitted, err)
	}
	return nil
}
