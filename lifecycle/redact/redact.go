package redact

import (
	"fmt"
	"regexp"
	"slices"
)

// Redactor hides credentials. The zero value knows the built-in rules; a nil
// pointer hides nothing.
type Redactor struct {
	extra []*regexp.Regexp
}

// New returns a Redactor with the built-in rules and the regular expressions
// (RE2 syntax) in extra, whose matches become "[redacted:custom]". An expression
// that does not compile is an error that names it.
func New(extra []string) (*Redactor, error) {
	r := &Redactor{}
	for _, p := range extra {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("compile redact pattern %q: %w", p, err)
		}
		r.extra = append(r.extra, re)
	}
	return r, nil
}

// Bytes returns b with its credentials hidden, and how many pieces it hid. It
// does not change b, and returns b itself when there was nothing to hide.
func (r *Redactor) Bytes(b []byte) ([]byte, int) {
	spans := r.find(b)
	if len(spans) == 0 {
		return b, 0
	}
	out := make([]byte, 0, len(b)+len(spans)*16)
	at := 0
	for _, s := range spans {
		out = append(out, b[at:s.start]...)
		out = appendMarker(out, s.kind)
		at = s.end
	}
	return append(out, b[at:]...), len(spans)
}

// String is [Redactor.Bytes] for a string.
func (r *Redactor) String(s string) (string, int) {
	if r == nil {
		return s, 0
	}
	out, n := r.Bytes([]byte(s))
	if n == 0 {
		return s, 0
	}
	return string(out), n
}

// span is a piece to hide: b[start:end]. The decision was made on the bytes from
// ctx on. Of spans that overlap, the kind with the lowest rank names the union.
type span struct {
	ctx, start, end int
	rank            int
	kind            string
}

const (
	rankToken = iota
	rankContext
	rankExtra
)

// find returns what is to be hidden in b, ascending, neither overlapping nor
// touching.
func (r *Redactor) find(b []byte) []span {
	if r == nil {
		return nil
	}
	spans := scan(b)
	for _, re := range r.extra {
		for _, m := range re.FindAllIndex(b, -1) {
			if m[0] < m[1] {
				spans = append(spans, span{ctx: m[0], start: m[0], end: m[1], rank: rankExtra, kind: "custom"})
			}
		}
	}
	if len(spans) == 0 {
		return nil
	}
	old := markers(b)
	spans = slices.DeleteFunc(spans, func(s span) bool { return touches(old, s.ctx, s.end) })
	return unite(spans)
}

// unite sorts spans and merges those that overlap or touch. That touching ones
// become one bounds the length of the result: between two markers there is at
// least one byte of the input.
func unite(spans []span) []span {
	slices.SortStableFunc(spans, func(x, y span) int { return x.start - y.start })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			last := &out[n-1]
			last.end = max(last.end, s.end)
			if s.rank < last.rank {
				last.rank, last.kind = s.rank, s.kind
			}
			continue
		}
		out = append(out, s)
	}
	return out
}
