package shelf

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

var (
	errDamaged = errors.New("damaged entry")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// encode is magic, then each field with its length before it as an unsigned
// varint, then the CRC-32C of all that, four bytes, big-endian.
func encode(magic string, fields ...[]byte) []byte {
	size := len(magic) + crc32.Size
	for _, f := range fields {
		size += binary.MaxVarintLen64 + len(f)
	}
	b := append(make([]byte, 0, size), magic...)
	for _, f := range fields {
		b = binary.AppendUvarint(b, uint64(len(f)))
		b = append(b, f...)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decode returns the n fields of what encode made. They are parts of b.
func decode(b []byte, magic string, n int) ([][]byte, error) {
	body := len(b) - crc32.Size
	if body < len(magic) || string(b[:len(magic)]) != magic ||
		binary.BigEndian.Uint32(b[body:]) != crc32.Checksum(b[:body], castagnoli) {
		return nil, errDamaged
	}
	rest := b[len(magic):body]
	fields := make([][]byte, n)
	for i := range fields {
		length, size := binary.Uvarint(rest)
		if size <= 0 || length > uint64(len(rest)-size) {
			return nil, errDamaged
		}
		fields[i], rest = rest[size:size+int(length)], rest[size+int(length):]
	}
	if len(rest) > 0 {
		return nil, errDamaged
	}
	return fields, nil
}
