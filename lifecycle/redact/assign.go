package redact

import "bytes"

// maxGap bounds the blanks between a name, its sign and its value.
const maxGap = 32

// maxQuoted bounds how far the end of a quoted value is looked for.
const maxQuoted = 4096

// matchAssignment is called at ":" and "=": it looks at the name before and the
// value behind, as in NAME=value, "name": "value", name := `value`, name => 'v'
// and Authorization: Basic value.
func matchAssignment(b []byte, i int) (span, int) {
	start, name := nameBefore(b, i)
	kind := nameKind(name)
	if kind == "" {
		return span{}, i + 1
	}
	from, to, quoted := valueAfter(b, i+1, kind)
	at, ok := secretIn(kind, b[from:min(to, from+maxQuoted)], quoted)
	if !ok {
		return span{}, i + 1
	}
	return span{ctx: start, start: from + at, end: to, rank: rankContext, kind: kind}, to
}

// nameBefore returns the name that ends before b[i] and where it begins, past
// blanks and closing quotes, which are escaped when JSON stands within JSON.
func nameBefore(b []byte, i int) (int, []byte) {
	end := i
	for end > 0 && i-end < maxGap && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	for end > 0 && i-end < maxGap && (b[end-1] == '"' || b[end-1] == '\'' || b[end-1] == '\\' || b[end-1] == ']') {
		end--
	}
	start := end
	for start > 0 && end-start < maxName && nameChar[b[start-1]] {
		start--
	}
	return start, b[start:end]
}

// valueAfter returns the value that begins behind the sign which ends at b[i].
func valueAfter(b []byte, i int, kind string) (from, to int, quoted bool) {
	if i < len(b) && (b[i] == '=' || b[i] == '>') {
		i++
	}
	for n := 0; n < maxGap && i < len(b) && (b[i] == ' ' || b[i] == '\t'); n++ {
		i++
	}
	open := i
	for open < len(b) && open-i < 8 && b[open] == '\\' {
		open++
	}
	if open < len(b) && (b[open] == '"' || b[open] == '\'' || b[open] == '`') {
		// An escaped quote ends at the same escaped quote.
		quote, from := b[i:open+1], open+1
		text := b[from:min(len(b), from+maxQuoted)]
		if n := bytes.Index(text, quote); n >= 0 && bytes.IndexByte(text[:n], '\n') < 0 {
			return from, from + n, true
		}
		i = from // cut off: what is left of the value
	}
	from = i
	if kind == "authorization" {
		i += scheme(b[i:])
	}
	return from, runUntil(b, i, valueEnd), false
}

// runUntil returns the end of the run, from i on, of bytes that are not in c.
func runUntil(b []byte, i int, c *class) int {
	for i < len(b) && !c[b[i]] {
		i++
	}
	return i
}
