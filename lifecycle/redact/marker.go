package redact

import (
	"bytes"
	"sort"
)

const markerOpen = "[redacted:"

func appendMarker(out []byte, kind string) []byte {
	out = append(out, markerOpen...)
	out = append(out, kind...)
	return append(out, ']')
}

// markers returns start and end of every marker that b already carries. Only
// the exact form counts, so that "[redacted: see below" protects nothing.
func markers(b []byte) [][2]int {
	var out [][2]int
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(markerOpen))
		if i < 0 {
			return out
		}
		start := at + i
		end := run(b, start+len(markerOpen), kindChar, maxKind+1)
		at = end
		if n := end - start - len(markerOpen); n > 0 && n <= maxKind && end < len(b) && b[end] == ']' {
			out = append(out, [2]int{start, end + 1})
		}
	}
}

// maxKind bounds the length of a kind's name.
const maxKind = 24

// touches reports whether b[start:end] overlaps or adjoins one of the markers.
func touches(markers [][2]int, start, end int) bool {
	i := sort.Search(len(markers), func(i int) bool { return markers[i][1] >= start })
	return i < len(markers) && markers[i][0] <= end
}
