package sections

import (
	"bytes"
	"crypto/sha256"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cache/internal/shelf"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// An entry on the disk has the fields: the parser's revision, the file's name, the
// SHA-256 of its content, the table of its sections.
const (
	shelfName = "sections"
	magic     = "lopen sections 1\n"
	numFields = 4
)

func sum(src []byte) [32]byte { return sha256.Sum256(src) }

// fromDisk returns the outline of src if an entry has it, else nil.
func (c *Cache) fromDisk(name string, sum [32]byte, src []byte) *cache.Outline {
	f := c.disk.Get(name, numFields)
	if f == nil || string(f[0]) != markdown.Revision() || string(f[1]) != name || !bytes.Equal(f[2], sum[:]) {
		return nil
	}
	o, err := cache.OutlineOf(src, f[3])
	if err != nil {
		c.disk.Drop(name, err)
		return nil
	}
	return o
}

// Usage is what the entries on the disk take.
type Usage = shelf.Usage

// Use says what the entries below a store's folder take.
func Use(store string) (Usage, error) { return shelf.Use(store, shelfName) }

// Clear removes the entries below a store's folder and says what they took.
func Clear(store string) (Usage, error) { return shelf.Clear(store, shelfName) }
