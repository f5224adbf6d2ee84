package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const (
	blockSize = 512
	// maxOctal is the largest size that 11 octal digits say.
	maxOctal = 1<<33 - 1
)

// A block is the one that stands before the content of an entry in a tar.
type block [blockSize]byte

// newBlock returns the block of a regular file. A name, a size and a time have exactly one.
func newBlock(name string, size, mtime int64) (b block, err error) {
	h := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: time.Unix(mtime, 0), Format: tar.FormatUSTAR}
	if size > maxOctal {
		h.Format = tar.FormatGNU // which has the size in binary
	}
	var out bytes.Buffer
	if err := tar.NewWriter(&out).WriteHeader(&h); err != nil {
		return b, fmt.Errorf("entry %q: %w", name, err)
	}
	if out.Len() != len(b) {
		return b, fmt.Errorf("entry %q: its name is too long", name)
	}
	return block(out.Bytes()), nil
}

var errBlock = errors.New("an entry is not written as lopen writes it: a link, a device, a folder, a long or sparse file, or an entry with an owner, a mode or extensions")

// parse returns what newBlock was given. It refuses each block that newBlock does not return:
// nothing but a regular file can come, and nothing can be hidden in one. So what is read here
// need not be checked: a wrong field makes another block.
func (b *block) parse() (name string, size, mtime int64, err error) {
	name = text(b[0:100])
	if dir := text(b[345:500]); dir != "" {
		name = dir + "/" + name
	}
	if size, _ = strconv.ParseInt(text(b[124:136]), 8, 64); b[124] == 0x80 {
		size = int64(binary.BigEndian.Uint64(b[128:136]))
	}
	mtime, _ = strconv.ParseInt(text(b[136:148]), 8, 64)
	if err := checkName(name); err != nil {
		return "", 0, 0, err
	}
	if again, err := newBlock(name, size, mtime); err != nil || again != *b {
		return "", 0, 0, errBlock
	}
	return name, size, mtime, nil
}

// text is what stands before the first zero of a field.
func text(field []byte) string {
	before, _, _ := bytes.Cut(field, []byte{0})
	return string(before)
}

// padding is how many zeros follow a content.
func padding(size int64) int64 { return -size & (blockSize - 1) }
