package journal

import (
	"cmp"
	"slices"
)

// A chain is a Log in the making. Segments are added in the order of their names.
//
// What decides is that every segment says which record it goes on from, which was
// durable then. What earlier segments hold beyond it was given up. What they lack
// up to it is damage.
type chain struct {
	*Log
	next    uint64   // number of the record that is due
	last    Position // the record before it
	started bool
	open    []int // faults that the next header settles
	givenUp []Ref // records beyond what a later segment goes on from
}

func (c *chain) add(s *segment) {
	if s.valid && c.Session == "" {
		c.Session = s.header.Session
	}
	if !s.valid || s.header.Session != c.Session {
		// No record was acknowledged in a segment whose header was not durable.
		if s.size > 0 {
			c.fault(Torn, s, 0, s.size)
		}
		return
	}
	c.join(s)
	c.records(s)
}

// join goes on from the record that the header names.
func (c *chain) join(s *segment) {
	after := s.header.After
	c.after = append(c.after, join{s.name, after})
	lost := false
	switch {
	case !c.started:
		if lost = after.Seq > c.base; lost {
			c.lose(c.base + 1)
		}
	case c.last.Seq < after.Seq:
		lost = true
		if after.Seq > c.base {
			c.lose(max(c.last.Seq, c.base) + 1)
		}
	default:
		kept := len(c.Records) - len(c.Above(after.Seq))
		c.givenUp = append(c.givenUp, c.Records[kept:]...)
		c.Records = c.Records[:kept]
		if n := len(c.Records); n > 0 && c.Records[n-1].Seq == after.Seq && after.CRC != "" && c.Records[n-1].CRC != after.CRC {
			// Another record has this number: what stands before is not its past.
			lost = true
			c.lose(after.Seq)
			c.Faults = append(c.Faults, Fault{Damaged, c.Records[n-1].Segment(), c.Records[n-1].Offset, c.Records[n-1].Length, after.Seq})
			c.Records = c.Records[:n-1]
		}
	}
	for _, i := range c.open {
		c.Faults[i].Kind = Settled
		if lost {
			c.Faults[i].Kind = Damaged
		}
	}
	c.open, c.started = nil, true
	c.next, c.last = after.Seq+1, after
}

// records takes the records of a segment that are due, and judges what is none.
func (c *chain) records(s *segment) {
	head := s.headerLen()
	durable := s.mark(head)
	hole := int64(-1) // where the invalid bytes begin that the last items were
	for i := range s.items {
		it := &s.items[i]
		if it.hole || it.Seq < c.next {
			if hole < 0 {
				hole = it.Offset
			}
			continue
		}
		if hole >= 0 || it.Seq > c.next {
			if hole < 0 {
				hole = it.Offset
			}
			if hole >= durable && c.next > c.base {
				c.fault(Torn, s, hole, s.size-hole) // valid lines behind it included
				return
			}
			c.fault(Damaged, s, hole, it.Offset-hole)
			if it.Seq > c.next {
				c.lose(it.Seq - 1)
			}
			hole = -1
		}
		c.Records = append(c.Records, it.Ref)
		c.next, c.last = it.Seq+1, it.Position
	}
	switch {
	case hole >= 0 && hole < durable:
		c.fault(Damaged, s, hole, s.size-hole)
		c.lose(c.next)
	case hole >= 0:
		c.fault(Torn, s, hole, s.size-hole)
	case s.size < head+s.header.Copied: // cut between two lines
		c.fault(Damaged, s, s.size, head+s.header.Copied-s.size)
		c.lose(c.next)
	}
}

// end judges what no later segment settles: a snapshot that lies beyond it does.
// Records that were given up are reported, unless a copy of them counts.
func (c *chain) end() {
	if c.last.Seq < c.base {
		for _, i := range c.open {
			c.Faults[i].Kind = Damaged
		}
	}
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

// lose notes that a durable record is not there.
func (c *chain) lose(seq uint64) {
	if seq > c.base && (c.Lost == 0 || seq < c.Lost) {
		c.Lost = seq
	}
}

func (c *chain) fault(kind Kind, s *segment, offset, length int64) {
	if kind == Torn {
		c.open = append(c.open, len(c.Faults))
	}
	c.Faults = append(c.Faults, Fault{kind, s.name.String(), offset, length, max(c.next, 1)})
}
