package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// schemaVersion is that of the encoded form.
const schemaVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksumKey begins what Encode ends with: the checksum is of all before it.
const checksumKey = `,"checksum":"crc32c:`

// text is a string of any bytes: JSON has no others than UTF-8, so any other is
// written in base64 under the member's name with "Bytes" behind it.
func text(s string) (plain string, raw []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

type fileJSON struct {
	Path        string `json:"path,omitempty"`
	PathBytes   []byte `json:"pathBytes,omitempty"`
	Mode        string `json:"mode"`
	Size        int64  `json:"size,omitempty"`
	ModTime     int64  `json:"modTime,omitempty"`
	ChangeTime  int64  `json:"changeTime,omitempty"`
	Inode       uint64 `json:"inode,omitempty"`
	Hash        string `json:"hash,omitempty"`
	Target      string `json:"target,omitempty"`
	TargetBytes []byte `json:"targetBytes,omitempty"`
}

type skipJSON struct {
	Path      string `json:"path,omitempty"`
	PathBytes []byte `json:"pathBytes,omitempty"`
	Reason    Reason `json:"reason"`
	Error     string `json:"error,omitempty"`
}

type pathJSON struct {
	Path      string `json:"path,omitempty"`
	PathBytes []byte `json:"pathBytes,omitempty"`
}

type snapshotJSON struct {
	SchemaVersion int        `json:"schemaVersion"`
	At            time.Time  `json:"at"`
	Paths         []pathJSON `json:"paths,omitempty"`
	Skipped       []skipJSON `json:"skipped,omitempty"`
	Files         []fileJSON `json:"files"`
}

// Encode returns the snapshot as compact JSON of one line, schemaVersion first, a
// checksum of all bytes before it last. Paths and targets that are not UTF-8 are
// written in base64, as pathBytes and targetBytes; modes as git and stat write them,
// in octal.
func (s *Snapshot) Encode() []byte {
	v := snapshotJSON{SchemaVersion: schemaVersion, At: s.At.UTC(), Files: make([]fileJSON, len(s.Files))}
	for _, p := range s.Paths {
		var j pathJSON
		j.Path, j.PathBytes = text(p)
		v.Paths = append(v.Paths, j)
	}
	for _, k := range s.Skipped {
		j := skipJSON{Reason: k.Reason, Error: k.Err}
		j.Path, j.PathBytes = text(k.Path)
		v.Skipped = append(v.Skipped, j)
	}
	for i := range s.Files {
		f, j := &s.Files[i], &v.Files[i]
		*j = fileJSON{Mode: strconv.FormatUint(uint64(unixMode(f.Mode)), 8), Size: f.Size, ModTime: f.ModTime, ChangeTime: f.ChangeTime, Inode: f.Inode}
		j.Path, j.PathBytes = text(f.Path)
		j.Target, j.TargetBytes = text(f.Target)
		if !f.Mode.IsDir() {
			j.Hash = f.Hash.String()
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // no type of v can fail, nor can a Buffer
	out := bytes.TrimSuffix(b.Bytes(), []byte("}\n"))
	return fmt.Appendf(out, "%s%08x\"}\n", checksumKey, crc32.Checksum(out, castagnoli))
}

// The bits of st_mode.
const (
	typeMask = 0o170000
	typeReg  = 0o100000
	typeDir  = 0o040000
	typeLink = 0o120000
)

var specialBits = []struct {
	mode fs.FileMode
	bit  uint32
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}

// unixMode is a fingerprint's mode as st_mode has it.
func unixMode(m fs.FileMode) uint32 {
	u := uint32(m.Perm())
	switch m.Type() {
	case fs.ModeDir:
		u |= typeDir
	case fs.ModeSymlink:
		u |= typeLink
	default:
		u |= typeReg
	}
	for _, s := range specialBits {
		if m&s.mode != 0 {
			u |= s.bit
		}
	}
	return u
}

// fileMode is the reverse, false for what unixMode does not return.
func fileMode(u uint32) (fs.FileMode, bool) {
	m := fs.FileMode(u & 0o777)
	switch u & typeMask {
	case typeReg:
	case typeDir:
		m |= fs.ModeDir
	case typeLink:
		m |= fs.ModeSymlink
	}
	for _, s := range specialBits {
		if u&s.bit != 0 {
			m |= s.mode
		}
	}
	return m, unixMode(m) == u && (m&fs.ModeSymlink == 0 || m == fs.ModeSymlink)
}

// reasons are those that Decode takes.
var reasons = []Reason{Special, TooLarge, TooDeep, Unreadable, Unstable, Symlinked, Ignored}

func (r Reason) valid() bool { return slices.Contains(reasons, r) }
