package strictjson

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text reads a string.
func (r *Reader) Text() string {
	if !r.take('"') {
		return ""
	}
	start, end := r.pos, plain(r.b, r.pos)
	if end < len(r.b) && r.b[end] == '"' {
		r.pos = end + 1
		return r.s[start:end]
	}
	var text strings.Builder
	if !r.chars(&text) {
		return ""
	}
	return text.String()
}

// Plain says whether JSON writes a string as it is.
func Plain(s string) bool { return plain([]byte(s), 0) == len(s) }

// plain returns the first place from i on where a string ends or has something
// to be looked at: a quote, a backslash or a control character. It looks at eight
// bytes at a time: a byte is less than n if subtracting n borrows, and a borrow can
// only mislead about bytes above the first that was found.
func plain(b []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^ones*'"', w^ones*'\\'
		found := ((w - ones*' ') | (quote - ones) | (slash - ones)) &^ w & high
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// chars reads on to the end of a string, into text unless that is nil.
func (r *Reader) chars(text *strings.Builder) bool {
	for {
		start := r.pos
		r.pos = plain(r.b, start)
		if text != nil {
			text.WriteString(r.s[start:r.pos])
		}
		switch {
		case r.pos == len(r.b):
			r.fail("a string without an end")
			return false
		case r.b[r.pos] == '"':
			r.pos++
			return true
		case r.b[r.pos] != '\\':
			r.fail("a control character in a string")
			return false
		}
		c, n := unescape(r.s[r.pos:])
		if n == 0 {
			r.fail("an escape that stands for nothing")
			return false
		}
		if text != nil {
			text.WriteRune(c)
		}
		r.pos += n
	}
}

// unescape returns the character that s begins with an escape of, and the
// escape's length, 0 when there is none.
func unescape(s string) (rune, int) {
	if len(s) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	c, ok := hex4(s)
	if !ok || !utf16.IsSurrogate(c) {
		if !ok {
			return 0, 0
		}
		return c, 6
	}
	low, ok := hex4(s[6:])
	if c = utf16.DecodeRune(c, low); !ok || c == utf8.RuneError {
		return 0, 0
	}
	return c, 12
}

// hex4 reads a \u and its four digits.
func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var c rune
	for _, d := range []byte(s[2:6]) {
		switch {
		case d >= '0' && d <= '9':
			c = c<<4 | rune(d-'0')
		case d|' ' >= 'a' && d|' ' <= 'f':
			c = c<<4 | rune(d|' '-'a'+10)
		default:
			return 0, false
		}
	}
	return c, true
}

// number returns the text of a number as JSON's grammar has it.
func (r *Reader) number() string {
	if r.err != nil {
		return ""
	}
	r.peek()
	start, i := r.pos, r.pos
	digits := func() bool {
		from := i
		for i < len(r.b) && r.b[i] >= '0' && r.b[i] <= '9' {
			i++
		}
		return i > from
	}
	one := func(set string) bool {
		if i < len(r.b) && strings.IndexByte(set, r.b[i]) >= 0 {
			i++
			return true
		}
		return false
	}
	one("-")
	lead := i
	ok := digits() && (r.b[lead] != '0' || i == lead+1)
	if ok && one(".") {
		ok = digits()
	}
	if ok && one("eE") {
		one("+-")
		ok = digits()
	}
	if !ok {
		r.fail("want a number, have " + r.here())
		return ""
	}
	r.pos = i
	return r.s[start:i]
}

// Int reads a whole number.
func (r *Reader) Int() int64 {
	n := r.number()
	v, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		r.pos -= len(n)
		r.fail("want a whole number of 64 bits, have " + n)
		return 0
	}
	return v
}

// Uint reads a whole number from 0 on.
func (r *Reader) Uint() uint64 {
	n := r.number()
	v, err := strconv.ParseUint(n, 10, 64)
	if err != nil {
		r.pos -= len(n)
		r.fail("want a whole number from 0 on, have " + n)
		return 0
	}
	return v
}

// Float reads a finite number.
func (r *Reader) Float() float64 {
	n := r.number()
	v, err := strconv.ParseFloat(n, 64) // fails for what would be infinite
	if err != nil {
		r.pos -= len(n)
		r.fail("want a number of 64 bits, have " + n)
		return 0
	}
	return v
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	if r.peek() == 't' {
		return r.word("true")
	}
	r.word("false")
	return false
}

func (r *Reader) word(w string) bool {
	if r.err != nil {
		return false
	}
	r.peek()
	if !strings.HasPrefix(r.s[r.pos:], w) {
		r.fail("want " + w + ", have " + r.here())
		return false
	}
	r.pos += len(w)
	return true
}
