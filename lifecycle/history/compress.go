package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxBytes bounds what is read of one snapshot, before and after decompression.
	maxBytes = 1 << 30
	// maxRatio bounds how many bytes come of one byte of a file, beyond the first free
	// ones: so the memory for a file of a stranger follows its size. What compresses
	// better is written with so many bytes behind it that it keeps the bound.
	maxRatio, free = 32, 4 << 20
	// maxWindow is how far back zstd may refer, in bytes: as far as the encoder does.
	maxWindow = 8 << 20
)

// decoded is how many bytes a file of so many bytes may come to.
func decoded(packed int64) int64 { return min(maxBytes, free+maxRatio*packed) }

// encoders are pooled because the tables of one take more than a megabyte.
var encoders = sync.Pool{New: func() any {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxWindow))
	if err != nil {
		panic(err) // of the options, which are constant
	}
	return z
}}

func pack(parts ...[]byte) ([]byte, error) {
	var out bytes.Buffer
	z := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(z)
	z.Reset(&out)
	defer z.Reset(nil) // it must not hold out
	size := int64(0)
	for _, part := range parts {
		size += int64(len(part))
		if _, err := z.Write(part); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if size > maxBytes {
		return nil, fmt.Errorf("it has %d bytes, more than the %d that are read", size, maxBytes)
	}
	if short := (size-free+maxRatio-1)/maxRatio - int64(out.Len()); short > 0 {
		pad(&out, uint32(short))
	}
	return out.Bytes(), nil
}

// pad appends a frame of zeros that every decoder skips.
func pad(out *bytes.Buffer, n uint32) {
	const skippable = 0x184D2A50 // RFC 8878, 3.1.2
	head := binary.LittleEndian.AppendUint32(nil, skippable)
	out.Write(binary.LittleEndian.AppendUint32(head, n))
	out.Write(make([]byte, n))
}

// decoders are pooled: each has a window, and a folder may have many snapshots.
var decoders = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		panic(err) // of the options, which are constant
	}
	return z
}}

// decompress has fn read what comes of a file, with bounded memory whatever the bytes are.
func decompress(packed io.Reader, fn func(in *bufio.Reader) error) error {
	z, ok := decoders.Get().(*zstd.Decoder)
	if !ok {
		return errors.New("no decoder")
	}
	err := z.Reset(packed)
	if err == nil {
		err = fn(bufio.NewReader(z))
	}
	if z.Reset(nil) == nil { // it holds the file no longer
		decoders.Put(z)
	}
	return err
}
