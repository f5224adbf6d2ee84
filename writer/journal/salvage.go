package journal

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lopen-dev/lopen/writer"
)

// Salvage is every whole record in the segments of a folder, whether it counts or
// not: those of a segment whose header is damaged, and those behind a hole. What a later
// header says was never acknowledged is left out. Of records with one number the one of
// the latest segment is taken. A segment of another session that strayed in is left out.
// There may be gaps. What they come to is for a person to judge.
func Salvage(dir writer.FS, session string) (*Log, error) {
	names, err := segments(dir)
	if err != nil {
		return nil, err
	}
	list, _ := readList(dir) // what cannot be believed of it names nothing
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
