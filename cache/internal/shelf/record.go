package shelf

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/lopen-dev/lopen/writer/envelope"
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
	return envelope.BigEndian.Append(b)
}

// decode returns the n fields of what encode made. They are parts of b. The error is
// envelope.ErrCorrupt.
func decode(b []byte, magic string, n int) ([][]byte, error) {
	body, err := envelope.BigEndian.Open(b)
	rest, ok := bytes.CutPrefix(body, []byte(magic))
	if err != nil || !ok {
		return nil, envelope.ErrCorrupt
	}
	fields := make([][]byte, n)
	for i := range fields {
		length, size := binary.Uvarint(rest)
		if size <= 0 || length > uint64(len(rest)-size) {
			return nil, envelope.ErrCorrupt
		}
		fields[i], rest = rest[size:size+int(length)], rest[size+int(length):]
	}
	if len(rest) > 0 {
		return nil, envelope.ErrCorrupt
	}
	return fields, nil
}
