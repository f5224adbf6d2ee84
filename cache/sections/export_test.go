package sections

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cache/internal/shelf"
	"github.com/lopen-dev/lopen/writer"
)

// OpenOn is Open with a store of the test's, which may be nil, and a clock.
func OpenOn(o Options, store writer.FS, now func() time.Time) *Cache {
	o.now, o.Bytes = now, DefaultBytes
	if store == nil {
		return open(o, nil)
	}
	return open(o, shelf.New(store, shelfName, magic, o.Bytes, zerolog.Nop()))
}

// Weight is what the outlines in memory are counted as.
func (c *Cache) Weight() uint64 { return c.mem.WeightedSize() }

// EntryOf is the file of a name's entry.
func (c *Cache) EntryOf(name string) string { return c.disk.File(name) }

// PutRevision keeps an outline as another version of the parser would have.
func (c *Cache) PutRevision(revision, name string, src []byte, o *cache.Outline) {
	s := sum(src)
	c.disk.Put(name, []byte(revision), []byte(name), s[:], o.AppendTable(nil))
}
