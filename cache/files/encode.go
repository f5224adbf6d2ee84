package files

import (
	"encoding/binary"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/writer/envelope"
)

// The encoded form is, numbers being varints, signed ones in zigzag, and texts their
// length and their bytes:
//
//	magic, version, At, Stored
//	number of Paths, the paths
//	number of Skipped, of each the path, the index of the reason, and Err
//	number of Files, of each the path and the mode, and but for a folder Size, ModTime,
//	ChangeTime less ModTime, Inode, and the hash of a file or the target of a symlink
//	CRC-32C of all before, little endian
//
// A path is the number of bytes that it shares with the one before in its list, and the
// rest as a text.
const (
	magic   = "lopenfiles"
	version = 1
)

var (
	// reasons and types stand at the numbers that mean them.
	reasons = []Reason{Special, TooLarge, TooDeep, Unreadable, Unstable, Symlinked, Ignored, Nested}
	types   = []fs.FileMode{0, fs.ModeDir, fs.ModeSymlink}
)

// Encode returns the snapshot without its Rules.
func (s *Snapshot) Encode() []byte {
	e := encoder{b: make([]byte, 0, 96*len(s.Files)+256)}
	e.b = binary.AppendUvarint(append(e.b, magic...), version)
	e.b = append(binary.AppendVarint(e.b, s.At.UnixNano()), s.Stored[:]...)
	e.list(len(s.Paths))
	for _, p := range s.Paths {
		e.path(p)
	}
	e.list(len(s.Skipped))
	for _, k := range s.Skipped {
		e.path(k.Path)
		e.b = binary.AppendUvarint(e.b, uint64(slices.Index(reasons, k.Reason)))
		e.text(k.Err)
	}
	e.list(len(s.Files))
	for i := range s.Files {
		f := &s.Files[i]
		e.path(f.Path)
		e.b = binary.AppendUvarint(e.b, modeNumber(f.Mode))
		if f.Mode.IsDir() {
			continue
		}
		e.b = binary.AppendUvarint(e.b, uint64(f.Size))
		e.b = binary.AppendVarint(e.b, f.ModTime)
		e.b = binary.AppendVarint(e.b, f.ChangeTime-f.ModTime)
		e.b = binary.AppendUvarint(e.b, f.Inode)
		if f.Mode.IsRegular() {
			e.b = append(e.b, f.Hash[:]...)
		} else {
			e.text(f.Target)
		}
	}
	return envelope.LittleEndian.Append(e.b)
}

func modeNumber(m fs.FileMode) uint64 {
	return uint64(m.Perm())<<2 | uint64(slices.Index(types, m.Type()))
}

type encoder struct {
	b    []byte
	last string // the path before
}

func (e *encoder) list(n int) {
	e.b, e.last = binary.AppendUvarint(e.b, uint64(n)), ""
}

func (e *encoder) text(s string) { e.b = append(binary.AppendUvarint(e.b, uint64(len(s))), s...) }

func (e *encoder) path(p string) {
	n := 0
	for n < len(p) && n < len(e.last) && p[n] == e.last[n] {
		n++
	}
	e.b = binary.AppendUvarint(e.b, uint64(n))
	e.text(p[n:])
	e.last = p
}
