package bundle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// A squeezer compresses. What compresses too well it pads with frames of zeros that decoders
// skip, so that a reader can bound what comes of a file by its length.
type squeezer struct {
	z   *zstd.Encoder
	out *sealer
	in  int64
}

// The bytes that a squeezer writes at once, before it looks at the ratio.
const squeezeStep = 1 << 20

func newSqueezer(to io.Writer) (*squeezer, error) {
	out := &sealer{to: to}
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(1<<20), zstd.WithConcurrentBlocks(true))
	if err != nil {
		return nil, err
	}
	return &squeezer{z: z, out: out}, nil
}

func (s *squeezer) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var m int
		m, err = s.z.Write(p[:min(len(p), squeezeStep)])
		n, p, s.in = n+m, p[m:], s.in+int64(m)
		if err == nil && s.short() > 0 {
			err = s.pad()
		}
	}
	return n, err
}

// short is how many bytes of the file lack for what was written. The other half of what is
// free is for what the decoder gives before it has read the padding.
func (s *squeezer) short() int64 {
	return (s.in-free/2+maxRatio-1)/maxRatio - s.out.n.Load()
}

// pad ends the frame and writes one of zeros behind it, if it is still too short then: the
// encoder works behind.
func (s *squeezer) pad() error {
	if err := s.z.Close(); err != nil {
		return err
	}
	if n := s.short(); n > 0 {
		frame := binary.LittleEndian.AppendUint32(nil, skippable)
		frame = binary.LittleEndian.AppendUint32(frame, uint32(n))
		if _, err := s.out.Write(append(frame, make([]byte, n)...)); err != nil {
			return err
		}
	}
	s.z.Reset(s.out)
	return nil
}

func (s *squeezer) close() error {
	if err := s.z.Close(); err != nil {
		return err
	}
	return s.out.close()
}

// abort ends the goroutines of the encoder.
func (s *squeezer) abort() {
	s.out.stopped.Store(true)
	s.z.Reset(nil)
}

// A stretcher decompresses, with bounded memory, and never more than the bytes that it has
// read allow. While one piece is taken the next one is decompressed, in a goroutine that ends
// with the piece: who gives a stretcher up has nothing to close.
type stretcher struct {
	in  *unsealer     // Owned by who fills.
	z   *zstd.Decoder // Owned by who fills.
	out int64         // Owned by who fills.

	next   chan piece // what is being filled
	cur    piece
	left   []byte // of cur, what was not taken
	spare  []byte
	err    error // of the last Read
	broken bool  // reading failed
}

// A piece is what was decompressed at once.
type piece struct {
	room   []byte
	n      int
	err    error // after the n bytes
	broken bool
}

// ahead is the size of a piece in bytes. There are two of them.
const ahead = 256 << 10

func newStretcher(from io.Reader) (*stretcher, error) {
	in := &unsealer{from: from}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	s := &stretcher{in: in, z: z, next: make(chan piece, 1), spare: make([]byte, ahead)}
	go s.fill(make([]byte, ahead))
	return s, nil
}

// fill decompresses a piece.
func (s *stretcher) fill(room []byte) {
	p := piece{room: room}
	for p.n < len(room) && p.err == nil {
		var n int
		n, p.err = s.z.Read(room[p.n:])
		s.out += int64(n)
		if s.out > free+maxRatio*s.in.n {
			p.err = fmt.Errorf("%d of its bytes stand for more than %d: a bomb", s.in.n, free+maxRatio*s.in.n)
			break
		}
		p.n += n
	}
	if p.err != nil && s.in.fail != nil && s.in.fail != io.EOF { //nolint:errorlint // it is the end, or what it says
		p.err = s.in.fail // the decoder returns others for it
	}
	p.broken = s.in.broken()
	s.next <- p
}

func (s *stretcher) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		if s.cur.err != nil {
			s.err, s.broken = s.cur.err, s.cur.broken
			return 0, s.err
		}
		s.cur = <-s.next
		s.left = s.cur.room[:s.cur.n]
		if s.cur.err == nil {
			go s.fill(s.spare)
			s.spare = s.cur.room // which is taken before the next piece is
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// errEnd is io.EOF where more must come.
var errEnd = errors.New("it ends too early")

// full fills p.
func (s *stretcher) full(p []byte) error {
	_, err := io.ReadFull(s, p)
	switch {
	case err == nil:
		return nil
	case errors.Is(s.err, io.EOF):
		return errEnd
	}
	return s.err
}
