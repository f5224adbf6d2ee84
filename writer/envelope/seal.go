package envelope

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
)

var (
	// ErrCorrupt is wrapped when bytes are not what was written: cut off, changed, or
	// against a rule of what they stand for.
	ErrCorrupt = errors.New("damaged")
	// ErrFutureVersion is wrapped when a newer version wrote them.
	ErrFutureVersion = errors.New("written by a newer version")
)

// A Seal is the way in which a checksum ends the bytes that it is of.
type Seal uint8

// The seals. The first two close a JSON object that lacks its brace, and end the line.
const (
	Checksum     Seal = iota // ,"checksum":"crc32c:0123abcd"}
	CRC                      // ,"crc":"0123abcd"}
	BigEndian                // four bytes
	LittleEndian             // four bytes
)

// Digits is how many hexadecimal digits a checksum has, and Ending what follows them in
// a JSON object.
const (
	Digits = 2 * crc32.Size
	Ending = "\"}\n"
)

var keys = [...]string{Checksum: `,"checksum":"crc32c:`, CRC: `,"crc":"`}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errChecksum = fmt.Errorf("its checksum does not fit: %w", ErrCorrupt)

// Sum is the CRC-32C of bytes that stand one after another.
func Sum(parts ...[]byte) (sum uint32) {
	for _, p := range parts {
		sum = Extend(sum, p)
	}
	return sum
}

// Extend is the Sum of the bytes that sum is of, and of p behind them.
func Extend(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }

// Append appends the checksum of b to b.
func (s Seal) Append(b []byte) []byte { return s.append(b, Sum(b)) }

func (s Seal) append(b []byte, sum uint32) []byte {
	switch s {
	case BigEndian:
		return binary.BigEndian.AppendUint32(b, sum)
	case LittleEndian:
		return binary.LittleEndian.AppendUint32(b, sum)
	}
	number := binary.BigEndian.AppendUint32(make([]byte, 0, crc32.Size), sum)
	return append(hex.AppendEncode(append(b, keys[s]...), number), Ending...)
}

// length is how many bytes the seal has.
func (s Seal) length() int {
	if s == BigEndian || s == LittleEndian {
		return crc32.Size
	}
	return len(keys[s]) + Digits + len(Ending)
}

// Open returns what is sealed, a part of b. The error wraps [ErrCorrupt].
func (s Seal) Open(b []byte) ([]byte, error) {
	end := len(b) - s.length()
	if end < 0 {
		return nil, errChecksum
	}
	if seal := s.append(make([]byte, 0, 64), Sum(b[:end])); !bytes.Equal(b[end:], seal) {
		return nil, errChecksum
	}
	return b[:end], nil
}
