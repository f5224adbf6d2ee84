package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A compressed segment is a sequence of pairs: a mark and a zstd frame of whole lines.
// The mark is a skippable frame, so that every tool for zstd reads the file:
//
//	magic, length of the rest, length of the frame, length of its content,
//	CRC-32C of the frame, CRC-32C of these 20 bytes, zeros
//
// all of them little-endian numbers of 32 bits. The header line has a pair of its own, in
// the first headSpace bytes. A damaged frame costs only its own lines, because the reader
// finds the next mark by its checksum.
const (
	markMagic = 0x184D2A5B // RFC 8878, 3.1.2
	markSize  = 24
	// frameSize is the least number of bytes of lines in a frame, except in the last one.
	frameSize = 128 << 10
	// maxContent bounds the decompressed size of a frame, in bytes: its last line may be long.
	maxContent = frameSize + maxLine
	// maxRatio bounds the bytes that one byte of a file decompresses to, so that the cost of
	// a foreign file is limited by its size. A frame that compresses better gets zeros after
	// its mark.
	maxRatio = 32
	// headSpace is the size of the header's pair, in bytes. It is fixed because the header is
	// written last.
	headSpace = 1 << 10
)

// A packer writes a compressed segment.
type packer struct {
	to  writer.File
	off int64  // where the next frame goes
	buf []byte // lines of the next frame
	n   int64  // bytes of all lines so far
}

// line adds a line, its line feed included.
func (p *packer) line(line []byte) error {
	p.buf, p.n = append(p.buf, line...), p.n+int64(len(line))
	if len(p.buf) < frameSize {
		return nil
	}
	return p.flush()
}

// flush writes the lines that are buffered as a frame.
func (p *packer) flush() error {
	if len(p.buf) == 0 {
		return nil
	}
	pair := pair(p.buf, 0)
	err := p.write(pair, p.off)
	p.off, p.buf = p.off+int64(len(pair)), p.buf[:0]
	return err
}

func (p *packer) write(pair []byte, off int64) error {
	n, err := p.to.WriteAt(pair, off)
	if err == nil && n < len(pair) {
		err = io.ErrShortWrite
	}
	return err
}

// pair returns a mark and a frame with content, at least least bytes long.
func pair(content []byte, least int) []byte {
	frame := encoder().EncodeAll(content, nil)
	zeros := max(max(least, (len(content)+maxRatio-1)/maxRatio)-markSize-len(frame), 0)
	var out []byte
	for _, n := range []int{markMagic, markSize - 8 + zeros, len(frame), len(content), int(envelope.Sum(frame))} {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	return append(append(envelope.LittleEndian.Append(out), make([]byte, zeros)...), frame...)
}

// An unpacker decompresses a segment. Damaged bytes become one line of as many question
// marks, so that they appear as a hole. Its only errors are those of reading the file.
type unpacker struct {
	in      *bufio.Reader
	frame   bytes.Buffer
	buf     []byte // the content of a frame
	content []byte // the part of buf that is not read yet
	damaged int64  // number of damaged bytes that are not read yet
	open    bool   // the line of question marks has no line feed yet
	err     error
}

func newUnpacker(in io.Reader, size int64) *unpacker {
	return &unpacker{in: ahead(in, size+1)}
}

// A packedFile returns its unpacker's buffer to the pool when it is closed.
type packedFile struct {
	writer.File
	u *unpacker
}

func (f packedFile) Close() error {
	giveBack(f.u.in)
	return f.File.Close()
}

func (u *unpacker) Read(p []byte) (n int, err error) {
	for len(u.content) == 0 && u.damaged == 0 && u.err == nil {
		u.next()
	}
	switch {
	case u.damaged > 0:
		n = int(min(u.damaged, int64(len(p))))
		copy(p, bytes.Repeat([]byte{'?'}, n))
		u.damaged, u.open = u.damaged-int64(n), true
	case u.open && (len(u.content) > 0 || errors.Is(u.err, io.EOF)) && len(p) > 0:
		p[0], u.open = '\n', false
		return 1, nil
	case len(u.content) > 0:
		n = copy(p, u.content)
		u.content = u.content[n:]
	default:
		return 0, u.err
	}
	return n, nil
}

// next reads a frame, or skips bytes up to where a mark may begin.
func (u *unpacker) next() {
	head, err := u.in.Peek(markSize)
	if len(head) == 0 || err != nil && !errors.Is(err, io.EOF) {
		u.err = err
		return
	}
	zeros, packed, size, crc, ok := readMark(head)
	if !ok {
		u.skip()
		return
	}
	_, _ = u.in.Discard(markSize)
	u.frame.Reset()
	n, err := io.CopyN(&u.frame, u.in, zeros+packed)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = err
		return
	}
	u.damaged = markSize + n
	if err == nil && envelope.Sum(u.frame.Bytes()[zeros:]) == crc {
		u.buf = slices.Grow(u.buf[:0], int(size))
		if u.buf, err = decoder().DecodeAll(u.frame.Bytes()[zeros:], u.buf[:0:size]); err == nil && int64(len(u.buf)) == size {
			u.content, u.damaged = u.buf, 0
		}
	}
}

// readMark decodes the mark before a frame: the number of zeros between them, the length of
// the frame, the length of its content and its checksum. ok is false if head is no mark, or if
// the frame would take more memory than any frame of ours.
func readMark(head []byte) (zeros, packed, size int64, crc uint32, ok bool) {
	number := func(i int) uint32 { return binary.LittleEndian.Uint32(head[4*i:]) }
	if _, bad := envelope.LittleEndian.Open(head); bad != nil || len(head) < markSize || number(0) != markMagic {
		return 0, 0, 0, 0, false
	}
	zeros, packed, size, crc = int64(number(1))-markSize+8, int64(number(2)), int64(number(3)), number(4)
	all := markSize + zeros + packed
	if zeros < 0 || zeros > maxContent || size > maxContent || packed > 2*maxContent || size > maxRatio*all {
		return 0, 0, 0, 0, false
	}
	return zeros, packed, size, crc, true
}

// skip skips at least one byte, and all buffered bytes before a possible mark.
func (u *unpacker) skip() {
	have, _ := u.in.Peek(max(u.in.Buffered(), 1))
	n := bytes.Index(have[1:], binary.LittleEndian.AppendUint32(nil, markMagic))
	if n++; n == 0 {
		n = max(len(have)-3, 1) // the last three bytes may be the begin of a mark
	}
	_, _ = u.in.Discard(n)
	u.damaged = int64(n)
}

// encoder is shared by all writers. It encodes one frame at a time.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(4*frameSize), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // of the options, which are constant
	}
	return z
})

// decoder is shared by all readers. DecodeAll may be called concurrently.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(2*maxContent))
	if err != nil {
		panic(err) // of the options, which are constant
	}
	return z
})
