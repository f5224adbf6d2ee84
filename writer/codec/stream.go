package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/lopen-dev/lopen/writer/envelope"
)

const (
	// window is how far back an encoder refers, in bytes. It is most of what one takes.
	window = 1 << 20
	// maxWindow is how far back a decoder follows.
	maxWindow = 8 << 20
)

// A compressor is what both libraries have.
type compressor interface {
	io.WriteCloser
	Reset(to io.Writer)
}

// compressors are pools of compressors by their Encoder.
var compressors sync.Map

func (e Encoder) pool() *sync.Pool {
	p, ok := compressors.Load(e)
	if !ok {
		p, _ = compressors.LoadOrStore(e, &sync.Pool{New: func() any {
			z, err := e.compressor()
			if err != nil {
				panic(err) // of the options, which Options.Encoder has checked
			}
			return z
		}})
	}
	return p.(*sync.Pool) //nolint:forcetypeassert // nothing else is stored
}

func (e Encoder) compressor() (compressor, error) {
	if e.Codec == Gzip {
		return gzip.NewWriterLevel(nil, e.level)
	}
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevel(e.level)), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(window))
}

// A Writer compresses a stream.
type Writer struct {
	compressor
	from *sync.Pool
}

// Writer returns a Writer to to. The caller closes it, also after an error. The codec is not
// None.
func (e Encoder) Writer(to io.Writer) *Writer {
	w := &Writer{from: e.pool()}
	w.compressor = w.from.Get().(compressor) //nolint:forcetypeassert // of compressor
	w.Reset(to)
	return w
}

// Close ends the stream. It does not close what the stream is written to. A second Close does
// nothing.
func (w *Writer) Close() error {
	if w.compressor == nil {
		return nil
	}
	err := w.compressor.Close()
	w.Reset(nil) // so that it holds to no longer
	w.from.Put(w.compressor)
	w.compressor = nil
	return err
}

// decoders of streams are pooled: each has a window.
var decoders = map[Codec]*sync.Pool{
	Zstd: {New: func() any {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeBuffersBelow(0))
		if err != nil {
			panic(err) // of the options, which are constant
		}
		return z
	}},
	Gzip: {New: func() any { return new(gzip.Reader) }},
}

// A Reader decompresses a stream. An error of the stream itself wraps
// [envelope.ErrCorrupt]; one of reading it is returned as it is.
type Reader struct {
	from  source
	codec Codec
	z     interface { // nil for None, and after Close
		io.Reader
		Reset(from io.Reader) error
	}
	begun bool
}

// A source remembers its error, to tell it from one of the stream.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// NewReader returns a Reader of from. The caller closes it.
func NewReader(c Codec, from io.Reader) *Reader {
	r := &Reader{from: source{Reader: from}, codec: c}
	switch z := c.decoder().(type) {
	case *zstd.Decoder:
		r.z = z
	case *gzip.Reader:
		r.z = z
	}
	return r
}

func (c Codec) decoder() any {
	if c == None {
		return nil
	}
	return decoders[c].Get()
}

func (r *Reader) Read(p []byte) (n int, err error) {
	if r.z == nil {
		return r.from.Read(p)
	}
	if !r.begun {
		r.begun, err = true, r.z.Reset(&r.from) // of gzip it reads
	}
	if err == nil {
		n, err = r.z.Read(p)
	}
	switch {
	case err == nil || err == io.EOF: //nolint:errorlint // a wrapped io.EOF is an error, as it is for io.Copy
		return n, err
	case r.from.err != nil:
		return n, r.from.err
	}
	return n, fmt.Errorf("%w: %w", envelope.ErrCorrupt, err)
}

// Close gives the decoder back. It does not close what is read, and never fails.
func (r *Reader) Close() error {
	if r.z != nil {
		_ = r.z.Reset(bytes.NewReader(nil)) // so that it holds from no longer
		decoders[r.codec].Put(r.z)
		r.z = nil
		r.from.Reader = bytes.NewReader(nil)
	}
	return nil
}
