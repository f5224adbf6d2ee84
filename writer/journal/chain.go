package journal

import (
	"cmp"
	"slices"
)

// A chain is a Log in the making. Segments are added in the order of their names.
//
// What decides is that every segment says which record it goes on from, which was
// durable then. What earlier segments hold beyond it was given up, or stands in it
// as a copy. What they lack up to it is damage.
type chain struct {
	*Log
	next    uint64   // number of the record that is due
	last    Position // the record before it
	started bool
	givenUp []Ref // records beyond what a later segment goes on from
}

// build puts segments together. One without a valid header holds no record that
// was ever acknowledged.
func (c *chain) build(all []*segment) {
	var valid []*segment
	for _, s := range all {
		if s.valid && c.Session == "" {
			c.Session = s.header.Session
		}
		if s.valid = s.valid && s.header.Session == c.Session; s.valid {
			valid = append(valid, s)
		}
	}
	for i, s := range valid {
		c.join(s)
		if i+1 < len(valid) {
			c.records(s, &valid[i+1].header)
		} else {
			c.records(s, nil)
		}
	}
	for _, s := range all {
		if !s.valid && s.size > 0 {
			kind := Torn
			if len(valid) > 0 && s.name.compare(valid[len(valid)-1].name) < 0 { // a later one goes on
				kind = Settled
			}
			c.fault(kind, s, 0, s.size)
		}
	}
	c.end()
}

// join goes on from the record that the header names.
func (c *chain) join(s *segment) {
	after := s.header.After
	c.after = append(c.after, join{s.name, after})
	switch {
	case !c.started:
		c.lose(1, after.Seq)
	case c.last.Seq < after.Seq:
		c.lose(c.last.Seq+1, after.Seq)
	default:
		kept := len(c.Records) - len(c.Above(after.Seq))
		c.givenUp = append(c.givenUp, c.Records[kept:]...)
		c.Records = c.Records[:kept]
		if kept > 0 && c.Records[kept-1].Seq == after.Seq && after.CRC != "" && c.Records[kept-1].CRC != after.CRC {
			// Another record has this number: what stands before is not its past.
			c.lose(after.Seq, after.Seq)
			r := &c.Records[kept-1]
			c.Faults = append(c.Faults, Fault{Damaged, r.Segment(), r.Offset, r.Length, after.Seq})
			c.Records = c.Records[:kept-1]
		}
	}
	c.started = true
	c.next, c.last = after.Seq+1, after
}

// records takes the records of a segment that are due, and judges what is none.
// next is the header of the segment that goes on from it; the last one has none, and
// there the marks in the records tell, and the snapshot.
func (c *chain) records(s *segment, next *header) {
	head := s.headerLen()
	durable := s.mark(head)
	judge := func(hole int64) Kind {
		switch {
		case next != nil && c.next > next.After.Seq:
			return Settled
		case next != nil, hole < durable, c.next <= max(c.base, s.header.Upto):
			return Damaged
		}
		return Torn
	}
	hole := int64(-1) // where the invalid bytes begin that the last items were
	for i := range s.items {
		it := &s.items[i]
		if hole < 0 && (it.hole || it.Seq != c.next) {
			hole = it.Offset
		}
		if it.hole || it.Seq < c.next {
			continue
		}
		if hole >= 0 {
			kind := judge(hole)
			if kind != Damaged {
				c.fault(kind, s, hole, s.size-hole) // valid lines behind it included
				return
			}
			c.fault(Damaged, s, hole, it.Offset-hole)
			c.lose(c.next, it.Seq-1)
			hole = -1
		}
		c.Records = append(c.Records, it.Ref)
		c.next, c.last = it.Seq+1, it.Position
	}
	cut := head + s.header.Copied - s.size // of the copies: between two lines, or there is a hole
	switch {
	case hole >= 0:
		c.fault(judge(hole), s, hole, s.size-hole)
	case cut > 0 && next == nil:
		c.fault(Damaged, s, s.size, cut)
	}
	if next == nil { // or it tells what is missing
		c.lose(c.next, s.header.Upto)
	}
}

// end reports the records that were given up, unless a copy of them counts.
func (c *chain) end() {
	for i := range c.givenUp {
		r := &c.givenUp[i]
		if j, ok := c.find(r.Seq); ok && c.Records[j].CRC == r.CRC {
			continue
		}
		c.Faults = append(c.Faults, Fault{Settled, r.Segment(), r.Offset, r.Length, r.Seq})
	}
	slices.SortStableFunc(c.Faults, func(a, b Fault) int {
		x, _ := parseName(a.Segment)
		y, _ := parseName(b.Segment)
		return cmp.Or(x.compare(y), cmp.Compare(a.Offset, b.Offset))
	})
}

// lose notes that durable records are not there; those up to the base are history.
func (c *chain) lose(first, last uint64) {
	first = max(first, c.base+1)
	if first <= last && (c.Lost == 0 || first < c.Lost) {
		c.Lost = first
	}
}

func (c *chain) fault(kind Kind, s *segment, offset, length int64) {
	c.Faults = append(c.Faults, Fault{kind, s.name.String(), offset, length, max(c.next, 1)})
}
