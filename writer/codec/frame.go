package codec

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// MaxFrame bounds the content of a frame, in bytes.
	MaxFrame = 32 << 20
	// FrameRatio bounds how many bytes come of one byte of a frame of gzip: one that
	// compresses better is padded. For zstd the caller has room of its own.
	FrameRatio = 32
)

// framers are the shared encoders of zstd's frames by their level, each of which encodes one
// frame at a time. Their window is that of a frame.
var framers sync.Map

func framer(level int) *zstd.Encoder {
	once := sync.OnceValue(func() *zstd.Encoder {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevel(level)), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(512<<10), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(err) // of the options, which Options.Encoder has checked
		}
		return z
	})
	z, _ := framers.LoadOrStore(level, once)
	return z.(func() *zstd.Encoder)() //nolint:forcetypeassert // nothing else is stored
}

// Frame returns a frame with a content. The codec is not None.
func (e Encoder) Frame(content []byte) []byte {
	if e.Codec == Zstd {
		return framer(e.level).EncodeAll(content, nil)
	}
	var out bytes.Buffer
	w := e.Writer(&out)
	_, _ = w.Write(content) // a bytes.Buffer does not fail
	_ = w.Close()
	out.Write(e.Codec.Pad((len(content)+FrameRatio-1)/FrameRatio - out.Len()))
	return out.Bytes()
}

// unframer is shared by all readers of zstd's frames. DecodeAll may be called concurrently.
var unframer = sync.OnceValue(func() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(MaxFrame))
	if err != nil {
		panic(err) // of the options, which are constant
	}
	return z
})

// Decode decompresses a frame into buf, whose capacity is at least size, and returns the
// content. It fails unless the content has exactly size bytes, and takes no more memory.
func Decode(c Codec, frame, buf []byte, size int) (content []byte, err error) {
	if c == Zstd {
		content, err = unframer().DecodeAll(frame, buf[:0:size])
	} else {
		r := NewReader(c, bytes.NewReader(frame))
		defer r.Close()
		content = buf[:size]
		if _, err = io.ReadFull(r, content); err == nil {
			var more [1]byte
			if n, end := io.ReadFull(r, more[:]); n > 0 || end != io.EOF {
				err = fmt.Errorf("there is more in it, or no end: %w", end)
			}
		}
	}
	if err == nil && len(content) != size {
		err = fmt.Errorf("%d bytes came of it, not %d", len(content), size)
	}
	return content, err
}
