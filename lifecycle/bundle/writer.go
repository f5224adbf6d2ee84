package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crypt"
)

// A Writer writes a bundle. After an error it is of no more use: the error stays. It compresses
// in goroutines, which end with Close, with Abort or with an error.
type Writer struct {
	name     string // of what it writes to, for messages
	age      io.WriteCloser
	zst      *squeezer
	mtime    int64
	left     int64 // of Header.Bytes
	names    names
	manifest spool
	totals   totals
	pack     bytes.Buffer // objects, before they are an entry
	packs    int
	buf      []byte
	sum      hash.Hash
	err      error
}

// NewWriter begins a bundle in to. It is encrypted if there is a key.
func NewWriter(to io.Writer, h Header, key *crypt.Key) (*Writer, error) {
	w := &Writer{name: nameOf(to), mtime: max(0, h.At.Unix()), left: h.Bytes, names: names{}, buf: make([]byte, 256<<10), sum: sha256.New()}
	if w.mtime > maxOctal {
		return nil, w.fail(invalid(fmt.Errorf("its time is %s", h.At)))
	}
	text, err := encodeHeader(h)
	if err != nil {
		return nil, w.fail(invalid(fmt.Errorf("header: %w", err)))
	}
	if key != nil {
		if w.age, err = key.Encrypt(to); err != nil {
			return nil, w.fail(err)
		}
		to = w.age
	}
	if w.zst, err = newSqueezer(to); err != nil {
		return nil, w.fail(err)
	}
	if err := w.manifest.open(); err != nil {
		return nil, w.fail(err)
	}
	if err := w.entry(headerName, int64(len(text)), bytes.NewReader(text)); err != nil {
		return nil, w.fail(err)
	}
	return w, nil
}

// Add adds a file. content must have exactly size bytes. Names are what checkName allows, each
// once.
func (w *Writer) Add(name string, size int64, content io.Reader) error {
	if w.err != nil {
		return w.err
	}
	if err := w.addable(name, size); err != nil {
		return w.fail(invalid(err))
	}
	err := w.flush()
	if err == nil {
		err = w.entry(name, size, content)
	}
	return w.fail(err)
}

func (w *Writer) addable(name string, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	if reserved(name) {
		return fmt.Errorf("entry %q: the name is the bundle's own", name)
	}
	return w.take(size)
}

// take counts the bytes of a file or object.
func (w *Writer) take(size int64) error {
	if size < 0 || size > w.left {
		return fmt.Errorf("it has more bytes than its header says, by %d", size-w.left)
	}
	w.left -= size
	return nil
}

// Object adds an object of size bytes, whose hash is h. open is called before Object returns.
func (w *Writer) Object(h blob.Hash, size int64, open func() (io.ReadCloser, error)) error {
	if w.err != nil {
		return w.err
	}
	if err := w.take(size); err != nil {
		return w.fail(invalid(err))
	}
	content, err := open()
	if err != nil {
		return w.fail(err)
	}
	if size <= maxSmall {
		err = w.small(h, int(size), content)
	} else if err = w.entry(objectsDir+h.String(), size, content); err == nil && blob.Hash(w.sum.Sum(nil)) != h {
		err = otherHash(h)
	}
	if cerr := content.Close(); err == nil {
		err = cerr
	}
	return w.fail(err)
}

// small adds an object to the pack.
func (w *Writer) small(h blob.Hash, size int, content io.Reader) error {
	if w.pack.Len()+objectHead+size > packSize {
		if err := w.flush(); err != nil {
			return err
		}
	}
	data := w.buf[:size]
	if err := readExactly(content, data); err != nil {
		return fmt.Errorf("object %s: %w", h, err)
	}
	if sha256.Sum256(data) != h {
		return otherHash(h)
	}
	w.pack.Write(h[:])
	w.pack.Write(binary.BigEndian.AppendUint64(nil, uint64(size)))
	w.pack.Write(data)
	return nil
}

func otherHash(h blob.Hash) error {
	return &writer.Error{Op: "read", Path: "object " + h.String(), Class: writer.ClassCorrupt, Err: errors.New("its content has another hash")}
}

// flush makes the pack an entry.
func (w *Writer) flush() error {
	if w.pack.Len() == 0 {
		return nil
	}
	w.packs++
	err := w.entry(packName(w.packs), int64(w.pack.Len()), bytes.NewReader(w.pack.Bytes()))
	w.pack.Reset()
	return err
}

func packName(n int) string { return objectsDir + strconv.Itoa(n) + packSuffix }

// entry writes an entry of any name, and its line into the manifest.
func (w *Writer) entry(name string, size int64, content io.Reader) error {
	if err := w.names.add(name); err != nil {
		return invalid(err)
	}
	if w.totals.Entries++; w.totals.Entries > maxEntries {
		return invalid(fmt.Errorf("it has more than %d entries", maxEntries))
	}
	if err := w.file(name, size, content); err != nil {
		return err
	}
	w.totals.Bytes += size
	return w.manifest.add(manifestLine(name, size, w.sum.Sum(nil)))
}

// file writes a file of the tar and leaves its hash in w.sum.
func (w *Writer) file(name string, size int64, content io.Reader) error {
	b, err := newBlock(name, size, w.mtime)
	if err != nil {
		return invalid(err)
	}
	if _, err := w.zst.Write(b[:]); err != nil {
		return err
	}
	w.sum.Reset()
	for left := size; left > 0; {
		p := w.buf[:min(left, int64(len(w.buf)))]
		if n, err := io.ReadFull(content, p); err != nil {
			return fmt.Errorf("entry %s: it ends after %d of %d bytes: %w", name, size-left+int64(n), size, err)
		}
		left -= int64(len(p))
		w.sum.Write(p)
		if _, err := w.zst.Write(p); err != nil {
			return err
		}
	}
	if err := readExactly(content, nil); err != nil {
		return fmt.Errorf("entry %s: %w", name, err)
	}
	_, err = w.zst.Write(make([]byte, padding(size)))
	return err
}

// readExactly fills p, and refuses more.
func readExactly(r io.Reader, p []byte) error {
	if n, err := io.ReadFull(r, p); err != nil {
		return fmt.Errorf("it ends after %d of %d bytes: %w", n, len(p), err)
	}
	var one [1]byte
	switch _, err := io.ReadFull(r, one[:]); {
	case err == nil:
		return errors.New("it has more bytes than were announced")
	case err != io.EOF:
		return err
	}
	return nil
}

// Close writes the manifest and ends the file. It does not close what the Writer writes to,
// nor syncs it.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if err := w.end(); err != nil {
		return w.fail(err)
	}
	w.err = failure("write bundle", w.name, errors.New("it is closed"))
	return nil
}

func (w *Writer) end() error {
	if err := w.flush(); err != nil {
		return err
	}
	last, err := totalsFormat.Encode(w.totals)
	if err != nil {
		return err
	}
	if err := w.manifest.add(last); err != nil {
		return err
	}
	lines, err := w.manifest.reader()
	if err != nil {
		return err
	}
	if err := w.file(manifestName, w.manifest.size, lines); err != nil {
		return err
	}
	if _, err := w.zst.Write(make([]byte, 2*blockSize)); err != nil {
		return err
	}
	if err := w.zst.close(); err != nil || w.age == nil {
		return err
	}
	return w.age.Close()
}

// Abort gives up a Writer that is not closed, and what it has begun to write. After Close, or
// after an error, it does nothing.
func (w *Writer) Abort() { _ = w.fail(errors.New("it was given up")) }

// fail keeps the first error, with the name of what is written.
func (w *Writer) fail(err error) error {
	if err != nil && w.err == nil {
		w.err = failure("write bundle", w.name, err)
		if w.zst != nil {
			w.zst.abort()
		}
	}
	return w.err
}

// A spool keeps the manifest until the end, compressed.
type spool struct {
	out  bytes.Buffer
	z    *zstd.Encoder
	size int64
}

func (s *spool) open() (err error) {
	s.z, err = zstd.NewWriter(&s.out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(64<<10))
	return err
}

func (s *spool) add(text []byte) error {
	s.size += int64(len(text))
	_, err := s.z.Write(text)
	return err
}

func (s *spool) reader() (io.Reader, error) {
	if err := s.z.Close(); err != nil {
		return nil, err
	}
	return zstd.NewReader(&s.out, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeBuffersBelow(0))
}
