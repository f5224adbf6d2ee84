package journal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A compressed segment is a sequence of pairs: a mark and a frame of whole lines. The mark is
// a part that is skipped, so that every tool for the codec reads the file:
//
//	the codec's lead, which has the length of the rest,
//	length of the frame, length of its content,
//	CRC-32C of the frame, CRC-32C of all this, zeros, the codec's tail
//
// The numbers are little-endian and have 32 bits. The header line has a pair of its own, in
// the first headSpace bytes. A damaged frame costs only its own lines, because the reader
// finds the next mark by its checksum.
const (
	markData = 16 // bytes of a mark behind its lead, without the zeros and the tail
	// frameSize is the least number of bytes of lines in a frame, except in the last one.
	frameSize = 128 << 10
	// maxContent bounds the decompressed size of a frame, in bytes: its last line may be long.
	maxContent = frameSize + maxLine
	// maxRatio bounds the bytes that one byte of a file decompresses to, so that the cost of
	// a foreign file is limited by its size. A frame that compresses better gets zeros after
	// its mark, or is padded itself.
	maxRatio = codec.FrameRatio
	// headSpace is the size of the header's pair, in bytes. It is fixed because the header is
	// written last.
	headSpace = 1 << 10
)

// A packer writes a compressed segment.
type packer struct {
	to  writer.File
	by  codec.Encoder
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
	pair := pair(p.by, p.buf, 0)
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
func pair(by codec.Encoder, content []byte, least int) []byte {
	frame, tail := by.Frame(content), by.Codec.Tail()
	zeros := max(max(least, (len(content)+maxRatio-1)/maxRatio)-by.Codec.LeadSize()-markData-len(tail)-len(frame), 0)
	out := by.Codec.Lead(markData + zeros)
	for _, n := range []int{len(frame), len(content), int(envelope.Sum(frame))} {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	out = append(envelope.LittleEndian.Append(out), make([]byte, zeros)...)
	return slices.Concat(out, tail, frame)
}

// An unpacker decompresses a segment. Damaged bytes become one line of as many question
// marks, so that they appear as a hole. Its only errors are those of reading the file.
type unpacker struct {
	codec   codec.Codec
	in      *bufio.Reader
	frame   bytes.Buffer
	buf     []byte // the content of a frame
	content []byte // the part of buf that is not read yet
	damaged int64  // number of damaged bytes that are not read yet
	open    bool   // the line of question marks has no line feed yet
	err     error
}

func newUnpacker(c codec.Codec, in io.Reader, size int64) *unpacker {
	return &unpacker{codec: c, in: ahead(in, size+1)}
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
	markSize := u.codec.LeadSize() + markData
	head, err := u.in.Peek(markSize)
	if len(head) == 0 || err != nil && !errors.Is(err, io.EOF) {
		u.err = err
		return
	}
	between, packed, size, crc, ok := readMark(u.codec, head)
	if !ok {
		u.skip()
		return
	}
	_, _ = u.in.Discard(markSize)
	u.frame.Reset()
	n, err := io.CopyN(&u.frame, u.in, between+packed)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = err
		return
	}
	u.damaged = int64(markSize) + n
	if err == nil && envelope.Sum(u.frame.Bytes()[between:]) == crc {
		u.buf = slices.Grow(u.buf[:0], int(size))
		if u.buf, err = codec.Decode(u.codec, u.frame.Bytes()[between:], u.buf, int(size)); err == nil {
			u.content, u.damaged = u.buf, 0
		}
	}
}

// readMark decodes the mark before a frame: the number of bytes between them, the length of
// the frame, the length of its content and its checksum. ok is false if head is no mark, or if
// the frame would take more memory than any frame of ours.
func readMark(c codec.Codec, head []byte) (between, packed, size int64, crc uint32, ok bool) {
	lead := c.LeadSize()
	rest, is := c.ReadLead(head)
	if _, bad := envelope.LittleEndian.Open(head); bad != nil || len(head) < lead+markData || !is || rest < markData {
		return 0, 0, 0, 0, false
	}
	number := func(i int) uint32 { return binary.LittleEndian.Uint32(head[lead+4*i:]) }
	packed, size, crc = int64(number(0)), int64(number(1)), number(2)
	between = int64(rest - markData + len(c.Tail()))
	all := int64(len(head)) + between + packed
	if between > maxContent || size > maxContent || packed > 2*maxContent || size > maxRatio*all {
		return 0, 0, 0, 0, false
	}
	return between, packed, size, crc, true
}

// skip skips at least one byte, and all buffered bytes before a possible mark.
func (u *unpacker) skip() {
	have, _ := u.in.Peek(max(u.in.Buffered(), 1))
	begin := u.codec.LeadMark()
	n := bytes.Index(have[1:], begin)
	if n++; n == 0 {
		n = max(len(have)-len(begin)+1, 1) // the last bytes may be the begin of a mark
	}
	_, _ = u.in.Discard(n)
	u.damaged = int64(n)
}
