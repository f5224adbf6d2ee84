package assess

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cache/internal/shelf"
	"github.com/lopen-dev/lopen/writer"
)

// OpenOn is Open with a store of the test's and a clock.
func OpenOn(store writer.FS, now func() time.Time) *Cache {
	c := Open(Options{now: now})
	c.disk = shelf.New(store, shelfName, magic, diskBytes, zerolog.Nop())
	return c
}
