package plain

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible says that a rune may stand in a text as it is: something that is drawn, or a
// space. Invisible are also letters and marks that Unicode says to draw as nothing, but
// for the two that choose how an emoji is drawn.
func Visible(r rune) bool {
	switch {
	case r >= ' ' && r < 0x7f:
		return true
	case r == '\ufe0e' || r == '\ufe0f':
		return true
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return false
	}
	return unicode.IsGraphic(r) || unicode.Is(unicode.Co, r)
}

// Printable says that a rune is drawn as something that looks different from a space and from
// nothing; of the spaces only U+0020. A command is shown as it is only if all its
// runes are.
func Printable(r rune) bool {
	const brailleBlank = '\u2800'
	return unicode.IsPrint(r) && Visible(r) && r != brailleBlank && !unicode.Is(unicode.Variation_Selector, r)
}

// Line is a text as it stands on one line of a terminal: what is not visible is an escape
// sequence, the tab and the line feed too.
func Line(s string) string {
	return lineBreaks.Replace(Text(s))
}

var lineBreaks = strings.NewReplacer("\n", `\n`, "\t", `\t`)

// Text is a text of several lines: what is not visible is an escape sequence, but for the tab and the
// line feed.
func Text(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !Visible(r) || r == utf8.RuneError }) {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == '\n' || r == '\t' {
			b = append(b, s[0])
		} else {
			b = AppendRune(b, r, s[:size], false)
		}
		s = s[size:]
	}
	return string(b)
}

// AppendRune appends a rune, which was decoded from raw, as it is shown: in a text or
// between the quotation marks of JSON.
func AppendRune[T string | []byte](b []byte, r rune, raw T, json bool) []byte {
	invalid := r == utf8.RuneError && len(raw) == 1
	switch {
	case !invalid && Visible(r):
		return append(b, raw...)
	case json && r > 0xffff:
		hi, lo := utf16.EncodeRune(r)
		return appendHex(appendHex(b, 'u', hi, 4), 'u', lo, 4)
	case json:
		return appendHex(b, 'u', r, 4) // of what is invalid U+FFFD, as everywhere in JSON
	case invalid:
		return appendHex(b, 'x', rune(raw[0]), 2)
	case r == '\r':
		return append(b, `\r`...)
	case r < 0x80:
		return appendHex(b, 'x', r, 2)
	case r <= 0xffff:
		return appendHex(b, 'u', r, 4)
	}
	return appendHex(b, 'U', r, 8)
}

func appendHex(b []byte, kind byte, r rune, digits int) []byte {
	b = append(b, '\\', kind)
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[r>>shift&0xf])
	}
	return b
}

// Clip is the begin of a text, at most so many bytes, without a character cut in two.
func Clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "")
	}
	return s
}

var colors = Pattern(`\x1b\[[0-9;:]*m`)

// Uncolored is a text without the sequences that set colours.
func Uncolored(s string) string { return colors().ReplaceAllString(s, "") }
