package strictjson

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth bounds how deeply arrays and objects may be nested.
const MaxDepth = 256

// A Reader reads the values of one JSON text.
type Reader struct {
	s     string
	pos   int
	depth int
	keys  []string // those of the objects that are open, innermost last
	err   error
}

// NewReader returns a reader of data, which must be UTF-8 in full.
func NewReader(data []byte) *Reader {
	r := &Reader{s: string(data)}
	if !utf8.ValidString(r.s) {
		for i, c := range r.s {
			if c == utf8.RuneError {
				if _, n := utf8.DecodeRuneInString(r.s[i:]); n == 1 {
					r.pos = i
					r.fail("a byte that is not UTF-8")
					break
				}
			}
		}
	}
	return r
}

// NewPrefixReader returns a reader of the beginning of a text. It may be cut
// anywhere, in the middle of a character too.
func NewPrefixReader(data []byte) *Reader { return &Reader{s: string(data)} }

// Err returns the first error, which names the offset in bytes.
func (r *Reader) Err() error { return r.err }

// Pos is the offset of the next byte to be read.
func (r *Reader) Pos() int { return r.pos }

func (r *Reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("byte %d: %s", r.pos, what)
	}
}

func (r *Reader) peek() byte {
	for r.pos < len(r.s) {
		switch c := r.s[r.pos]; c {
		case ' ', '\n', '\r', '\t':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// take reads one byte that must be c.
func (r *Reader) take(c byte) bool {
	if r.err != nil {
		return false
	}
	if got := r.peek(); got != c || r.pos == len(r.s) {
		r.fail(fmt.Sprintf("want %q, have %s", c, r.here()))
		return false
	}
	r.pos++
	return true
}

func (r *Reader) here() string {
	if r.pos >= len(r.s) {
		return "the end"
	}
	return strconv.Quote(r.s[r.pos : r.pos+1])
}

// End checks that nothing but white space is left.
func (r *Reader) End() {
	if r.err == nil && (r.peek() != 0 || r.pos < len(r.s)) {
		r.fail("something behind the value: " + r.here())
	}
}

// Object reads an object and calls fn at each member's value, which fn must
// read or skip. fn returns false to leave the object where it is.
func (r *Reader) Object(fn func(key string) bool) {
	if !r.open('{') {
		return
	}
	base := len(r.keys)
	for first := true; ; first = false {
		if r.peek() == '}' {
			r.pos++
			break
		}
		if !first && !r.take(',') {
			return
		}
		at := r.pos
		key := r.String()
		if r.err == nil && r.seen(key, base) {
			r.pos = at
			r.fail(fmt.Sprintf("the key %q stands twice", key))
		}
		if !r.take(':') || !fn(key) || r.err != nil {
			return
		}
	}
	r.keys = r.keys[:base]
	r.depth--
}

// seen notes a key of the innermost object and says whether it was there
// before. Objects have few keys, so looking through them beats a map; one with
// very many is not ours and may cost more.
func (r *Reader) seen(key string, base int) bool {
	for _, k := range r.keys[base:] {
		if k == key {
			return true
		}
	}
	if len(r.keys)-base >= maxKeys {
		r.fail(fmt.Sprintf("an object with more than %d keys", maxKeys))
	}
	r.keys = append(r.keys, key)
	return false
}

const maxKeys = 4096

// Array reads an array and calls fn at each element, which fn must read or skip.
func (r *Reader) Array(fn func()) {
	if !r.open('[') {
		return
	}
	for first := true; ; first = false {
		if r.peek() == ']' {
			r.pos++
			break
		}
		if !first && !r.take(',') {
			return
		}
		if fn(); r.err != nil {
			return
		}
	}
	r.depth--
}

func (r *Reader) open(c byte) bool {
	if !r.take(c) {
		return false
	}
	if r.depth++; r.depth > MaxDepth {
		r.fail(fmt.Sprintf("more than %d levels deep", MaxDepth))
		return false
	}
	return true
}

// String reads a string.
func (r *Reader) String() string {
	if !r.take('"') {
		return ""
	}
	start := r.pos
	for i := r.pos; i < len(r.s); i++ {
		switch c := r.s[i]; {
		case c == '"':
			r.pos = i + 1
			return r.s[start:i]
		case c == '\\':
			return r.escaped(start, i)
		case c < ' ':
			r.pos = i
			r.fail("a control character in a string")
			return ""
		}
	}
	r.pos = len(r.s)
	r.fail("a string without an end")
	return ""
}

// escaped reads on in a string whose first backslash is at i.
func (r *Reader) escaped(start, i int) string {
	var b strings.Builder
	b.WriteString(r.s[start:i])
	for i < len(r.s) {
		c := r.s[i]
		switch {
		case c == '"':
			r.pos = i + 1
			return b.String()
		case c < ' ':
			r.pos = i
			r.fail("a control character in a string")
			return ""
		case c != '\\':
			b.WriteByte(c)
			i++
			continue
		}
		if i+1 >= len(r.s) {
			break
		}
		if j := strings.IndexByte(`"\/bfnrt`, r.s[i+1]); j >= 0 {
			b.WriteByte("\"\\/\b\f\n\r\t"[j])
			i += 2
			continue
		}
		c1, ok := hex4(r.s, i)
		n := 6
		if ok && utf16.IsSurrogate(c1) {
			var c2 rune
			if c2, ok = hex4(r.s, i+6); ok {
				c1 = utf16.DecodeRune(c1, c2)
				ok = c1 != utf8.RuneError
			}
			n = 12
		}
		if !ok {
			r.pos = i
			r.fail("an escape that stands for nothing")
			return ""
		}
		b.WriteRune(c1)
		i += n
	}
	r.pos = len(r.s)
	r.fail("a string without an end")
	return ""
}

func hex4(s string, i int) (rune, bool) {
	if i+6 > len(s) || s[i] != '\\' || s[i+1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(s[i+2:i+6], 16, 16)
	return rune(v), err == nil && s[i+2] != '+' && s[i+2] != '_'
}

// number returns the text of a number as JSON's grammar has it.
func (r *Reader) number() string {
	if r.err != nil {
		return ""
	}
	r.peek()
	s, i := r.s[r.pos:], 0
	digits := func() bool {
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	lead := i
	ok := digits() && (s[lead] != '0' || i == lead+1)
	if ok && i < len(s) && s[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		r.fail("want a number, have " + r.here())
		return ""
	}
	r.pos += i
	return s[:i]
}

// Int reads a whole number.
func (r *Reader) Int() int64 {
	n := r.number()
	v, err := strconv.ParseInt(n, 10, 64)
	if err != nil && r.err == nil {
		r.fail("want a whole number of 64 bits, have " + n)
	}
	return v
}

// Uint reads a whole number from 0 on.
func (r *Reader) Uint() uint64 {
	n := r.number()
	v, err := strconv.ParseUint(n, 10, 64)
	if err != nil && r.err == nil {
		r.fail("want a whole number from 0 on, have " + n)
	}
	return v
}

// Float reads a finite number.
func (r *Reader) Float() float64 {
	n := r.number()
	v, err := strconv.ParseFloat(n, 64)
	if (err != nil || math.IsInf(v, 0)) && r.err == nil {
		r.fail("want a number, have " + n)
	}
	return v
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	if r.err != nil {
		return false
	}
	r.peek()
	switch {
	case strings.HasPrefix(r.s[r.pos:], "true"):
		r.pos += len("true")
		return true
	case strings.HasPrefix(r.s[r.pos:], "false"):
		r.pos += len("false")
	default:
		r.fail("want true or false, have " + r.here())
	}
	return false
}

// Raw reads any value, as strictly as the others, and returns its bytes.
func (r *Reader) Raw() string {
	if r.err != nil {
		return ""
	}
	c := r.peek()
	start := r.pos
	switch {
	case c == '{':
		r.Object(func(string) bool { r.Raw(); return true })
	case c == '[':
		r.Array(func() { r.Raw() })
	case c == '"':
		_ = r.String()
	case c == 't', c == 'f':
		r.Bool()
	case strings.HasPrefix(r.s[r.pos:], "null"):
		r.pos += len("null")
	default:
		r.number()
	}
	if r.err != nil {
		return ""
	}
	return r.s[start:r.pos]
}
