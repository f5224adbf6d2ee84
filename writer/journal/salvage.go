package journal

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lopen-dev/lopen/writer"
)

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
