package files

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// The encoded form is, numbers being varints, signed ones in zigzag, and texts their
// length and their bytes:
//
//	magic, version, At, Stored
//	number of Paths, the paths
//	number of Mounts, the paths
//	number of Unstable, the paths
//	number of Skipped, of each the path, the index of the reason, Err, and State of a repository and of what is too large; of
//	Hidden also 1 for a folder and 2 for what is fixed, added up, Files, Bytes, and Hash
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
	reasons = []Reason{Special, TooLarge, TooDeep, Unreadable, Unstable, Symlinked, Ignored, Nested, Mounted, Hidden}
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
	e.list(len(s.Mounts))
	for _, p := range s.Mounts {
		e.path(p)
	}
	e.list(len(s.Unstable))
	for _, p := range s.Unstable {
		e.path(p)
	}
	e.list(len(s.Skipped))
	for _, k := range s.Skipped {
		e.path(k.Path)
		e.b = binary.AppendUvarint(e.b, uint64(slices.Index(reasons, k.Reason)))
		e.text(k.Err)
		if k.Reason.HasState() {
			e.b = append(e.b, k.State[:]...)
		}
		if k.Reason == Hidden {
			e.b = binary.AppendUvarint(e.b, k.flags())
			e.b = binary.AppendUvarint(binary.AppendUvarint(e.b, uint64(k.Files)), uint64(k.Bytes))
			e.b = append(e.b, k.Hash[:]...)
		}
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

const (
	// MaxEncoded bounds what Decode takes, in bytes.
	MaxEncoded = 1 << 30
	// maxPath bounds a path, in bytes: what [Take] finds within its depth.
	maxPath = maxDepth * 256
	// maxPaths bounds all paths together, in bytes: each may share nearly all of its own
	// with another. maxShare bounds them in times of what is decoded.
	maxPaths, maxShare = 1 << 28, 128
)

// Decode reads what Encode returns. The error has class future-version for a newer
// version, else class corrupt.
func Decode(data []byte) (*Snapshot, error) {
	d := decoder{b: data, room: min(maxPaths, maxPath+maxShare*len(data))}
	s := d.snapshot()
	if d.err != nil {
		class := writer.ClassCorrupt
		if errors.Is(d.err, envelope.ErrFutureVersion) {
			class = writer.ClassFutureVersion
		}
		return nil, &writer.Error{Op: "decode", Path: "snapshot", Class: class, Err: d.err}
	}
	return s, nil
}

// A decoder reads from b, which is empty after an error.
type decoder struct {
	b    []byte
	err  error
	last string // the path before
	buf  []byte // where the next one is put together
	room int    // bytes that paths may still have
}

func (d *decoder) snapshot() *Snapshot {
	if len(d.b) > MaxEncoded {
		d.fail("it is no snapshot")
		return nil
	}
	body, bad := envelope.LittleEndian.Open(d.b)
	if bad == nil {
		d.b = body
	}
	if string(d.bytes(len(magic))) != magic {
		d.fail("it is no snapshot")
		return nil
	}
	if v := d.uint(); v > version {
		d.fail("version %d: %w", v, envelope.ErrFutureVersion)
	} else if v != version || bad != nil {
		d.fail("the checksum is not that of the content")
	}
	s := &Snapshot{}
	s.At = time.Unix(0, d.int()).UTC()
	copy(s.Stored[:], d.bytes(len(s.Stored)))
	d.list(func(int) { s.Paths = append(s.Paths, d.path()) })
	d.list(func(int) { s.Mounts = append(s.Mounts, d.path()) })
	d.list(func(int) { s.Unstable = append(s.Unstable, d.path()) })
	d.list(func(int) {
		k := Skip{Path: d.path()}
		if n := d.uint(); n < uint64(len(reasons)) {
			k.Reason = reasons[n]
		} else {
			d.fail("%q was skipped for the reason %d", k.Path, n)
		}
		k.Err = string(d.text())
		if k.Reason.HasState() {
			copy(k.State[:], d.bytes(len(k.State)))
		}
		if k.Reason == Hidden {
			k.Listing = d.listing()
		}
		s.Skipped = append(s.Skipped, k)
	})
	d.list(func(n int) { s.Files = append(slices.Grow(s.Files, n), d.file()) })
	if len(d.b) > 0 {
		d.fail("something stands behind the files")
	}
	return s
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	d.b = nil
}

func (d *decoder) uint() uint64 { return number(d, binary.Uvarint) }
func (d *decoder) int() int64   { return number(d, binary.Varint) }

func number[T uint64 | int64](d *decoder, read func([]byte) (T, int)) T {
	n, size := read(d.b)
	if size <= 0 {
		d.fail("a number is cut off")
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.b) {
		d.fail("it is cut off")
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) text() []byte { return d.bytes(int(min(d.uint(), MaxEncoded))) }

// list calls fn with how many there still are, for each. None takes less than 4 bytes
// but a path of one byte.
func (d *decoder) list(fn func(left int)) {
	n := d.uint()
	if n > uint64(len(d.b))/3 {
		d.fail("a list of %d is cut off", n)
	}
	d.last = ""
	for ; n > 0 && d.err == nil; n-- {
		fn(int(n))
	}
}

// path reads one that Take may find, and that comes after the one before.
func (d *decoder) path() string {
	shared, rest := d.uint(), d.text()
	d.room -= int(min(shared, maxPath)) + len(rest)
	if d.err != nil || shared > uint64(len(d.last)) || d.room < 0 {
		d.fail("the paths have more bytes than there can be")
		return ""
	}
	d.buf = append(append(d.buf[:0], d.last[:shared]...), rest...)
	p := string(d.buf)
	if len(p) > maxPath || strings.Count(p, "/") > maxDepth+1 || p <= d.last || p != "." && !clean(p) {
		d.fail("no path inside is %.100q, behind %.100q", p, d.last)
	}
	d.last = p
	return p
}

func (l Listing) flags() (n uint64) {
	if l.Folder {
		n |= 1
	}
	if l.Fixed {
		n |= 2
	}
	return n
}

func (d *decoder) listing() (l Listing) {
	n := d.uint()
	l.Folder, l.Fixed = n&1 != 0, n&2 != 0
	l.Files, l.Bytes = int(d.uint()), int64(d.uint())
	copy(l.Hash[:], d.bytes(len(l.Hash)))
	if n > 3 || l.Files < 0 || l.Bytes < 0 {
		d.fail("what is hidden has %d files of %d bytes", l.Files, l.Bytes)
	}
	return l
}

// clean says whether a path is one that Take may find.
func clean(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || never(part) {
			return false
		}
	}
	return strings.IndexByte(p, 0) < 0
}

func (d *decoder) file() (f Fingerprint) {
	f.Path = d.path()
	mode := d.uint()
	f.Mode = fs.FileMode(mode>>2) & fs.ModePerm
	if n := mode & 3; n < uint64(len(types)) {
		f.Mode |= types[n]
	}
	if modeNumber(f.Mode) != mode || f.Mode&fs.ModeSymlink != 0 && f.Mode != fs.ModeSymlink || f.Path == "." {
		d.fail("%q has the mode %o", f.Path, mode)
	}
	if f.Mode.IsDir() {
		return f
	}
	f.Size, f.ModTime = int64(d.uint()), d.int()
	f.ChangeTime, f.Inode = f.ModTime+d.int(), d.uint()
	if f.Size < 0 {
		d.fail("%q has a size below 0", f.Path)
	}
	if f.Mode.IsRegular() {
		copy(f.Hash[:], d.bytes(len(f.Hash)))
	} else {
		f.Target = string(d.text())
		f.Hash = sha256.Sum256([]byte(f.Target))
	}
	return f
}
