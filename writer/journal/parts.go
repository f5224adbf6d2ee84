package journal

import (
	"errors"
	"io/fs"
	"iter"
	"slices"

	"github.com/lopen-dev/lopen/writer"
)

// A Part is what one segment adds to a Log. It is valid until the next iteration.
type Part struct {
	*Log           // the records and faults of this segment only
	Segment string // name of the segment
}

// Parts reads the segments of a folder one after the other. It holds the records of one
// segment at a time in memory, and takes no lock. The iteration ends after an error.
func Parts(dir writer.FS) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		done := uint64(0) // the last record that was in a Part
		again := true
		var err error
		for try := 0; again && try < tries; try++ {
			var c *chain
			if c, err = look(dir); err == nil {
				c.all = true
			}
			for i := 0; err == nil && i < len(c.heads); i++ {
				log := *c.Log
				log.Records, log.Faults = nil, nil
				c.Log = &log
				if err = c.read(i); err != nil {
					break
				}
				if j := slices.IndexFunc(c.heads[i+1:], func(h Segment) bool { return h.ok }); c.heads[i].ok && j >= 0 {
					c.Records = c.Records[:len(c.Records)-len(c.Above(c.heads[i+1+j].header.After.Seq))]
				}
				c.Records = c.Above(done)
				if try > 0 && len(c.Records) == 0 {
					continue // its records were in a Part before the segments were rewritten
				}
				if !yield(Part{c.Log, c.heads[i].name.String()}, nil) {
					return
				}
				if n := len(log.Records); n > 0 {
					done = log.Records[n-1].Seq
				}
			}
			again = errors.Is(err, fs.ErrNotExist)
		}
		if err != nil {
			yield(Part{}, err)
		}
	}
}
