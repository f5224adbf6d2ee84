package sections

import (
	"time"

	"github.com/lopen-dev/lopen/writer"
)

// OpenOn is Open with a store of the test's and a clock.
func OpenOn(o Options, store writer.FS, now func() time.Time) *Cache {
	o.now = now
	return open(o, store)
}

// Weight is what the outlines in memory are counted as.
func (c *Cache) Weight() uint64 { return c.mem.WeightedSize() }

var (
	DecodeEntry = decodeEntry
	EncodeEntry = encodeEntry
	FileOf      = fileOf
)
