package redact

import (
	"bytes"
	"strings"
)

// placeholder reports whether value stands for a secret that is not there: a
// variable, a template, a format verb, stars.
func placeholder(value []byte) bool {
	if len(value) == 0 {
		return true
	}
	switch value[0] {
	case '$', '<', '{', '%', '[', '(':
		// $2a$, $6$ and $argon2 begin a hash and no variable's name.
		return !(len(value) > 20 && value[0] == '$' && (isDigit(value[1]) || string(value[1:4]) == "arg"))
	}
	for _, c := range value {
		if c != value[0] && c != '.' {
			return bytes.Contains(value, []byte("${")) || bytes.Contains(value, []byte("{{"))
		}
	}
	return true
}

// mixed reports that value has two of: digits, small letters, capitals beyond
// the first byte.
func mixed(value []byte) bool {
	u, l, d := cases(value[1:])
	return d && (u || l) || u && l || isDigit(value[0]) && (u || l)
}

// randomToken reports whether value looks drawn by lot: no spaces, long enough,
// and either digits and letters take turns, or capitals and small letters do
// more than camel case lets them.
func randomToken(value []byte) bool {
	const minLen, minTurns, minEach = 12, 3, 2
	if len(value) < minLen || identifiers(value) {
		return false
	}
	value = value[:min(len(value), sureBytes)]
	var turns, rises, pairs int
	for i, c := range value {
		if c <= ' ' {
			return false
		}
		if i == 0 {
			continue
		}
		p := value[i-1]
		switch {
		case isDigit(c) && isLetter(p), isLetter(c) && isDigit(p):
			turns++
		case isUpper(c) && isLower(p):
			rises++
		case isUpper(c) && isUpper(p):
			pairs++
		}
	}
	return turns >= minTurns || rises >= minEach && pairs >= minEach
}

// likePassword reports whether value is what people and password stores make of
// a password. A plain word is none: "password: required", "password=secret".
func likePassword(value []byte, quoted bool) bool {
	const minLen, maxQuoted = 6, 128
	if len(value) < minLen || !quoted && isCode(value) {
		return false
	}
	if quoted && len(value) > maxQuoted {
		return randomToken(value)
	}
	return varied(value) || scrambled(value)
}

// varied reports whether value is one word of letters, digits and signs, of two of these at least.
func varied(value []byte) bool {
	var letter, digit, symbol bool
	for _, c := range value {
		switch {
		case c <= ' ':
			return false // a sentence or a phrase: not distinguishable from prose
		case isLetter(c), c >= 0x80:
			letter = true
		case isDigit(c):
			digit = true
		case strings.IndexByte(`-_.:/\`, c) < 0:
			symbol = true
		}
	}
	return letter && (digit || symbol) || digit && symbol
}

// scrambled reports whether value is of letters whose case changes as it does in no name: three or more of the parts
// that begin with a capital have no vowel.
func scrambled(value []byte) bool {
	const minLen, maxLen, minParts, most = 10, 64, 3, 4
	if len(value) < minLen || len(value) > maxLen {
		return false
	}
	parts, without, vowel := 1, 0, false
	for i, c := range value {
		if !isLetter(c) {
			return false
		}
		if i > 0 && isUpper(c) && isLower(value[i-1]) {
			if parts++; !vowel {
				without++
			}
			vowel = false
		}
		vowel = vowel || strings.IndexByte("aeiouyAEIOUY", c) >= 0
	}
	if !vowel {
		without++
	}
	return without >= minParts && len(value) < parts*most
}

// isCode reports whether value is a piece of a program: a selector, a pointer to something, *pkg.Type, or an element of
// something, options[ or Optional[string].
func isCode(value []byte) bool {
	from := run(value, 0, pointer, 2)
	to := run(value, from, selector, -1)
	return identifiers(value) || to > from && (from > 0 && to == len(value) || to < len(value) && value[to] == '[' && isLetter(value[from]))
}

// identifiers reports whether value is a selector of a program, config.v2.key:
// at least one dot, and names around it that are words, at most numbered.
func identifiers(value []byte) bool {
	dots, digits := 0, false
	for i, c := range value {
		switch {
		case c == '.':
			if i == 0 || i == len(value)-1 {
				return false
			}
			dots++
			digits = false
		case isDigit(c):
			if i == 0 || value[i-1] == '.' {
				return false
			}
			digits = true
		case isLetter(c) || c == '_':
			if digits {
				return false
			}
		default:
			return false
		}
	}
	return dots > 0
}

// isUUID reports whether value is a UUID, and at most an escape behind it.
func isUUID(value []byte) bool {
	const size = 36
	if len(value) < size || len(value) > size && dotted[value[size]] {
		return false
	}
	for i, c := range value[:size] {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !hex[c] {
			return false
		}
	}
	return true
}
