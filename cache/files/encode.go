package files

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
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
}

// Encode returns the snapshot as compact JSON of one line, schemaVersion first, a
// checksum of all bytes before it last. Paths and targets that are not UTF-8 are
// written in base64, as pathBytes and targetBytes; modes as git and stat write them,
// in octal.
func (s *Snapshot) Encode() []byte {
	v := snapshotJSON{SchemaVersion: schemaVersion, At: s.At.UTC()}
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
	head := bytes.TrimSuffix(encoded(v), []byte("}"))
	out := make([]byte, 0, len(head)+256*len(s.Files)+64)
	out = append(append(out, head...), `,"files":[`...)
	for i := range s.Files {
		if i > 0 {
			out = append(out, ',')
		}
		out = s.Files[i].append(out)
	}
	out = append(out, ']')
	return fmt.Appendf(out, "%s%08x\"}\n", checksumKey, crc32.Checksum(out, castagnoli))
}

// append appends the fingerprint's object. encoding/json takes five times as long for
// the thousands that a snapshot has.
func (f *Fingerprint) append(b []byte) []byte {
	b = appendText(append(b, '{'), "path", f.Path)
	b = append(b, `,"mode":"`...)
	b = append(strconv.AppendUint(b, uint64(unixMode(f.Mode)), 8), '"')
	for _, n := range []struct {
		key   string
		value int64
	}{{`,"size":`, f.Size}, {`,"modTime":`, f.ModTime}, {`,"changeTime":`, f.ChangeTime}} {
		if n.value != 0 {
			b = strconv.AppendInt(append(b, n.key...), n.value, 10)
		}
	}
	if f.Inode != 0 {
		b = strconv.AppendUint(append(b, `,"inode":`...), f.Inode, 10)
	}
	if !f.Mode.IsDir() {
		b = append(hex.AppendEncode(append(b, `,"hash":"`...), f.Hash[:]), '"')
	}
	if f.Target != "" {
		b = appendText(append(b, ','), "target", f.Target)
	}
	return append(b, '}')
}

// appendText appends a member that may be any bytes, see text.
func appendText(b []byte, key, s string) []byte {
	b = append(append(b, '"'), key...)
	plain, raw := text(s)
	if raw != nil {
		b = append(b, `Bytes":"`...)
		return append(base64.StdEncoding.AppendEncode(b, raw), '"')
	}
	b = append(b, `":`...)
	for i := range len(plain) {
		if c := plain[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return append(b, encoded(plain)...)
		}
	}
	return append(append(append(b, '"'), plain...), '"')
}

// encoded is v as encoding/json has it, compact, with no escapes for HTML's sake.
func encoded(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // no type that comes here can fail, nor can a Buffer
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// The bits of st_mode.
const (
	typeMask = 0o170000
	typeReg  = 0o100000
	typeDir  = 0o040000
	typeLink = 0o120000
)

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
	return u
}

// fileMode is the reverse, false for what unixMode does not return: a mode with setuid,
// setgid or sticky was never written by lopen.
func fileMode(u uint32) (fs.FileMode, bool) {
	m := fs.FileMode(u & 0o777)
	switch u & typeMask {
	case typeReg:
	case typeDir:
		m |= fs.ModeDir
	case typeLink:
		m |= fs.ModeSymlink
	}
	return m, unixMode(m) == u && (m&fs.ModeSymlink == 0 || m == fs.ModeSymlink)
}

// reasons are those that Decode takes.
var reasons = []Reason{Special, TooLarge, TooDeep, Unreadable, Unstable, Symlinked, Ignored}

func (r Reason) valid() bool { return slices.Contains(reasons, r) }
