package assess

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cache/internal/shelf"
	"github.com/lopen-dev/lopen/writer"
)

// OpenOn is Open with a store of the test's and a clock.
func OpenOn(store writer.FS, now func() time.Time) *Cache { return OpenWith(store, now, nil) }

// OpenWith is OpenOn with a Memory.
func OpenWith(store writer.FS, now func() time.Time, m files.Memory) *Cache {
	c := Open(Options{now: now, Memory: m})
	c.disk = shelf.New(store, shelfName, magic, diskBytes, zerolog.Nop())
	return c
}
