package bundle

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crypt"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// An Entry is a file or an object.
type Entry struct {
	Name   string    // of a file, with slashes; "" for an object
	Object blob.Hash // of an object; zero for a file
	Size   int64
}

// A Reader reads a bundle. After an error it is of no more use: the error stays.
type Reader struct {
	name   string // of what it reads, for messages
	zst    *stretcher
	header Header
	mtime  int64
	left   int64 // of Header.Bytes
	names  names
	lines  []mark // of the manifest, as they must be
	totals totals

	tar   entry // that of the tar
	sum   hash.Hash
	packs int   // that were seen
	cur   Entry // what Next returned
	rest  int64 // of its content
	obj   hash.Hash
	err   error
}

// An entry is one of the tar.
type entry struct {
	name string
	size int64
	left int64 // bytes that were not read
}

// objectHead is what stands before each object of a pack: its hash and its size.
const objectHead = len(blob.Hash{}) + 8

// NewReader reads the begin of a bundle. key is called if it is encrypted. The error has class
// invalid if from is no bundle or the key is another one.
func NewReader(from io.Reader, key func() (*crypt.Key, error)) (*Reader, error) {
	r := &Reader{name: nameOf(from), names: names{}, sum: sha256.New(), obj: sha256.New()}
	if err := r.open(from, key); err != nil {
		return nil, r.fail(err)
	}
	return r, nil
}

func (r *Reader) open(from io.Reader, key func() (*crypt.Key, error)) error {
	in := bufio.NewReaderSize(from, 64<<10)
	head, err := in.Peek(crypt.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if crypt.Encrypted(head) {
		k, err := key()
		if err != nil {
			return err
		}
		plain, err := k.Decrypt(in)
		if err != nil {
			if e, ok := errors.AsType[*writer.Error](err); ok { // it has another name
				err = &writer.Error{Class: e.Class, Err: e.Err}
			}
			return err
		}
		in = bufio.NewReaderSize(plain, 64<<10)
		if head, err = in.Peek(len(zstdMagic)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if !strings.HasPrefix(string(head), zstdMagic) {
		return invalid(errors.New("it is no bundle of lopen"))
	}
	if r.zst, err = newStretcher(in); err != nil {
		return err
	}
	return r.readHeader()
}

// zstdMagic begins a file that is compressed with zstd.
const zstdMagic = "\x28\xb5\x2f\xfd"

// Header returns the first entry of the bundle.
func (r *Reader) Header() *Header { return &r.header }

// Next goes to the next file or object, also if the one before was not read to its end. It
// returns io.EOF only if all that came and the whole file agree with what was written.
func (r *Reader) Next() (Entry, error) {
	if r.err != nil {
		return Entry{}, r.err
	}
	e, end, err := r.next()
	if err != nil {
		return Entry{}, r.fail(err)
	}
	if end {
		r.err = io.EOF
		return Entry{}, io.EOF
	}
	r.cur, r.rest = e, e.Size
	r.obj.Reset()
	return e, nil
}

func (r *Reader) next() (e Entry, end bool, err error) {
	if _, err := io.Copy(io.Discard, reading{r}); err != nil {
		return Entry{}, false, err
	}
	if r.tar.left == 0 {
		if err := r.endEntry(); err != nil {
			return Entry{}, false, err
		}
		if err := r.nextOfTar(); err != nil {
			return Entry{}, false, err
		}
	}
	switch object, isObject := strings.CutPrefix(r.tar.name, objectsDir); {
	case r.tar.name == manifestName:
		return Entry{}, true, r.readManifest()
	case !isObject:
		e = Entry{Name: r.tar.name, Size: r.tar.size}
	case strings.HasSuffix(object, packSuffix):
		e, err = r.nextOfPack()
	default:
		e, err = r.object(object)
	}
	if err == nil && e.Size > r.left {
		err = errors.New("it has more bytes than its header says")
	}
	r.left -= e.Size
	return e, false, err
}

// object is an entry of the tar that is one object.
func (r *Reader) object(hash string) (Entry, error) {
	h, err := blob.ParseHash(hash)
	if err != nil || r.tar.size <= maxSmall {
		return Entry{}, fmt.Errorf("%s is no object of %d bytes", r.tar.name, r.tar.size)
	}
	return Entry{Object: h, Size: r.tar.size}, nil
}

// nextOfPack begins the next object of a pack.
func (r *Reader) nextOfPack() (Entry, error) {
	if r.tar.left == r.tar.size {
		if r.packs++; r.tar.name != packName(r.packs) || r.tar.size > packMax {
			return Entry{}, fmt.Errorf("%s is not pack %d of at most %d bytes", r.tar.name, r.packs, packMax)
		}
	}
	var head [objectHead]byte
	if r.tar.left < int64(len(head)) {
		return Entry{}, fmt.Errorf("%s ends within an object", r.tar.name)
	}
	if err := r.full(head[:]); err != nil {
		return Entry{}, err
	}
	h := blob.Hash(head[:len(blob.Hash{})])
	size := binary.BigEndian.Uint64(head[len(h):])
	if size > maxSmall || int64(size) > r.tar.left {
		return Entry{}, fmt.Errorf("%s: object %s has %d bytes", r.tar.name, h, size)
	}
	return Entry{Object: h, Size: int64(size)}, nil
}

// nextOfTar reads the block of an entry.
func (r *Reader) nextOfTar() error {
	var b block
	if err := r.zst.full(b[:]); err != nil {
		return err
	}
	name, size, mtime, err := b.parse()
	switch {
	case b == block{}:
		return errors.New("it ends without a manifest")
	case err != nil:
		return err
	case len(r.lines) > 0 && mtime != r.mtime:
		return fmt.Errorf("%s is of another time than the rest", name)
	case len(r.lines) >= maxEntries && name != manifestName:
		return fmt.Errorf("it has more than %d entries", maxEntries)
	}
	r.mtime, r.tar = mtime, entry{name, size, size}
	r.sum.Reset()
	return r.names.add(name)
}

// endEntry reads the padding behind an entry of the tar and notes what the manifest must say.
func (r *Reader) endEntry() error {
	if err := r.zeros(padding(r.tar.size)); err != nil {
		return err
	}
	r.lines = append(r.lines, markOf(manifestLine(r.tar.name, r.tar.size, r.sum.Sum(nil))))
	r.totals.Bytes += r.tar.size
	return nil
}

func (r *Reader) zeros(n int64) error {
	p := make([]byte, n)
	if err := r.zst.full(p); err != nil {
		return err
	}
	if strings.Trim(string(p), "\x00") != "" {
		return fmt.Errorf("there is something between %s and the next entry", r.tar.name)
	}
	return nil
}

// Read reads the content of the entry that Next returned. Of an object it returns io.EOF only
// if the content has the hash; a file is compared when the manifest is read.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := reading{r}.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // an error that wraps io.EOF is no end
		return n, r.fail(err)
	}
	return n, err
}

// reading reads the content of the current entry.
type reading struct{ r *Reader }

func (c reading) Read(p []byte) (int, error) {
	r := c.r
	if r.rest == 0 {
		if r.cur.Name == "" && blob.Hash(r.hash().Sum(nil)) != r.cur.Object {
			return 0, fmt.Errorf("the content of object %s has another hash", r.cur.Object)
		}
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.rest)]
	n, err := r.raw(p)
	r.rest -= int64(n)
	if r.cur.Name == "" && r.hash() == r.obj {
		r.obj.Write(p[:n])
	}
	return n, err
}

// hash returns the hash of the object: that of the tar's entry, if the object is all of it.
func (r *Reader) hash() hash.Hash {
	if r.cur.Size == r.tar.size {
		return r.sum
	}
	return r.obj
}

// raw reads of the tar's entry.
func (r *Reader) raw(p []byte) (int, error) {
	n, err := r.zst.Read(p)
	r.tar.left -= int64(n)
	r.sum.Write(p[:n])
	if errors.Is(err, io.EOF) {
		err = errEnd // which is not the end of the content
	}
	return n, err
}

func (r *Reader) full(p []byte) error {
	_, err := io.ReadFull(readerFunc(r.raw), p)
	return err
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (r *Reader) readHeader() error {
	if err := r.nextOfTar(); err != nil {
		return err
	}
	if r.tar.name != headerName || r.tar.size > int64(headerFormat.Max) {
		return errors.New("it does not begin with the header of a bundle")
	}
	text := make([]byte, r.tar.size)
	if err := r.full(text); err != nil {
		return err
	}
	var err error
	if r.header, err = decodeHeader(text); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	r.cur = Entry{Name: headerName}
	if r.left = r.header.Bytes; max(0, r.header.At.Unix()) != r.mtime {
		return errors.New("its header is of another time than the file")
	}
	return nil
}

// readManifest compares the manifest with what came, and the rest of the file with the end
// of a bundle.
func (r *Reader) readManifest() error {
	r.totals.Entries = len(r.lines)
	last, err := totalsFormat.Encode(r.totals)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(r.zst, r.tar.size), maxLine) // which reads no more than this entry
	for i := 0; ; i++ {
		text, err := in.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("its manifest ends or is malformed in line %d: %w", i+1, err)
		}
		if i < len(r.lines) {
			if markOf(text) != r.lines[i] {
				return fmt.Errorf("line %d of its manifest is not that of what came: %q", i+1, text)
			}
			continue
		}
		if string(text) != string(last) {
			return errors.New("the last line of its manifest is not that of what came")
		}
		break
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return errors.New("there is more in its manifest")
	}
	if err := r.zeros(padding(r.tar.size) + 2*blockSize); err != nil {
		return err
	}
	var one [1]byte
	switch n, err := io.ReadFull(r.zst, one[:]); {
	case n > 0:
		return errors.New("there is something behind its end")
	case err != io.EOF:
		return err
	}
	return nil
}

// fail keeps the error, with the name of what is read. What has no class is damage, but for
// an error of the key or of reading.
func (r *Reader) fail(err error) error {
	e := failure("read bundle", r.name, err)
	switch {
	case e.Class != 0, r.zst == nil, r.zst.broken:
	case errors.Is(err, envelope.ErrFutureVersion):
		e.Class = writer.ClassFutureVersion
	default:
		e.Class = writer.ClassCorrupt
	}
	r.err = e
	return e
}

// reserved reports whether a name is the bundle's own.
func reserved(name string) bool {
	return name == headerName || name == manifestName || name == "objects" || strings.HasPrefix(name, objectsDir)
}
