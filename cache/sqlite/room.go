package sqlite

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/lopen-dev/lopen/writer"
)

const (
	// leaves is the room in bytes that an index leaves on its disk: 8 MiB for the logs of sessions, which the output
	// of attempts leaves as well, and 8 MiB more, since an index can be derived again.
	leaves = 16 << 20
	// lookEvery is how many bytes a file grows between two looks at the free space.
	lookEvery = 1 << 20
)

// freeBytes is writer.FreeBytes, but in tests.
var freeBytes = writer.FreeBytes

// Room returns an error if an index below a folder has no room to grow: the last 16 MiB of a disk are not its own.
// Where the free space is not known it returns none.
func Room(dir string) error {
	if free, err := freeBytes(dir); err == nil && free < leaves {
		return fmt.Errorf("%d MiB are free in %s, and the last %d MiB are for sessions", free>>20, dir, leaves>>20)
	}
	return nil
}

// Full says that a database found no room.
func Full(err error) bool { return errors.Is(err, sqlite3.FULL) }

// A room is what a file may take of its disk.
type room struct {
	dir  string
	end  int64 // of the file, or less
	left int64 // bytes that it may grow before the next look
}

// take returns an error if a file has no room to grow to a size.
func (r *room) take(f vfs.File, size int64) error {
	if size <= r.end {
		return nil
	}
	if end, err := f.Size(); err == nil {
		r.end = max(r.end, end)
	}
	if size <= r.end {
		return nil
	}
	if r.left -= size - r.end; r.left < 0 {
		if err := Room(r.dir); err != nil {
			return vfs.SystemError(err, sqlite3.FULL)
		}
		r.left = lookEvery
	}
	r.end = size
	return nil
}
