package codec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

const (
	// Ratio bounds how many bytes come of one byte of a file, beyond the first free ones.
	Ratio = 256
	free  = 1 << 20

	sizeBytes = 12 // the data of a head: the size of the content, and the head's checksum
	chunk     = 64 << 10
)

// head returns what a file with a content of so many bytes begins with.
func (c Codec) head(size int64) []byte {
	head := binary.LittleEndian.AppendUint64(c.Lead(sizeBytes), uint64(size))
	return append(envelope.LittleEndian.Append(head), c.Tail()...)
}

// A File compresses a content of unknown size into a file. It is for one goroutine.
type File struct {
	codec Codec
	to    writer.File
	at    int64 // where the next bytes go
	size  int64 // of the content
	buf   *bufio.Writer
	z     *Writer
}

// A place writes behind what a File has written.
type place struct{ f *File }

func (p place) Write(b []byte) (int, error) {
	n, err := p.f.to.WriteAt(b, p.f.at)
	p.f.at += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Create returns a File in to, which is empty. The caller calls End or Discard, and then
// syncs and closes to. The codec is not None.
func (e Encoder) Create(to writer.File) *File {
	f := &File{codec: e.Codec, to: to, at: int64(len(e.Codec.head(0)))}
	f.buf = bufio.NewWriterSize(place{f}, chunk)
	f.z = e.Writer(f.buf)
	return f
}

// Write adds to the content.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.z.Write(p)
	f.size += int64(n)
	return n, err
}

// Discard ends a File that is not wanted, or that failed. After End it does nothing.
func (f *File) Discard() { _ = f.z.Close() }

// End completes the file. It returns the size of the content and that of the file, in bytes.
func (f *File) End() (size, packed int64, err error) {
	err = f.z.Close()
	if err == nil {
		err = f.buf.Flush()
	}
	for err == nil && f.size > decoded(f.at) {
		_, err = place{f}.Write(f.codec.Pad(int(min((f.size-free+Ratio-1)/Ratio-f.at, 1<<20))))
	}
	if err == nil {
		end := f.at
		f.at = 0
		_, err = place{f}.Write(f.codec.head(f.size))
		f.at = end
	}
	return f.size, f.at, err
}

// decoded is how many bytes a file of so many bytes may come to.
func decoded(packed int64) int64 { return free + Ratio*packed }

// Size returns the size in bytes of the content of a file, which has length bytes itself, as
// its head says. An error wraps [envelope.ErrCorrupt] unless reading failed: if there is no
// head, and if the size is more than what may come of such a file.
func Size(c Codec, f io.ReaderAt, length int64) (int64, error) {
	if c == None {
		return length, nil
	}
	head := make([]byte, len(c.head(0)))
	if n, err := f.ReadAt(head, 0); n < len(head) {
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		return 0, fmt.Errorf("%w: it ends within its head", envelope.ErrCorrupt)
	}
	size := int64(binary.LittleEndian.Uint64(head[c.LeadSize():]))
	if string(c.head(size)) != string(head) || size < 0 {
		return 0, fmt.Errorf("%w: it does not begin as a compressed file does", envelope.ErrCorrupt)
	}
	if limit := decoded(length); size > limit {
		return 0, fmt.Errorf("%w: %d bytes stand for %d, more than the %d that are read of so many", envelope.ErrCorrupt, length, size, limit)
	}
	return size, nil
}

// Open returns a reader of a file's content and its size. What is read has exactly that many
// bytes, or ends with an error that wraps [envelope.ErrCorrupt]. The caller closes the reader,
// which does not close f. The errors are those of [Size].
func Open(c Codec, f io.ReaderAt, length int64) (io.ReadCloser, int64, error) {
	size, err := Size(c, f, length)
	if err != nil {
		return nil, 0, err
	}
	whole := io.NewSectionReader(f, 0, length)
	if c == None {
		return io.NopCloser(whole), size, nil
	}
	return &content{Reader: NewReader(c, bufio.NewReaderSize(whole, chunk)), left: size}, size, nil
}

// A content ends after as many bytes as the head says.
type content struct {
	*Reader
	left int64
}

func (r *content) Read(p []byte) (int, error) {
	if r.left == 0 { // is there more?
		p = make([]byte, 1)
	}
	n, err := r.Reader.Read(p[:min(int64(len(p)), max(r.left, 1))])
	switch {
	case int64(n) > r.left:
		return 0, fmt.Errorf("%w: there is more in it than its head says", envelope.ErrCorrupt)
	case err == io.EOF && int64(n) < r.left: //nolint:errorlint // as in Reader.Read
		return n, fmt.Errorf("%w: it ends %d bytes too early", envelope.ErrCorrupt, r.left-int64(n))
	}
	r.left -= int64(n)
	return n, err
}
