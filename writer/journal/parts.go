package journal

import (
	"cmp"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"

	"github.com/lopen-dev/lopen/writer"
)

// A Part is what one segment adds to a Log. It is valid until the next iteration.
type Part struct {
	*Log           // the records and faults of this segment only
	Segment string // name of the segment

	head header
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
				if !yield(Part{c.Log, c.heads[i].name.String(), c.heads[i].header}, nil) {
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

// Salvage returns every intact record in the segments of a folder, whether it counts or
// not: also those in a segment with a damaged header, and those behind a hole. It leaves
// out records that a later header excludes because they were never acknowledged, and
// segments of another session. Of several records with one number it takes that of the
// latest segment. There may be gaps, so the result must not be applied without a person's
// decision.
func Salvage(dir writer.FS, session string) (*Log, error) {
	names, err := segments(dir)
	if err != nil {
		return nil, err
	}
	list, _ := readList(dir) // of a damaged list the intact lines are used
	list.of(session)
	records := map[uint64]Ref{}
	for _, n := range names {
		s, err := scan(dir, n, list[n])
		if err != nil {
			return nil, err
		}
		if s.valid && s.header.Session != session {
			continue
		}
		if s.valid {
			durable := max(s.header.After.Seq, s.header.Upto)
			maps.DeleteFunc(records, func(seq uint64, _ Ref) bool { return seq > durable })
		}
		for _, it := range s.items {
			if !it.hole && !it.note && it.Seq > 0 {
				records[it.Seq] = it.Ref
			}
		}
	}
	l := &Log{Session: session, dir: dir}
	l.Records = slices.SortedFunc(maps.Values(records), func(a, b Ref) int { return cmp.Compare(a.Seq, b.Seq) })
	return l, nil
}
