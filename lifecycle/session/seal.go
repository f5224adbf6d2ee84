package session

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// checksumKey begins what Seal appends.
const checksumKey = `,"checksum":"crc32c:`

// Seal ends a JSON object that lacks its closing brace with a checksum of all bytes
// before it, as its last member.
func Seal(object []byte) []byte { return seal(object, object) }

// seal appends the checksum of some bytes.
func seal(to, of []byte) []byte {
	return fmt.Appendf(to, "%s%08x\"}\n", checksumKey, crc32.Checksum(of, castagnoli))
}

// Sealed says whether data ends in the checksum of the bytes before it.
func Sealed(data []byte) bool {
	i := bytes.LastIndex(data, []byte(checksumKey))
	return i >= 0 && bytes.Equal(data[i:], seal(nil, data[:i]))
}

// checksum compares the last member with the bytes before it.
func checksum(data []byte) error {
	if !Sealed(data) {
		return ErrChecksum
	}
	return nil
}

// sealLen is the length of what ends a file: the checksum with what is around it.
const sealLen = len(checksumKey) + 8 + len("\"}\n")

// CheckSeal reads the content of a state.json or metrics.json to its end, with
// memory for a small piece of it, and compares its checksum. The error wraps
// ErrCorrupt, or is that of reading.
func CheckSeal(r io.Reader) error {
	sum, held := crc32.New(castagnoli), make([]byte, 0, 2*sealPiece)
	for {
		n, err := io.ReadFull(r, held[len(held):min(cap(held), len(held)+sealPiece)])
		held = held[:len(held)+n]
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if keep := len(held) - sealLen; keep > 0 {
			_, _ = sum.Write(held[:keep])
			held = held[:copy(held, held[keep:])]
		}
		if err == nil {
			continue
		}
		if want := fmt.Appendf(nil, "%s%08x\"}\n", checksumKey, sum.Sum32()); !bytes.Equal(held, want) {
			return fmt.Errorf("%w: its checksum does not fit, and it is too large to be looked into", ErrCorrupt)
		}
		return nil
	}
}

// sealPiece is how much is read at a time, in bytes.
const sealPiece = 256 << 10
