package journal

import (
	"fmt"
	"slices"
)

// A Gap is a place in a log where durable records are damaged or missing.
type Gap struct {
	First uint64 // the first number that is missing
	// Last is the last number that is missing. It is 0 if the end of the log is lost, and with it how many
	// records there were. Below Begin some of the numbers may have been dropped.
	Last uint64
}

// Has reports whether the record of a number may be one of those that are lost.
func (g Gap) Has(seq uint64) bool { return seq >= g.First && (seq <= g.Last || g.Last == 0) }

func (g Gap) String() string {
	switch g.Last {
	case 0:
		return fmt.Sprintf("the records from %d on cannot be read", g.First)
	case g.First:
		return fmt.Sprintf("record %d cannot be read", g.First)
	}
	return fmt.Sprintf("the records %d to %d cannot be read", g.First, g.Last)
}

// Gaps returns where durable records are lost, in order. Every segment must have been read. A torn end is
// no gap: it was never acknowledged.
func (l *Log) Gaps() (all []Gap) {
	for _, f := range l.Faults { // below Begin numbers are missing without damage
		if f.Kind == Damaged && f.Seq > 0 && f.Seq < l.begin && (len(all) == 0 || all[len(all)-1].First < f.Seq) {
			last := l.begin - 1
			if i, _ := l.find(f.Seq); i < len(l.Records) {
				last = min(last, l.Records[i].Seq-1)
			}
			if last >= f.Seq { // else it is a note that is damaged
				all = append(all, Gap{f.Seq, last})
			}
		}
	}
	next := l.begin
	for i := range l.Records {
		if seq := l.Records[i].Seq; seq > next {
			all = append(all, Gap{next, seq - 1})
		}
		next = max(next, l.Records[i].Seq+1)
	}
	switch last := l.Last(); {
	case slices.ContainsFunc(l.losses, func(x loss) bool { return x.last == maxNumber }):
		all = append(all, Gap{First: next})
	case last >= next:
		all = append(all, Gap{next, last})
	}
	return all
}
