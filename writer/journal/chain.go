package journal

import (
	"cmp"
	"slices"
)

// A chain is a Log under construction. Segments are added in the order of their names.
//
// The header of each segment names the record that the segment continues from, which was
// durable when the segment was opened. Records of earlier segments beyond it were given
// up, or the segment has copies of them. Records that are missing up to it are damage.
type chain struct {
	*Log
	next    uint64 // number of the next record
	gone    []name // segments that are in the list and not in the folder, in order
	started bool   // a segment was added
	all     bool   // every segment is read, beginning with the first
	givenUp []Ref  // records beyond the one that a later segment continues from
}

// read reads the segment c.heads[i] and adds it. A segment whose header is neither valid nor
// in the list holds no record that counts: it never got a header, or it is damaged.
func (c *chain) read(i int) error {
	h := &c.heads[i]
	s := &segment{name: h.name, header: h.header, valid: true, missing: true}
	if !h.gone {
		var err error
		if s, err = scan(c.dir, h.name, *h); err != nil {
			return err
		}
		c.extent = Extent{h.name, s.size}
	}
	h.header, h.ok = s.header, s.valid && s.header.Session == c.Session
	var next *header // of the next segment that has a valid header
	if j := slices.IndexFunc(c.heads[i+1:], func(h Segment) bool { return h.ok }); j >= 0 {
		next = &c.heads[i+1+j].header
	}
	switch {
	case h.ok:
		c.add(s, next)
	case s.size == 0:
	case next != nil:
		c.fault(Settled, s, 0, s.size)
	case s.header == header{} && slices.ContainsFunc(s.items, func(it item) bool { return !it.hole }):
		c.lose(c.next, maxNumber, maxNumber)
		c.fault(Damaged, s, 0, s.size)
	default:
		c.fault(Torn, s, 0, s.size)
	}
	return nil
}

// add adds a segment. next is the header of the segment that continues from it, or nil.
func (c *chain) add(s *segment, next *header) {
	c.join(s)
	c.records(s, next)
	c.named = append(c.named, s.named...)
	if s.spoiled > 0 {
		c.Faults = append(c.Faults, Fault{Kind: Damaged, Segment: s.name.String(), Length: s.spoiled})
	}
	if s.missing {
		c.fault(Damaged, s, 0, 0)
	}
}

// join continues the chain from the record that the header of s names.
func (c *chain) join(s *segment) {
	after := s.header.After
	var before name
	if n := len(c.after); n > 0 {
		before = c.after[n-1].segment
	}
	// Segments of a writer that had lost its lease are not on the chain.
	c.after = slices.DeleteFunc(c.after, func(j join) bool { return j.after.Seq >= after.Seq })
	c.after = append(c.after, join{s.name, after, s.header.State})
	switch {
	case !c.started:
		if c.all && after.Seq > 0 {
			c.missing(s, before)
		}
		c.lose(1, after.Seq, s.header.State)
	case c.next <= after.Seq:
		if n := len(c.Faults); n == 0 || c.Faults[n-1].Seq != c.next || c.Faults[n-1].Kind != Damaged {
			c.missing(s, before)
		}
		c.lose(c.next, after.Seq, s.header.State)
	default:
		valid := len(c.Records) - len(c.Above(after.Seq))
		c.givenUp = append(c.givenUp, c.Records[valid:]...)
		c.Records = c.Records[:valid]
		if valid > 0 && c.Records[valid-1].Seq == after.Seq && after.Seq >= c.begin && after.CRC != "" && c.Records[valid-1].CRC != after.CRC {
			// The record of this number is another one, so s does not continue from it.
			c.lose(after.Seq, after.Seq, after.Seq)
			r := &c.Records[valid-1]
			c.Faults = append(c.Faults, Fault{Kind: Damaged, Segment: r.Segment(), Offset: r.Offset, Length: r.Length, Seq: after.Seq})
			c.Records = c.Records[:valid-1]
		}
	}
	c.started = true
	c.next, c.durable = after.Seq+1, after.Seq
}

// missing reports that the segment between before and s is missing. The fault names it if the
// list has it, else it names s.
func (c *chain) missing(s *segment, before name) {
	f := Fault{Kind: Damaged, Segment: s.name.String(), Seq: max(c.next, 1), Before: true}
	for _, n := range c.gone {
		if n.compare(before) > 0 && n.compare(s.name) < 0 {
			f.Segment, f.Before = n.String(), false
		}
	}
	c.Faults = append(c.Faults, f)
}

// records adds the records of a segment that are due, and classifies its other bytes. next
// is the header of the segment that continues from it. For the last segment next is nil, and
// the durable offset that each line carries decides.
func (c *chain) records(s *segment, next *header) {
	if s.header.Reduced {
		c.reduced(s)
		return
	}
	durable := s.mark()
	hole := int64(-1) // where the run of invalid items began that is not yet reported; -1 for none
	for i := range s.items {
		it := &s.items[i]
		due := it.Seq // the number of this record, or of the record after this note
		if it.note {
			due++
		}
		if hole < 0 && (it.hole || due != c.next) {
			hole = it.Offset
		}
		if it.hole || due < c.next {
			continue
		}
		if hole >= 0 {
			kind := c.judge(s, next, hole, durable)
			if kind != Damaged {
				c.fault(kind, s, hole, s.size-hole) // including the valid lines after the hole
				return
			}
			c.fault(Damaged, s, hole, it.Offset-hole)
			c.gap(s, Position{Epoch: it.Epoch, Seq: due - 1}, it.state)
			if hole < durable {
				c.durable = due - 1
			}
			hole = -1
		}
		if c.next = due; !it.note {
			c.Records = append(c.Records, it.Ref)
			c.next++
			if it.Offset+it.Length <= durable {
				c.durable = it.Seq
			}
		}
	}
	c.endOf(s, next, hole, durable)
}

// judge returns the kind of invalid bytes that begin at hole, where record c.next is due.
func (c *chain) judge(s *segment, next *header, hole, durable int64) Kind {
	switch {
	case next != nil && c.next > next.After.Seq:
		return Settled
	case next != nil, hole < durable, c.next <= s.header.Upto:
		return Damaged
	}
	return Torn
}

// endOf reports the invalid bytes from hole to the end of a segment, unless hole is -1. For
// the newest segment it also records which records are missing at its end.
func (c *chain) endOf(s *segment, next *header, hole, durable int64) {
	cut := s.head + s.header.Copied - s.size // bytes that the copies lack, if the file ends between two lines
	switch {
	case hole >= 0:
		c.fault(c.judge(s, next, hole, durable), s, hole, s.size-hole)
	case cut > 0 && next == nil && !s.missing:
		c.fault(Damaged, s, s.size, cut)
	}
	if next != nil { // join then finds what is missing
		return
	}
	before, _ := c.position(c.next)
	c.gap(s, Position{Epoch: before.Epoch, Seq: s.header.Upto}, s.header.UptoState)
	if s.listed || s.missing {
		c.durable = max(c.durable, s.header.Upto)
	}
	if s.missing { // how many records it held is not known
		c.lose(c.next, maxNumber, maxNumber)
	}
}

// gap records that the records from c.next to upto are lost. Their numbers are not reused.
func (c *chain) gap(s *segment, upto Position, state uint64) {
	if c.next <= upto.Seq {
		c.lose(c.next, upto.Seq, state)
		c.after = append(c.after, join{s.name, upto, state})
		c.next = upto.Seq + 1
	}
}

// reduced adds the records of a segment that Drop wrote.
func (c *chain) reduced(s *segment) {
	holes := false
	for i := range s.items {
		if it := &s.items[i]; it.hole {
			holes = true
			c.fault(Damaged, s, it.Offset, it.Length)
		} else if !it.note && it.Seq >= c.next && it.Seq <= s.header.Upto {
			c.Records = append(c.Records, it.Ref)
			c.next = it.Seq + 1
		}
	}
	if cut := s.head + s.header.Copied - s.size; cut > 0 && !holes && !s.missing {
		c.fault(Damaged, s, s.size, cut)
	}
	c.begin = s.header.Upto + 1
	c.next = c.begin
}

// end computes Lost, reports the records that were given up and have no copy that counts,
// and sorts the faults.
func (c *chain) end() {
	c.Lost = c.LostAbove(c.base)
	for i := range c.givenUp {
		r := &c.givenUp[i]
		if j, ok := c.find(r.Seq); ok && c.Records[j].CRC == r.CRC || r.Seq < c.begin {
			continue
		}
		c.Faults = append(c.Faults, Fault{Kind: Settled, Segment: r.Segment(), Offset: r.Offset, Length: r.Length, Seq: r.Seq})
	}
	slices.SortStableFunc(c.Faults, func(a, b Fault) int {
		x, _ := parseName(a.Segment)
		y, _ := parseName(b.Segment)
		return cmp.Or(x.compare(y), cmp.Compare(a.Offset, b.Offset))
	})
}

// lose records that the durable records from first to last are lost. state is the newest
// record up to last that the State rests on. If state is below first, only entries are lost.
func (c *chain) lose(first, last, state uint64) {
	c.losses = append(c.losses, loss{first, last, state})
}

func (c *chain) fault(kind Kind, s *segment, offset, length int64) {
	c.Faults = append(c.Faults, Fault{Kind: kind, Segment: s.name.String(), Offset: offset, Length: length, Seq: max(c.next, 1)})
}
