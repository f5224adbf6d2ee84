package checkpoint

import "math"

// A rewinding is the time in which a rewind changed files: that of the entries after begin
// up to end. Other sessions' may be among them, and a crash.
type rewinding struct {
	by         *Entry // at its end, or at its begin where it is not finished
	begin, end uint64
	back       *Tree // at its target
}

// rewindings are those that the entries tell of, the last to end at the end.
func rewindings(entries []*Entry) (all []rewinding) {
	begun, newest := map[uint64]bool{}, map[string]*Entry{}
	for _, e := range entries {
		newest[e.Session] = e
		switch e.Reason {
		case BeforeRewind:
			begun[e.Number] = true
		case AfterRewind:
			w := rewinding{by: e, begin: e.Number - 1, end: e.Number}
			if begun[e.Parent] {
				w.begin = e.Parent
			}
			all = append(all, w)
		}
	}
	for _, e := range entries {
		if e.Reason == BeforeRewind && e == newest[e.Session] {
			all = append(all, rewinding{by: e, begin: e.Number, end: math.MaxUint64})
		}
	}
	return all
}
