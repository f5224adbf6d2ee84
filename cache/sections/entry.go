package sections

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// magic begins every entry; the number is the format's version.
const magic = "lopen sections 1\n"

var (
	errEntry   = errors.New("damaged entry")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func sum(src []byte) [32]byte { return sha256.Sum256(src) }

// encodeEntry is magic, then each with its length before it as an unsigned varint
// the parser's revision, the file's name, the SHA-256 of its content and the table
// of its sections, then the CRC-32C of all that, four bytes, big-endian.
func encodeEntry(name string, sum [32]byte, table []byte) []byte {
	b := make([]byte, 0, len(magic)+len(name)+len(table)+128)
	b = append(b, magic...)
	for _, field := range [...][]byte{[]byte(markdown.Revision()), []byte(name), sum[:], table} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeEntry returns the table of an entry. ok says that it is of this file, this
// content and this parser; the error, that it is no whole entry.
func decodeEntry(b []byte, name string, sum [32]byte) (table []byte, ok bool, err error) {
	rest, isEntry := bytes.CutPrefix(b, []byte(magic))
	if !isEntry || len(rest) < crc32.Size {
		return nil, false, errEntry
	}
	body := len(b) - crc32.Size
	if binary.BigEndian.Uint32(b[body:]) != crc32.Checksum(b[:body], castagnoli) {
		return nil, false, errEntry
	}
	rest = rest[:len(rest)-crc32.Size]
	var fields [4][]byte
	for i := range fields {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			return nil, false, errEntry
		}
		fields[i], rest = rest[size:size+int(n)], rest[size+int(n):]
	}
	if len(rest) > 0 {
		return nil, false, errEntry
	}
	ok = string(fields[0]) == markdown.Revision() && string(fields[1]) == name && bytes.Equal(fields[2], sum[:])
	return fields[3], ok, nil
}
