package session

import (
	"bytes"
	"fmt"
	"hash/crc32"
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
