package bundle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A block stands before the content of an entry in a tar, in the format ustar of POSIX. The
// standard library writes the same, but takes what others write as well: long names in entries
// of their own, sparse files, ten ways to write a number. Here a name, a size and a time have
// exactly one block.
type block [blockSize]byte

const (
	blockSize = 512
	maxOctal  = 1<<33 - 1 // what 11 octal digits say; a larger size is written in binary, as GNU has it
	maxBase   = 100       // bytes of the last part of a name, and
	maxPrefix = 155       // of the first
)

// newBlock returns the block of a regular file. The name is one of checkName.
func newBlock(name string, size, mtime int64) (b block, err error) {
	prefix, base := "", name
	if len(name) > maxBase {
		prefix, base = name[:max(0, strings.LastIndexByte(name[:min(len(name), maxPrefix+1)], '/'))], ""
		if prefix != "" {
			base = name[len(prefix)+1:]
		}
	}
	if base == "" || len(base) > maxBase {
		return b, fmt.Errorf("entry %q: its name is too long", name)
	}
	copy(b[0:], base)
	octal(b[100:108], 0o600) // mode
	octal(b[108:116], 0)     // owner
	octal(b[116:124], 0)     // group
	if octal(b[124:136], size); size > maxOctal {
		copy(b[124:], "\x80\x00\x00\x00")
		binary.BigEndian.PutUint64(b[128:], uint64(size))
	}
	octal(b[136:148], mtime)
	copy(b[148:], "        ")
	copy(b[156:], "0")
	copy(b[257:], "ustar\x0000")
	octal(b[329:337], 0)
	octal(b[337:345], 0)
	copy(b[345:], prefix)
	sum := int64(0)
	for _, c := range b {
		sum += int64(c)
	}
	octal(b[148:155], sum)
	return b, nil
}

// octal fills a field with the last digits of a number, and a zero.
func octal(field []byte, n int64) {
	end := len(field) - 1
	field[end] = 0
	for i := range end {
		field[end-1-i] = '0' + byte(n>>(3*i)&7)
	}
}

var errBlock = errors.New("an entry is not written as lopen writes it: a link, a device, a folder, a long or sparse file, or an entry with an owner, a mode or extensions")

// parse returns what newBlock was given. It refuses each block that newBlock does not return:
// nothing but a regular file can come, and nothing can be hidden in one. So what is read here
// need not be checked: a wrong field makes another block.
func (b *block) parse() (name string, size, mtime int64, err error) {
	name = text(b[0:100])
	if prefix := text(b[345:500]); prefix != "" {
		name = prefix + "/" + name
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
