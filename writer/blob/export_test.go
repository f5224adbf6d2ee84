package blob

import "github.com/lopen-dev/lopen/writer"

// NewPacking returns a Store that packs contents of up to limit bytes, or none if limit is
// below 0.
func NewPacking(dir writer.FS, limit int) *Store {
	s := New(dir)
	s.packMax = limit
	return s
}
