package redact

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape decodes the inside of a valid JSON string, which is returned itself where it
// has no escapes. Bytes that are no UTF-8 stay as they are; half a surrogate pair becomes U+FFFD.
func unescape(raw []byte) []byte {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for ; i >= 0; i = bytes.IndexByte(raw, '\\') {
		c, width := escape(raw[i:])
		out = utf8.AppendRune(append(out, raw[:i]...), c)
		raw = raw[i+width:]
	}
	return append(out, raw...)
}

// escape decodes the escape that raw begins with and returns its width.
func escape(raw []byte) (rune, int) {
	switch raw[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		c := unit(raw)
		if !utf16.IsSurrogate(c) {
			return c, 6
		}
		if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			if pair := utf16.DecodeRune(c, unit(raw[6:])); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return rune(raw[1]), 2 // quote, backslash, slash
}

// unit reads the four digits of \uXXXX, which json.Unmarshal has checked.
func unit(raw []byte) rune {
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
