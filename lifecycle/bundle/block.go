package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
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
// nothing but a regular file can come, and nothing can be hidden in one.
func (b *block) parse() (name string, size, mtime int64, err error) {
	h, err := tar.NewReader(bytes.NewReader(b[:])).Next()
	if err != nil {
		return "", 0, 0, errBlock
	}
	name, size, mtime = h.Name, h.Size, h.ModTime.Unix()
	if err := checkName(name); err != nil {
		return "", 0, 0, err
	}
	if again, err := newBlock(name, size, mtime); err != nil || again != *b {
		return "", 0, 0, errBlock
	}
	return name, size, mtime, nil
}

// padding is how many zeros follow a content.
func padding(size int64) int64 { return -size & (blockSize - 1) }
