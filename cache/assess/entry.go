package assess

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"

	"github.com/lopen-dev/lopen/cache/internal/shelf"
)

// An entry on the disk has the fields: the SHA-256 of the key, the time that the
// computation began (nanoseconds since 1970, eight bytes, big-endian; 0 where it failed), the scope's
// snapshot (lines of cache/files, one for each part of the scope), the data.
const (
	shelfName = "assessments"
	magic     = "lopen assessment 2\n"
	numFields = 4
)

type entry struct {
	scope  []byte
	result Result
}

func (c *Cache) read(key Key) (entry, bool) {
	f := c.disk.Get(key.Name, numFields)
	sum := key.sum()
	if f == nil || !bytes.Equal(f[0], sum[:]) {
		return entry{}, false
	}
	if len(f[1]) != 8 {
		c.disk.Drop(key.Name, errors.New("its time has another length"))
		return entry{}, false
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(f[1])))
	return entry{scope: f[2], result: Result{Data: f[3], At: at}}, true
}

func (c *Cache) write(key Key, scope []byte, r Result) {
	sum := key.sum()
	at := binary.BigEndian.AppendUint64(nil, uint64(r.At.UnixNano()))
	c.disk.Put(key.Name, sum[:], at, scope, r.Data)
}

// Usage is what the entries on the disk take.
type Usage = shelf.Usage

// Use says what the entries below a store's folder take.
func Use(store string) (Usage, error) { return shelf.Use(store, shelfName) }

// Clear removes the entries below a store's folder and says what they took.
func Clear(store string) (Usage, error) { return shelf.Clear(store, shelfName) }
