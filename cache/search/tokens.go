package search

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A tokenizer goes through the words of a text. A word is a run of letters and digits,
// in small letters and without diacritics, as FTS5's unicode61 has it. A character of a
// script that does not separate words is a word.
type tokenizer struct {
	text       string
	next       int
	start, end int    // of the word in text
	word       []byte // folded; valid until the next call
}

// folded is what becomes of an ASCII character, 0 for one that is in no word.
var folded = func() (t [utf8.RuneSelf]byte) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			t[c] = byte(c)
		case 'A' <= c && c <= 'Z':
			t[c] = byte(c) + 'a' - 'A'
		}
	}
	return t
}()

// scan finds the next word and reports whether there is one.
func (t *tokenizer) scan() bool {
	t.word = t.word[:0]
	for t.next < len(t.text) {
		at := t.next
		if c := t.text[at]; c < utf8.RuneSelf {
			t.next++
			if f := folded[c]; f != 0 {
				t.add(at)
				t.word = append(t.word, f)
			} else if len(t.word) > 0 {
				return true
			}
			continue
		}
		if t.wide(at) {
			return true
		}
	}
	return len(t.word) > 0
}

func (t *tokenizer) add(at int) {
	if len(t.word) == 0 {
		t.start = at
	}
	t.end = t.next
}

// wide takes a character that is not ASCII and reports whether a word ends with or before it.
func (t *tokenizer) wide(at int) bool {
	r, size := utf8.DecodeRuneInString(t.text[at:])
	switch {
	case unicode.Is(unicode.M, r): // belongs to the character before it
		t.next += size
		if len(t.word) > 0 {
			t.end = t.next
		}
		return false
	case r == utf8.RuneError && size == 1 || !unicode.IsLetter(r) && !unicode.IsNumber(r):
		t.next += size
		return len(t.word) > 0
	case alone(r):
		if len(t.word) > 0 {
			return true // it is the next word
		}
		t.next += size
		t.add(at)
		t.fold(r, at, size)
		return true
	}
	t.next += size
	before := len(t.word)
	if before == 0 {
		t.start = at
	}
	t.fold(r, at, size)
	t.end = t.next
	return false
}

// fold appends a letter in small and without its diacritics.
func (t *tokenizer) fold(r rune, at, size int) {
	d := norm.NFD.PropertiesString(t.text[at : at+size]).Decomposition()
	if d == nil {
		if !t.compose(r) {
			t.word = utf8.AppendRune(t.word, small(r))
		}
		return
	}
	for len(d) > 0 {
		r, n := utf8.DecodeRune(d)
		if d = d[n:]; !unicode.Is(unicode.M, r) {
			t.word = utf8.AppendRune(t.word, small(r))
		}
	}
}

// small is a letter in small. Sigma has another form at the end of a word.
func small(r rune) rune {
	if r = unicode.ToLower(r); r == 'ς' {
		return 'σ'
	}
	return r
}

// Hangul: a syllable is one character, or the letters that it is made of (Unicode, 3.12).
const (
	firstSyllable, lastSyllable = 0xac00, 0xd7a3
	firstLead, lastLead         = 0x1100, 0x1112
	firstVowel, lastVowel       = 0x1161, 0x1175
	beforeTail, lastTail        = 0x11a7, 0x11c2
	vowels                      = lastVowel - firstVowel + 1
	tails                       = lastTail - beforeTail + 1 // with none
)

// compose makes a syllable of Hangul of the last character of the word and a letter, if they are parts of one.
func (t *tokenizer) compose(r rune) bool {
	if r < firstVowel || r > lastTail {
		return false
	}
	last, size := utf8.DecodeLastRune(t.word)
	switch {
	case r <= lastVowel && last >= firstLead && last <= lastLead:
		r = firstSyllable + ((last-firstLead)*vowels+r-firstVowel)*tails
	case r > beforeTail && last >= firstSyllable && last <= lastSyllable && (last-firstSyllable)%tails == 0:
		r = last + r - beforeTail
	default:
		return false
	}
	t.word = utf8.AppendRune(t.word[:len(t.word)-size], r)
	return true
}

// alone says whether a character is of a script that does not separate words.
func alone(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}
