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
	i := 1
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	prev := -1 // what a range may begin with
	for first := true; ; first = false {
		if i >= len(p) {
			return set, 0, false
		}
		c := p[i]
		if c == ']' && !first {
			break
		}
		switch {
		case c == '-' && prev >= 0 && i+1 < len(p) && p[i+1] != ']':
			i++
			if p[i] == '\\' {
				if i++; i >= len(p) {
					return set, 0, false
				}
			}
			set.addRange(byte(prev), p[i])
			prev = -1
		case c == '[' && i+1 < len(p) && p[i+1] == ':':
			end := strings.IndexByte(p[i+2:], ']')
			if end < 0 {
				return set, 0, false
			}
			name, named := strings.CutSuffix(p[i+2:i+2+end], ":")
			if !named { // a bracket and a colon, as they stand
				set['['], prev = true, '['
				break
			}
			in, known := posix[name]
			if !known {
				return set, 0, false
			}
			for c := range 128 {
				set[c] = set[c] || in(byte(c))
			}
			i, prev = i+2+end, -1
		default:
			if c == '\\' {
				if i++; i >= len(p) {
					return set, 0, false
				}
				c = p[i]
			}
			set[c], prev = true, int(c)
		}
		i++
	}
	if negated {
		for c := range set {
			set[c] = !set[c]
		}
	}
	return set, i + 1, true
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
