package blob

import "github.com/lopen-dev/lopen/writer"

// NewPacking is a Store that packs contents of up to limit bytes; below 0 it packs none.
func NewPacking(dir writer.FS, limit int) *Store {
	s := New(dir)
	s.packMax = limit
	return s
}
