package files

import "strings"

// A byteSet says which bytes a class in brackets stands for.
type byteSet [256]bool

func (s *byteSet) addRange(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s[c] = true
	}
}

// class reads the class that p begins with, as git's wildmatch.c does: a bracket
// right behind the opening one, or behind the '!' or '^' of a negation, is a member,
// so is a '-' at either end, and '\' quotes. n is its length; false says that it has
// no end or a [:name:] that is unknown, which makes a pattern that matches nothing.
func class(p string) (set byteSet, n int, ok bool) {
	r := classReader{p: p, i: 1, prev: -1}
	negated := len(p) > 1 && (p[1] == '!' || p[1] == '^')
	if negated {
		r.i++
	}
	for first := true; ; first = false {
		if r.i >= len(p) {
			return set, 0, false
		}
		if p[r.i] == ']' && !first {
			break
		}
		if !r.member() {
			return set, 0, false
		}
		r.i++
	}
	if negated {
		for c := range r.set {
			r.set[c] = !r.set[c]
		}
	}
	return r.set, r.i + 1, true
}

// A classReader is within a class. What it reads ends at p[i].
type classReader struct {
	p    string
	i    int
	prev int // what a range may begin with, -1 for nothing
	set  byteSet
}

// member reads a byte, a range's end or a named class. It returns false where the class
// is none.
func (r *classReader) member() bool {
	rest := r.p[r.i:]
	switch {
	case rest[0] == '-' && r.prev >= 0 && len(rest) > 1 && rest[1] != ']':
		r.i++
		if !r.quoted() {
			return false
		}
		r.set.addRange(byte(r.prev), r.p[r.i])
		r.prev = -1
		return true
	case strings.HasPrefix(rest, "[:"):
		return r.named(rest[2:])
	}
	if !r.quoted() {
		return false
	}
	r.set[r.p[r.i]], r.prev = true, int(r.p[r.i])
	return true
}

// quoted passes over the '\\' of a quoted byte, and says whether there is a byte.
func (r *classReader) quoted() bool {
	if r.p[r.i] == '\\' {
		r.i++
	}
	return r.i < len(r.p)
}

// named reads what follows on "[:".
func (r *classReader) named(rest string) bool {
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return false
	}
	name, named := strings.CutSuffix(rest[:end], ":")
	if !named { // a bracket and a colon, as they stand
		r.set['['], r.prev = true, '['
		return true
	}
	in, known := posix[name]
	if !known {
		return false
	}
	for c := range 128 {
		r.set[c] = r.set[c] || in(byte(c))
	}
	r.i, r.prev = r.i+2+end, -1
	return true
}

// posix are the named classes, of ASCII only.
var posix = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  isGraph,
	"lower":  isLower,
	"print":  func(c byte) bool { return c == ' ' || isGraph(c) },
	"punct":  func(c byte) bool { return isGraph(c) && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' },
	"upper":  isUpper,
	"xdigit": func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' },
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isAlpha(c byte) bool { return isLower(c) || isUpper(c) }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isGraph(c byte) bool { return c > ' ' && c < 0x7f }

// spell writes the class of a set for doublestar, false when it is empty. No class
// stands for a slash.
func spell(b *strings.Builder, set byteSet) bool {
	set['/'] = false
	if set == (byteSet{}) {
		return false
	}
	b.WriteByte('[')
	for c, in := range set {
		if in && c > 0 {
			escape(b, byte(c))
		}
	}
	b.WriteByte(']')
	return true
}
