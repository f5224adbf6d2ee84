package bundle

import (
	"bytes"
	"io"
)

// Forge returns the file that has these bytes as its tar: everything around them fits.
func Forge(tar []byte) []byte {
	var out bytes.Buffer
	z, err := newSqueezer(&out)
	if err != nil {
		panic(err)
	}
	if _, err := z.Write(tar); err != nil {
		panic(err)
	}
	if err := z.close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// ForgeTo is Forge for a tar that is written to what it returns. Abort gives it up.
func ForgeTo(to io.Writer) interface {
	io.WriteCloser
	Abort()
} {
	z, err := newSqueezer(to)
	if err != nil {
		panic(err)
	}
	return forged{z}
}

type forged struct{ *squeezer }

func (f forged) Close() error { return f.close() }

func (f forged) Abort() { f.abort() }

// Sealed returns the file whose compressed bytes are these.
func Sealed(compressed []byte) []byte {
	var out bytes.Buffer
	s := sealer{to: &out}
	if _, err := s.Write(compressed); err != nil {
		panic(err)
	}
	if err := s.close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

const (
	SealSize   = sealSize
	MaxEntries = maxEntries
	MaxRatio   = maxRatio
	Free       = free
)
