package codec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/lopen-dev/lopen/writer/envelope"
)

const (
	// Ratio bounds how many bytes come of one byte of a file, beyond the first free ones.
	Ratio = 256
	free  = 1 << 20

	sizeBytes = 12 // the data of a foot: the size of the content, and the foot's checksum
	chunk     = 64 << 10
)

// foot returns what a file with a content of so many bytes ends with.
func (c Codec) foot(size int64) []byte {
	foot := binary.LittleEndian.AppendUint64(c.Lead(sizeBytes), uint64(size))
	return append(envelope.LittleEndian.Append(foot), c.Tail()...)
}

// A File compresses a content of unknown size into a file, from its begin to its end. It is
// for one goroutine.
type File struct {
	codec Codec
	to    counter
	size  int64 // of the content
	buf   *bufio.Writer
	z     *Writer
}

// A counter counts what it has written.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// Create returns a File that is written to to. The caller calls End or Discard. The codec is
// not None.
func (e Encoder) Create(to io.Writer) *File {
	f := &File{codec: e.Codec, to: counter{Writer: to}}
	f.buf = bufio.NewWriterSize(&f.to, chunk)
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
func (f *File) Discard() {
	f.to.Writer = io.Discard
	_ = f.z.Close()
}

// End completes the file. It returns the size of the content and that of the file, in bytes.
func (f *File) End() (size, packed int64, err error) {
	err = f.z.Close()
	if err == nil {
		err = f.buf.Flush()
	}
	foot := f.codec.foot(f.size)
	for err == nil && f.size > decoded(f.to.n+int64(len(foot))) {
		_, err = f.to.Write(f.codec.Pad(int(min((f.size-free+Ratio-1)/Ratio-f.to.n, 1<<20))))
	}
	if err == nil {
		_, err = f.to.Write(foot)
	}
	return f.size, f.to.n, err
}

// decoded is how many bytes a file of so many bytes may come to.
func decoded(packed int64) int64 { return free + Ratio*packed }

// Size returns the size in bytes of the content of a file, which has length bytes itself, as
// its foot says. An error wraps [envelope.ErrCorrupt] unless reading failed: if there is no
// foot, and if the size is more than what may come of such a file.
func Size(c Codec, f io.ReaderAt, length int64) (int64, error) {
	if c == None {
		return length, nil
	}
	foot := make([]byte, len(c.foot(0)))
	if length < int64(len(foot)) {
		return 0, fmt.Errorf("%w: it is shorter than its end", envelope.ErrCorrupt)
	}
	if n, err := f.ReadAt(foot, length-int64(len(foot))); n < len(foot) {
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		return 0, fmt.Errorf("%w: it became shorter", envelope.ErrCorrupt)
	}
	size := int64(binary.LittleEndian.Uint64(foot[c.LeadSize():]))
	if string(c.foot(size)) != string(foot) || size < 0 {
		return 0, fmt.Errorf("%w: it does not end as a compressed file does", envelope.ErrCorrupt)
	}
	if limit := decoded(length); size > limit {
		return 0, fmt.Errorf("%w: %d bytes stand for %d, more than the %d that are read of so many", envelope.ErrCorrupt, length, size, limit)
	}
	return size, nil
}

// Open returns a reader of a file's content and its size. If the file is compressed, what is
// read has exactly that many bytes, or ends with an error that wraps [envelope.ErrCorrupt]. The caller closes the reader,
// which does not close f. The errors are those of [Size].
func Open(c Codec, f io.ReaderAt, length int64) (io.ReadCloser, int64, error) {
	size, err := Size(c, f, length)
	if err != nil {
		return nil, 0, err
	}
	if c == None { // to its end, which may be another one by then: only the caller knows
		return io.NopCloser(io.NewSectionReader(f, 0, math.MaxInt64)), size, nil
	}
	whole := io.NewSectionReader(f, 0, length)
	return &content{Reader: NewReader(c, bufio.NewReaderSize(whole, chunk)), left: size}, size, nil
}

// A content ends after as many bytes as the foot says.
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
		return 0, fmt.Errorf("%w: there is more in it than its end says", envelope.ErrCorrupt)
	case err == io.EOF && int64(n) < r.left: //nolint:errorlint // as in Reader.Read
		return n, fmt.Errorf("%w: it ends %d bytes too early", envelope.ErrCorrupt, r.left-int64(n))
	}
	r.left -= int64(n)
	return n, err
}
