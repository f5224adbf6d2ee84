package journal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// A name is the name of a segment: journal-{epoch}-{n}.jsonl, both numbers from 1, with
// the suffix .zst when the segment is compressed.
type name struct {
	epoch, n uint64
	packed   bool
}

const packedSuffix = ".zst"

func (n name) String() string {
	s := fmt.Sprintf("journal-%d-%d.jsonl", n.epoch, n.n)
	if n.packed {
		s += packedSuffix
	}
	return s
}

// plain returns the name without the suffix of a compressed segment.
func (n name) plain() name { return name{epoch: n.epoch, n: n.n} }

func (n name) compare(o name) int {
	packed := func(n name) int {
		if n.packed {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(n.epoch, o.epoch), cmp.Compare(n.n, o.n), cmp.Compare(packed(n), packed(o)))
}

// parseName parses the name of a segment. It accepts one spelling only: no leading zeros,
// no signs.
func parseName(s string) (name, bool) {
	var n name
	plain, packed := strings.CutSuffix(s, packedSuffix)
	_, err := fmt.Sscanf(plain, "journal-%d-%d.jsonl", &n.epoch, &n.n)
	n.packed = packed
	return n, err == nil && n.epoch > 0 && n.n > 0 && n.String() == s
}

// IsSegment reports whether a file's name is that of a segment.
func IsSegment(file string) bool {
	_, ok := parseName(file)
	return ok
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
