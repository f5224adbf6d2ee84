package journal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/writer"
)

// A name is that of a segment: journal-{epoch}-{n}.jsonl, both from 1.
type name struct{ epoch, n uint64 }

func (n name) String() string { return fmt.Sprintf("journal-%d-%d.jsonl", n.epoch, n.n) }

func (n name) compare(o name) int {
	return cmp.Or(cmp.Compare(n.epoch, o.epoch), cmp.Compare(n.n, o.n))
}

// parseName knows a segment's name in its one spelling: no leading zeros, no signs.
func parseName(s string) (name, bool) {
	var n name
	_, err := fmt.Sscanf(s, "journal-%d-%d.jsonl", &n.epoch, &n.n)
	return n, err == nil && n.epoch > 0 && n.n > 0 && n.String() == s
}

// segments lists the segments of a folder in the order in which they are read.
func segments(dir writer.FS) ([]name, error) {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return nil, writer.NewError("list journal", dir.Name(), writer.NotCommitted, err)
	}
	var all []name
	for _, e := range entries {
		if n, ok := parseName(e.Name()); ok {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, name.compare)
	return all, nil
}
