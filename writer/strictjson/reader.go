package strictjson

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

const (
	// MaxDepth bounds how deeply arrays and objects may be nested.
	MaxDepth = 256
	// MaxRaw bounds the nesting within one value that [Reader.Raw] reads, so
	// that such a value can be written again at any place that a caller's own
	// format has for it.
	MaxRaw = 64
)

// A Reader reads the values of one JSON text.
type Reader struct {
	b     []byte // the input, for scanning; never written to, and none after an error
	s     string // the same, for what is returned
	pos   int
	depth int
	keys  []string // those of the objects that are open, innermost last
	err   error
}

// NewReader returns a reader of data, which must be UTF-8 in full.
func NewReader(data []byte) *Reader { return newReader(data, string(data)) }

// NewSharing is NewReader without a copy: the texts that are read are parts of data,
// so nobody may write to it any more.
func NewSharing(data []byte) *Reader {
	return newReader(data, unsafe.String(unsafe.SliceData(data), len(data))) //nolint:gosec // a string of bytes that nobody writes to
}

func newReader(data []byte, s string) *Reader {
	r := &Reader{b: data, s: s}
	if i := invalidAt(r.s); i < len(r.s) {
		r.pos = i
		r.fail("a byte that is not UTF-8")
	}
	return r
}

// NewPrefixReader returns a reader of the beginning of a text, which may be cut
// anywhere, in the middle of a character too.
func NewPrefixReader(prefix []byte) *Reader {
	for i := len(prefix) - 1; i >= max(0, len(prefix)-utf8.UTFMax); i-- {
		if utf8.RuneStart(prefix[i]) {
			if !utf8.FullRune(prefix[i:]) {
				prefix = prefix[:i]
			}
			break
		}
	}
	return NewReader(prefix)
}

// invalidAt returns where s stops being UTF-8, its length when it never does.
func invalidAt(s string) int {
	if utf8.ValidString(s) {
		return len(s)
	}
	for i, c := range s {
		if c == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return len(s)
}

// Err returns the first error, which names the offset in bytes.
func (r *Reader) Err() error { return r.err }

// Offset returns where the next value begins, or where an error was found, in bytes.
func (r *Reader) Offset() int {
	r.peek()
	return r.pos
}

// maxWhat bounds what an error quotes of the input, in bytes: a value may be all of it.
const maxWhat = 256

// end is where reading goes no further: nothing is left for who looks at the next byte.
func (r *Reader) end(err error) { r.err, r.b = err, nil }

func (r *Reader) fail(what string) {
	if r.err == nil {
		if len(what) > maxWhat {
			what = strings.ToValidUTF8(what[:maxWhat], "") + "..."
		}
		r.end(fmt.Errorf("byte %d: %s", r.pos, what))
	}
}

// Fail ends the reading because of what the caller found in a value: it becomes
// the error, with the offset behind that value, unless there is one already.
func (r *Reader) Fail(format string, args ...any) {
	if r.err == nil {
		r.fail(fmt.Sprintf(format, args...))
	}
}

// Stop ends the reading where the caller knows enough: Err is ErrStopped then,
// unless there is another already.
func (r *Reader) Stop() {
	if r.err == nil {
		r.end(ErrStopped)
	}
}

// ErrStopped is the error of a Reader that was stopped.
var ErrStopped = errors.New("stopped")

// peek skips white space and returns the next byte, 0 at the end.
func (r *Reader) peek() byte {
	for ; r.pos < len(r.b); r.pos++ {
		switch c := r.b[r.pos]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// take reads one byte that must be c. Mostly nothing stands before it.
func (r *Reader) take(c byte) bool {
	if r.pos < len(r.b) && r.b[r.pos] == c {
		r.pos++
		return true
	}
	return r.find(c)
}

// find is take behind white space, and where there is none.
func (r *Reader) find(c byte) bool {
	if r.err != nil {
		return false
	}
	if r.peek() != c {
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

// Object reads an object and calls fn at each member's value, which fn must read.
func (r *Reader) Object(fn func(key string)) {
	r.ObjectOf(nil, func(_ int, key string) { fn(key) })
}

// ObjectOf is Object with the place of a key among those that are known, at most 64, -1
// for another one. It is faster where the members come in that order: then a key is
// compared with the next ones, and cannot stand twice. Known keys need no escapes.
func (r *Reader) ObjectOf(known []string, fn func(i int, key string)) {
	if !r.open('{') {
		return
	}
	seen := keySet{base: len(r.keys), known: known}
	for first := true; r.peek() != '}'; first = false {
		if !first && !r.take(',') {
			return
		}
		r.peek()
		i, ok := seen.next(r)
		var key string
		if ok {
			key = known[i]
		} else {
			at := r.pos
			if key = r.Text(); r.err == nil && !seen.add(r, key) {
				r.pos = at
				r.fail(fmt.Sprintf("the key %q stands twice", key))
			}
			i = slices.Index(known, key)
		}
		if !r.take(':') {
			return
		}
		if fn(i, key); r.err != nil {
			return
		}
	}
	r.pos++
	r.keys = r.keys[:seen.base]
	r.depth--
}

// Array reads an array and calls fn at each element, which fn must read.
func (r *Reader) Array(fn func()) {
	if !r.open('[') {
		return
	}
	for first := true; r.peek() != ']'; first = false {
		if !first && !r.take(',') {
			return
		}
		if fn(); r.err != nil {
			return
		}
	}
	r.pos++
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

// Value is Raw without a bound of its own on the nesting, for a value that is
// written again where it stood.
func (r *Reader) Value() string { return r.raw(MaxRaw - MaxDepth) }

// Raw reads any value, as strictly as the others, and returns its text.
func (r *Reader) Raw() string { return r.raw(0) }

func (r *Reader) raw(depth int) string {
	r.peek()
	start := r.pos
	r.skip(depth)
	if r.err != nil {
		return ""
	}
	return r.s[start:r.pos]
}

func (r *Reader) skip(depth int) {
	if r.err != nil {
		return
	}
	c := r.peek()
	if (c == '{' || c == '[') && depth == MaxRaw {
		r.fail(fmt.Sprintf("a value of more than %d levels", MaxRaw))
		return
	}
	switch c {
	case '{':
		r.Object(func(string) { r.skip(depth + 1) })
	case '[':
		r.Array(func() { r.skip(depth + 1) })
	case '"':
		_ = r.take('"') && r.chars(nil)
	case 't', 'f':
		r.Bool()
	case 'n':
		r.word("null")
	default:
		r.number()
	}
}

// keySet holds the keys of one object that is being read. Looking through a few
// beats a map; the filter spares even that for most; many go into a map, so that
// an object of a million keys costs no more for each.
type keySet struct {
	known  []string // by the caller, while they come in their order; these are not added
	passed int      // of the known ones, read or left out
	read   uint64   // which of them were read, one bit each

	base   int    // where they begin in Reader.keys
	filter uint64 // one bit a key, by length and ends: clear means not there
	many   map[string]struct{}
}

const fewKeys = 32

// next reads a key if it is a known one that is due. If not, those before it are
// added, and the object is read as any other from then on.
func (k *keySet) next(r *Reader) (int, bool) {
	rest := r.s[r.pos:]
	for i := k.passed; i < len(k.known); i++ {
		key := k.known[i]
		if n := len(key) + 1; len(rest) > n && rest[n] == '"' && rest[0] == '"' && rest[1:n] == key {
			r.pos += n + 1
			k.passed, k.read = i+1, k.read|1<<i
			return i, true
		}
	}
	for i, key := range k.known {
		if k.read>>i&1 != 0 {
			k.add(r, key)
		}
	}
	k.known = nil
	return 0, false
}

// add says whether the key is new.
func (k *keySet) add(r *Reader, key string) bool {
	bit := uint64(1) << (len(key) & 63)
	if key != "" {
		bit = 1 << ((uint(len(key)) + 7*uint(key[0]) + 13*uint(key[len(key)-1])) & 63)
	}
	switch {
	case k.many != nil:
		if _, ok := k.many[key]; ok {
			return false
		}
		k.many[key] = struct{}{}
		return true
	case k.filter&bit != 0:
		for _, have := range r.keys[k.base:] {
			if have == key {
				return false
			}
		}
	}
	k.filter |= bit
	r.keys = append(r.keys, key)
	if len(r.keys)-k.base > fewKeys {
		k.many = make(map[string]struct{}, 2*fewKeys)
		for _, have := range r.keys[k.base:] {
			k.many[have] = struct{}{}
		}
	}
	return true
}
