package assess

import (
	"encoding/binary"
	"io/fs"
)

// encodeFiles is a sequence of, for each file: path, with its length before it as
// an unsigned varint; mode, size, time of modification, inode and time of change as
// varints; the checksum of the content with its length before it. A leading byte
// tells a snapshot of nothing from no snapshot.
func encodeFiles(all []file) []byte {
	b := []byte{1}
	for _, f := range all {
		b = binary.AppendUvarint(b, uint64(len(f.path)))
		b = append(b, f.path...)
		for _, n := range [...]uint64{uint64(f.mode), uint64(f.id.Size), uint64(f.id.Modified), f.id.Inode, uint64(f.id.Changed), uint64(len(f.sum))} {
			b = binary.AppendUvarint(b, n)
		}
		b = append(b, f.sum...)
	}
	return b
}

// decodeFiles says not ok for what encodeFiles never makes.
func decodeFiles(b []byte) (all []file, ok bool) {
	if len(b) == 0 || b[0] != 1 {
		return nil, false
	}
	bad := false
	number := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			bad, b = true, nil
			return 0
		}
		b = b[size:]
		return n
	}
	text := func() []byte {
		n := number()
		if n > uint64(len(b)) {
			bad, b = true, nil
			return nil
		}
		s := b[:n]
		b = b[n:]
		return s
	}
	for b = b[1:]; len(b) > 0 && !bad; {
		f := file{path: string(text()), mode: fs.FileMode(number())}
		f.id.Size, f.id.Modified, f.id.Inode, f.id.Changed = int64(number()), int64(number()), number(), int64(number())
		f.sum = text()
		all = append(all, f)
	}
	return all, !bad
}
