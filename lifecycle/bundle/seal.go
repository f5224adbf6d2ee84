package bundle

import (
	"encoding/binary"
	"errors"
	"io"
	"sync/atomic"

	"github.com/lopen-dev/lopen/writer/envelope"
)

// The compressed stream ends with a seal: a frame that decoders skip, with the length of what
// is before it and the CRC-32C of all bytes of the stream before the checksum itself. So it is
// noticed when the file was cut off, when something follows, and when a bit changed that says
// nothing to the decoder.
const (
	skippable = 0x184D2A50 // RFC 8878, 3.1.2; 16 of them
	sealMagic = skippable + 0xE
	sealSize  = 4 + 4 + 8 + 4
)

// seal returns the seal behind n bytes that have this checksum.
func seal(n int64, sum uint32) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, sealSize), sealMagic)
	b = binary.LittleEndian.AppendUint32(b, sealSize-8)
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	return binary.LittleEndian.AppendUint32(b, envelope.Extend(sum, b))
}

// A sealer counts and sums up what is written to it.
type sealer struct {
	to      io.Writer
	n       atomic.Int64 // the encoder writes in a goroutine of its own
	stopped atomic.Bool
	sum     uint32 // Owned by who writes.
}

func (s *sealer) Write(p []byte) (int, error) {
	if s.stopped.Load() {
		return 0, errors.New("it was given up")
	}
	n, err := s.to.Write(p)
	s.n.Add(int64(n))
	s.sum = envelope.Extend(s.sum, p[:n])
	return n, err
}

// close writes the seal.
func (s *sealer) close() error {
	_, err := s.to.Write(seal(s.n.Load(), s.sum))
	return err
}

var errSeal = errors.New("it is cut off or changed: its last bytes do not seal it")

// An unsealer is a reader of all bytes before the seal. It returns io.EOF only when the seal
// fits.
type unsealer struct {
	from io.Reader
	n    int64 // bytes that were read from it
	sum  uint32
	buf  []byte // what was read and not given: at its end may be the seal
	err  error  // of from, io.EOF included
	fail error  // why no more comes
	room [64 << 10]byte
}

func (u *unsealer) Read(p []byte) (int, error) {
	for u.fail == nil {
		if have := len(u.buf) - sealSize; have > 0 {
			n := copy(p, u.buf[:have])
			u.n += int64(n)
			u.sum = envelope.Extend(u.sum, u.buf[:n])
			u.buf = u.buf[n:]
			return n, nil
		}
		u.fill()
	}
	return 0, u.fail
}

// broken reports whether reading failed.
func (u *unsealer) broken() bool { return u.err != nil && !errors.Is(u.err, io.EOF) }

// fill reads more. At the end it looks at the seal.
func (u *unsealer) fill() {
	if u.err != nil {
		u.fail = u.err
		if errors.Is(u.err, io.EOF) && string(u.buf) != string(seal(u.n, u.sum)) {
			u.fail = errSeal
		}
		return
	}
	have := copy(u.room[:], u.buf)
	n, err := u.from.Read(u.room[have:])
	u.buf, u.err = u.room[:have+n], err
}
