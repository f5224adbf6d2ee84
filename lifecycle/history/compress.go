package history

import (
	"bytes"
	"fmt"

	"github.com/lopen-dev/lopen/writer/codec"
)

const (
	// maxBytes bounds what is read of one snapshot, before and after decompression.
	maxBytes = 1 << 30
	// maxRatio bounds how many bytes come of one byte of a file, beyond the first free
	// ones: so the memory for a file of a stranger follows its size. What compresses
	// better is written with so many bytes behind it that it keeps the bound.
	maxRatio, free = 32, 4 << 20
)

// decoded is how many bytes a file of so many bytes may come to.
func decoded(packed int64) int64 { return min(maxBytes, free+maxRatio*packed) }

// pack returns the bytes of a file and how they are compressed: not at all if they get no
// fewer.
func pack(e codec.Encoder, parts ...[]byte) ([]byte, codec.Codec, error) {
	size := int64(0)
	for _, part := range parts {
		size += int64(len(part))
	}
	if size > maxBytes {
		return nil, "", fmt.Errorf("it has %d bytes, more than the %d that are read", size, maxBytes)
	}
	var out bytes.Buffer
	if e.Codec != codec.None {
		z := e.Writer(&out)
		for _, part := range parts {
			_, _ = z.Write(part) // a bytes.Buffer does not fail
		}
		_ = z.Close()
		if short := (size-free+maxRatio-1)/maxRatio - int64(out.Len()); short > 0 {
			out.Write(e.Codec.Pad(int(short)))
		}
	}
	if n := int64(out.Len()); n == 0 || n >= size {
		return bytes.Join(parts, nil), codec.None, nil
	}
	return out.Bytes(), e.Codec, nil
}
