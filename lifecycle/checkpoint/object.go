package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A folder has exactly one encoding as an object:
//
//	"tree 1\n"
//	for each name, in ascending order of bytes:
//	  kind     'f' file, 'l' symlink, 'd' folder, 'h' something hidden, '?' something that was not
//	           recorded
//	  name     its length, then its bytes
//	  'f'      permissions in 2 bytes, size, hash of the content
//	  'l'      length of the target, then its bytes
//	  'd'      permissions in 2 bytes, hash of the folder's object
//	  'h'      1 for a folder and 2 if it cannot be moved, added up, in 1 byte, number of files,
//	           bytes, hash of the listing
//	  '?'      the reason in 1 byte; of a repository and a large file a hash of its state, or zeros
//
// In front of the names of a folder that is unstable stands '!' alone.
//
// Numbers are big-endian; lengths and sizes are the shortest form of a uvarint.
const (
	treeMagic = "tree 1\n"
	// maxObject bounds a folder's object, in bytes, and maxItems the names in it.
	maxObject = 64 << 20
	maxItems  = files.DefaultMaxFiles
	// maxDepth bounds the nesting of folders: that of a snapshot, and one for the root.
	maxDepth = 257
)

// The kinds of an item.
const (
	kindFile    = 'f'
	kindLink    = 'l'
	kindFolder  = 'd'
	kindHidden  = 'h'
	kindUnknown = '?'
	// kindUnstable is the kind of the first item, without a name, of a folder that changed while
	// it was looked at: what is not among the others may have been there.
	kindUnstable = '!'
)

// reasons are the reasons of an unknown item. Objects have the index in this list.
var reasons = []files.Reason{files.Special, files.TooLarge, files.TooDeep, files.Unreadable, files.Unstable, files.Symlinked, files.Ignored, files.Nested, files.Mounted}

// readObject reads an object that an entry needs. A missing object is an error of class corrupt.
func readObject(blobs *blob.Store, h blob.Hash, limit int64) ([]byte, error) {
	data, err := blobs.Read(h, limit)
	if errors.Is(err, fs.ErrNotExist) {
		err = damaged(h.String(), err)
	}
	return data, err
}

// An item is a name in a folder.
type item struct {
	name  string
	kind  byte
	mode  fs.FileMode // the permissions of a file or folder
	size  int64       // of a file, or of what is hidden, in bytes
	count int         // of hidden files
	hash  blob.Hash   // of a file's content, a folder's object or the listing of what is hidden; or of a repository's state
	text  string      // a symlink's target, or why something is unknown
}

// fits returns an error if an item cannot be in an object.
func (it *item) fits() error {
	clean, err := files.CleanPath(it.name)
	switch {
	case err != nil || clean != it.name || clean == "." || strings.Contains(clean, "/"):
		return fmt.Errorf("%s is no name", quote(it.name))
	case it.mode&^fs.ModePerm != 0 || it.size < 0 || it.count < 0 || it.kind == kindHidden && it.mode > hiddenFolder|hiddenFixed:
		return fmt.Errorf("%s has an impossible mode or size", quote(it.name))
	case it.kind == kindLink && strings.ContainsRune(it.text, 0):
		return fmt.Errorf("%s has an impossible target", quote(it.name))
	case it.kind == kindUnknown && !slices.Contains(reasons, files.Reason(it.text)):
		return fmt.Errorf("%s was not recorded for a reason that cannot be kept: %s", quote(it.name), quote(it.text))
	}
	return nil
}

// encodeFolder encodes the items of a folder, which must be sorted by name.
func encodeFolder(items []item) ([]byte, error) {
	size := len(treeMagic)
	for i := range items {
		size += len(items[i].name) + len(items[i].text) + 48
	}
	b := append(make([]byte, 0, size), treeMagic...)
	if isUnstable(items) {
		b, items = append(b, kindUnstable), items[1:]
	}
	for i := range items {
		it := &items[i]
		if err := it.fits(); err != nil {
			return nil, err
		}
		b = appendText(append(b, it.kind), it.name)
		switch it.kind {
		case kindFile:
			b = binary.AppendUvarint(binary.BigEndian.AppendUint16(b, uint16(it.mode)), uint64(it.size))
			b = append(b, it.hash[:]...)
		case kindFolder:
			b = append(binary.BigEndian.AppendUint16(b, uint16(it.mode)), it.hash[:]...)
		case kindLink:
			b = appendText(b, it.text)
		case kindHidden:
			b = binary.AppendUvarint(binary.AppendUvarint(append(b, byte(it.mode)), uint64(it.count)), uint64(it.size))
			b = append(b, it.hash[:]...)
		default:
			b = append(b, byte(slices.Index(reasons, files.Reason(it.text))))
			if files.Reason(it.text).HasState() {
				b = append(b, it.hash[:]...)
			}
		}
	}
	if len(b) > maxObject || len(items) > maxItems {
		return nil, fmt.Errorf("a folder has %d names of %d bytes, more than can be kept", len(items), len(b))
	}
	return b, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeFolder decodes what encodeFolder returns and nothing else. The error wraps
// envelope.ErrFutureVersion if a newer version wrote the object.
func decodeFolder(data []byte) ([]item, error) {
	if err := checkMagic(data); err != nil {
		return nil, err
	}
	c := objectReader{data: data[len(treeMagic):]}
	items := c.unstable()
	for len(c.data) > 0 && !c.bad {
		it := item{kind: c.bytes(1)[0], name: c.text()}
		switch it.kind {
		case kindFile:
			it.mode, it.size, it.hash = c.mode(), c.uvarint(), c.hash()
		case kindFolder:
			it.mode, it.hash = c.mode(), c.hash()
		case kindLink:
			it.text = c.text()
		case kindHidden:
			it.mode, it.count = fs.FileMode(c.bytes(1)[0]), int(c.uvarint())
			it.size, it.hash = c.uvarint(), c.hash()
		case kindUnknown:
			it.text, it.hash = c.reason()
		default:
			c.bad = true
		}
		if c.bad || len(items) == maxItems || len(items) > 0 && items[len(items)-1].name >= it.name {
			return nil, fmt.Errorf("item %d of the folder is damaged", len(items))
		}
		if err := it.fits(); err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}

// checkMagic returns an error if an object is not a folder of this version.
func checkMagic(data []byte) error {
	switch {
	case bytes.HasPrefix(data, []byte(treeMagic)):
		return nil
	case bytes.HasPrefix(data, []byte(treeMagic[:len("tree ")])):
		return fmt.Errorf("folder of another version: %w", envelope.ErrFutureVersion)
	}
	return errors.New("it is no folder")
}

// An objectReader reads the parts of an object. Once bad is set, it returns zeros.
type objectReader struct {
	data []byte
	bad  bool
}

func (c *objectReader) bytes(n int) []byte {
	if c.bad || n > len(c.data) {
		c.bad = true
		return make([]byte, min(n, len(blob.Hash{})))
	}
	b := c.data[:n]
	c.data = c.data[n:]
	return b
}

// unstable reads what stands in front of the names.
func (c *objectReader) unstable() (items []item) {
	if rest, ok := bytes.CutPrefix(c.data, []byte{kindUnstable}); ok {
		c.data, items = rest, []item{unstableItem}
	}
	return items
}

func (c *objectReader) uvarint() int64 {
	v, n := binary.Uvarint(c.data)
	if n <= 0 || v > 1<<62 || n > 1 && c.data[n-1] == 0 { // not the shortest form
		c.bad = true
		return 0
	}
	c.data = c.data[n:]
	return int64(v)
}

func (c *objectReader) text() string {
	n := c.uvarint()
	if n > int64(len(c.data)) {
		c.bad = true
		return ""
	}
	return string(c.bytes(int(n)))
}

// reason reads why something is unknown, and the hash of its state if that has one.
func (c *objectReader) reason() (text string, state blob.Hash) {
	n := int(c.bytes(1)[0])
	if n >= len(reasons) {
		c.bad = true
		return "", state
	}
	if reasons[n].HasState() {
		state = c.hash()
	}
	return string(reasons[n]), state
}

func (c *objectReader) mode() fs.FileMode { return fs.FileMode(binary.BigEndian.Uint16(c.bytes(2))) }

func (c *objectReader) hash() blob.Hash { return blob.Hash(c.bytes(len(blob.Hash{}))) }
