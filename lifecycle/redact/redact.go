package redact

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"sort"
	"strings"
)

// Redactor hides credentials. The zero value knows the built-in rules; a nil
// pointer hides nothing.
type Redactor struct {
	extra []*regexp.Regexp
}

// Bounds of the caller's patterns, which a stranger's project may bring: the time for a
// text grows with the number of their instructions.
const (
	MaxPatterns = 64   // how many
	MaxPattern  = 1000 // bytes of one
	maxSize     = 4000 // instructions of all, about
)

// New returns a Redactor with the built-in rules and the regular expressions
// (RE2 syntax) in extra, whose matches become "[redacted:custom]". An expression
// that does not compile is an error that names it; so is one beyond the bounds.
func New(extra []string) (*Redactor, error) {
	if len(extra) > MaxPatterns {
		return nil, fmt.Errorf("%d redact patterns, more than %d", len(extra), MaxPatterns)
	}
	r := &Redactor{}
	size := 0
	for _, p := range extra {
		if len(p) > MaxPattern {
			return nil, fmt.Errorf("redact pattern %q...: %d bytes, more than %d", p[:40], len(p), MaxPattern)
		}
		tree, err := syntax.Parse(p, syntax.Perl)
		if err != nil {
			return nil, fmt.Errorf("compile redact pattern %q: %w", p, err)
		}
		if size += instructions(tree); size > maxSize {
			return nil, fmt.Errorf("redact pattern %q: with it the patterns take more than %d steps for each byte: repeat less", p, maxSize)
		}
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("compile redact pattern %q: %w", p, err)
		}
		r.extra = append(r.extra, re)
	}
	return r, nil
}

// Also returns a Redactor that hides texts as well, in small letters or large ones. Their bounds
// are the caller's.
func (r *Redactor) Also(texts []string) *Redactor {
	if len(texts) == 0 {
		return r
	}
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = regexp.QuoteMeta(text)
	}
	return &Redactor{append(slices.Clone(r.extra), regexp.MustCompile("(?i:"+strings.Join(quoted, "|")+")"))}
}

// Fingerprint returns a text that two Redactors share only if they hide by the same expressions. That the built-in rules
// are the same is not in it.
func (r *Redactor) Fingerprint() string {
	if r == nil {
		return "none"
	}
	sum := sha256.New()
	for _, re := range r.extra {
		fmt.Fprintf(sum, "%q", re)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}

// instructions returns about how many instructions an expression compiles to, without
// compiling it.
func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxSize+1)
}

// Bytes returns b with its credentials hidden, and how many pieces it hid. It
// does not change b, and returns b itself when there was nothing to hide.
func (r *Redactor) Bytes(b []byte) ([]byte, int) {
	spans := r.find(b)
	if len(spans) == 0 {
		return b, 0
	}
	return hide(b, spans), len(spans)
}

// hide returns b with markers in the place of spans.
func hide(b []byte, spans []span) []byte {
	out := make([]byte, 0, len(b)+len(spans)*16)
	at := 0
	for _, s := range spans {
		out = append(out, b[at:s.start]...)
		out = appendMarker(out, s.kind)
		at = s.end
	}
	return append(out, b[at:]...)
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

// span is a piece to hide: b[start:end]. Of spans that overlap, the kind with the
// lowest rank names the union.
type span struct {
	start, end int
	rank       int
	kind       string
}

const (
	rankToken = iota
	rankContext
	rankExtra
)

// maxRounds bounds how often the rules look again at what others have hidden a part
// of. Two are what it takes; text made for it may take one more each time.
const maxRounds = 12

// find returns what is to be hidden in b, ascending, neither overlapping nor
// touching. The rules look at b until they find no more, with what they found hidden,
// so that looking at the result finds nothing: that is what makes redacting twice the
// same as once.
func (r *Redactor) find(b []byte) []span {
	if r == nil {
		return nil
	}
	spans, plain := scan(b, true)
	if !plain {
		spans = look(b, nil)
	}
	for _, re := range r.extra {
		var old [][2]int
		for n, m := range re.FindAllIndex(b, -1) {
			if n == 0 {
				old = markers(b)
			}
			if m[0] < m[1] && !touches(old, m[0], m[1]) {
				spans = append(spans, span{start: m[0], end: m[1], rank: rankExtra, kind: "custom"})
			}
		}
	}
	if len(spans) == 0 {
		return nil
	}
	spans = unite(spans)
	for range maxRounds {
		more := look(b, spans)
		if len(more) == 0 {
			break
		}
		spans = unite(append(spans, more...))
	}
	return spans
}

// look returns what the rules find in the views of b.
func look(b []byte, hidden []span) []span {
	v := newView(b, hidden, false)
	found := v.look()
	if v.left {
		found = append(found, newView(b, hidden, true).look()...)
	}
	return found
}

func (v *view) look() []span {
	spans, _ := scan(v.text, false)
	found := spans[:0]
	for _, s := range spans {
		if len(bare(v.text[s.start:s.end])) > 0 {
			s.start, s.end = v.origin(s.start, s.end)
			found = append(found, s)
		}
	}
	return found
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
