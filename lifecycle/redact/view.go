package redact

import (
	"bytes"
	"sort"
	"strings"
)

// mark stands in a view for a piece that is hidden: by a marker that the text brought
// along, or by a rule of an earlier round. It is in no class that a value is made of,
// so no token runs over it; a value behind a name may, so a forged marker saves nothing
// that stands around it.
const mark = 0x01

// A view is what the rules look at when the text is not what a reader sees: escape
// sequences of a terminal and characters without width are left out, a blank is a
// space, UTF-16 is one byte for each unit, and what is hidden already is one [mark].
type view struct {
	text    []byte
	pieces  []piece // ascending
	strings bool    // control strings are text
	left    bool    // one was left out
}

// A piece is a run of a view: its byte at+n stands for each bytes of the original from
// from+n*each on.
type piece struct{ at, from, each int }

// newView returns the view of b in which hidden, which is ascending and apart, and the
// markers of b are marks. Control strings, such as a link's address or a window's title,
// are left out unless strings says that they are text: a secret may stand around them
// and within them.
func newView(b []byte, hidden []span, strings bool) *view {
	v := &view{text: make([]byte, 0, len(b)), strings: strings}
	old := markers(b)
	at := 0
	for len(hidden) > 0 || len(old) > 0 {
		var start, end int
		if len(hidden) == 0 || len(old) > 0 && old[0][0] < hidden[0].start {
			start, end, old = old[0][0], old[0][1], old[1:]
		} else {
			start, end, hidden = hidden[0].start, hidden[0].end, hidden[1:]
		}
		if start < at {
			continue // a marker within what is hidden
		}
		v.add(b, at, start)
		v.put(piece{at: len(v.text), from: start, each: end - start}, mark)
		at = end
	}
	v.add(b, at, len(b))
	return v
}

func (v *view) put(p piece, text ...byte) {
	if len(text) > 0 {
		v.pieces = append(v.pieces, p)
		v.text = append(v.text, text...)
	}
}

// add appends the original from at to end.
func (v *view) add(b []byte, at, end int) {
	from := at // b[from:at] is plain
	for at < end {
		if b[at] == 0x1b || b[at] == '\\' {
			if n := escapeSequence(b[at:end]); n > 0 {
				v.put(piece{len(v.text), from, 1}, b[from:at]...)
				at += n
				from = at
				continue
			}
			if open, shut, n := controlString(b[at:end]); n > 0 {
				v.put(piece{len(v.text), from, 1}, b[from:at]...)
				if v.strings { // a line of its own
					v.put(piece{len(v.text), at, open}, '\n')
					v.add(b, at+open, at+shut)
					v.put(piece{len(v.text), at + shut, n - shut}, '\n')
				}
				v.left = true
				at += n
				from = at
				continue
			}
		}
		if b[at] >= 0xc2 {
			if n, width := invisible(b[at:end]); n > 0 {
				v.put(piece{len(v.text), from, 1}, b[from:at]...)
				if width > 0 {
					v.put(piece{len(v.text), at, n}, ' ')
				}
				at += n
				from = at
				continue
			}
		}
		low, units := utf16Run(b[at:end])
		if units == 0 {
			at++
			continue
		}
		v.put(piece{len(v.text), from, 1}, b[from:at]...)
		v.addUnits(b, at, low, units)
		at += 2 * units
		from = at
	}
	v.put(piece{len(v.text), from, 1}, b[from:end]...)
}

// addUnits appends units of UTF-16 from b[at] on, whose lower byte stands at low.
func (v *view) addUnits(b []byte, at, low, units int) {
	text := make([]byte, units)
	for n := range text {
		text[n] = b[at+2*n+low]
	}
	from := 0
	for n := 0; n < units; {
		skip := 0
		if text[n] == 0x1b {
			if skip = escapeSequence(text[n:]); skip == 0 && !v.strings {
				_, _, skip = controlString(text[n:])
				v.left = v.left || skip > 0
			}
		}
		if skip == 0 {
			n++
			continue
		}
		v.put(piece{len(v.text), at + 2*from, 2}, text[from:n]...)
		n += skip
		from = n
	}
	v.put(piece{len(v.text), at + 2*from, 2}, text[from:]...)
}

// origin returns where the bytes start to end of the view, at least one, stand.
func (v *view) origin(start, end int) (int, int) {
	from, _ := v.where(start)
	_, to := v.where(end - 1)
	return from, to
}

func (v *view) where(i int) (from, to int) {
	k := sort.Search(len(v.pieces), func(k int) bool { return v.pieces[k].at > i }) - 1
	p := v.pieces[k]
	from = p.from + (i-p.at)*p.each
	return from, from + p.each
}

// utf16Run returns how many units of UTF-16 below U+0100 b begins with, and which of
// their two bytes is not zero. Fewer than four are no text: a list that is separated by
// zeros may have short members.
func utf16Run(b []byte) (low, units int) {
	const minUnits = 4
	if len(b) < 2*minUnits || b[0] != 0 && b[1] != 0 {
		return 0, 0
	}
	if b[0] == 0 {
		low = 1
	}
	for 2*units+1 < len(b) && b[2*units+1-low] == 0 && b[2*units+low] != 0 {
		units++
	}
	if units < minUnits {
		return 0, 0
	}
	return low, units
}

// invisibles are the characters without width, and the spaces that are no ASCII.
var invisibles = []struct {
	text  string
	width int
}{
	{"\u200b", 0}, {"\u200c", 0}, {"\u200d", 0}, {"\u2060", 0}, {"\ufeff", 0}, {"\u00ad", 0},
	{"\u00a0", 1}, {"\u202f", 1}, {"\u2007", 1}, {"\u3000", 1},
}

// invisible returns the length of the character among invisibles that b begins with, and
// its width.
func invisible(b []byte) (n, width int) {
	for _, c := range invisibles {
		if len(b) >= len(c.text) && string(b[:len(c.text)]) == c.text {
			return len(c.text), c.width
		}
	}
	return 0, 0
}

// escapes are how programs write ESC where it may not stand as it is.
var escapes = []string{"u001b", "u001B", "x1b", "x1B", "033", "e"}

// bells are how they write BEL.
var bells = []string{"u0007", "x07", "007", "a"}

// controlString returns the length n of the control string that b begins with, and that
// its text is b[open:shut]: ESC, or an escape of it, then "]", "P", "X", "^" or "_", and
// all up to BEL or ESC and a backslash, on one line. Another ESC, or another escape,
// breaks it off, so that no byte is looked at twice.
func controlString(b []byte) (open, shut, n int) {
	if open = controlOpen(b); open == 0 {
		return 0, 0, 0
	}
	for i := open; i < len(b) && b[i] != '\n'; i++ {
		switch {
		case b[i] == 0x07:
			return open, i, i + 1
		case b[i] == 0x1b:
			if i+1 < len(b) && b[i+1] == '\\' {
				return open, i, i + 2
			}
			return 0, 0, 0
		case b[i] == '\\' && b[0] == '\\':
			if n := afterBackslashes(b[i:], bells); n > 0 {
				return open, i, i + n
			}
			if n := escapeLen(b[i:]); n > 0 && i+n < len(b) && b[i+n] == '\\' {
				return open, i, run(b, i+n, backslash, 8)
			}
			return 0, 0, 0
		}
	}
	return 0, 0, 0
}

// controlOpen returns the length of what opens a control string, 0 where b begins with none.
func controlOpen(b []byte) int {
	i := escapeLen(b)
	switch {
	case i == 0 || i >= len(b):
		return 0
	case b[i] == ']':
		return i + 1
	case strings.IndexByte("PX^_", b[i]) >= 0 && b[0] != '\\': // else a path, or a pattern
		return i + 1
	}
	return 0
}

// escapeLen returns the length of the ESC, or the escape of it, that b begins with.
func escapeLen(b []byte) int {
	if b[0] == 0x1b {
		return 1
	}
	return afterBackslashes(b, escapes)
}

// afterBackslashes returns the length of the backslashes and the name behind them that b
// begins with.
func afterBackslashes(b []byte, names []string) int {
	i := run(b, 0, backslash, 8)
	if i == 0 {
		return 0
	}
	for _, name := range names {
		if bytes.HasPrefix(b[i:], []byte(name)) {
			return i + len(name)
		}
	}
	return 0
}

// escapeSequence returns the length of the terminal's control sequence that b begins
// with: ESC, or an escape of it, then "[", parameters and a letter; or a choice of
// character sets; or ESC itself and a letter or digit.
func escapeSequence(b []byte) int {
	const maxParameters = 64
	i := escapeLen(b)
	if i == 0 {
		return 0
	}
	if i+1 < len(b) && b[i] == '(' {
		return i + 2
	}
	if i >= len(b) {
		return 0
	}
	if b[i] != '[' {
		if b[0] == 0x1b && (alnum[b[i]] && b[i] != 'P' && b[i] != 'X' || b[i] == '=' || b[i] == '>') {
			return i + 1
		}
		return 0
	}
	i = run(b, i+1, parameter, maxParameters)
	if i == len(b) || b[i] < '@' || b[i] > '~' {
		return 0
	}
	return i + 1
}

// bare returns value without marks.
func bare(value []byte) []byte {
	if bytes.IndexByte(value, mark) < 0 {
		return value
	}
	return bytes.ReplaceAll(value, []byte{mark}, nil)
}

// asView is the kind of what makes a text one to look at as a view.
const asView = "view"

func seesMarker(b []byte, i int) (span, int) {
	return viewIf(len(markers(b[i:min(len(b), i+len(markerOpen)+maxKind+1)])) > 0), i + 1
}

func seesEscape(b []byte, i int) (span, int) {
	_, _, n := controlString(b[i:])
	return viewIf(n > 0 || escapeSequence(b[i:]) > 0), i + 1
}

func seesInvisible(_ []byte, i int) (span, int) { return viewIf(true), i + 1 }

func seesUTF16(b []byte, i int) (span, int) {
	_, here := utf16Run(b[i:])
	_, before := utf16Run(b[max(0, i-1):])
	return viewIf(here > 0 || before > 0), i + 1
}

func viewIf(yes bool) span {
	if yes {
		return span{kind: asView}
	}
	return span{}
}
