package plain

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// AsWritten returns JSON in which each character stands as itself that needs no escape: files escape <, >
// and &, and some programs all that is not ASCII. What is not visible keeps its escape.
func AsWritten(data []byte) string {
	if bytes.IndexByte(data, '\\') < 0 {
		return string(data)
	}
	var b strings.Builder
	for i := 0; i < len(data); {
		r, n := character(data[i:])
		if r < 0 {
			b.Write(data[i : i+n])
		} else {
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// character returns the character that data begins with an escape of, and the escape's length. The
// character is -1 for one that stays, and for what is no escape.
func character(data []byte) (rune, int) {
	switch {
	case data[0] != '\\' || len(data) < 2:
		return -1, 1
	case data[1] == '/':
		return '/', 2
	case data[1] != 'u':
		return -1, 2
	}
	r, n := escaped(data)
	if r < 0 || r == utf8.RuneError || r == '"' || r == '\\' || !Visible(r) {
		return -1, 2
	}
	return r, n
}

// escaped is what the \uXXXX, or the pair of them, that data begins with stands for, and its length.
func escaped(data []byte) (rune, int) {
	r, n := unit(data), 6
	if utf16.IsSurrogate(r) && len(data) > n {
		r, n = utf16.DecodeRune(r, unit(data[n:])), 12
	}
	return r, n
}

// unit is what \uXXXX stands for, -1 for something else.
func unit(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// Values returns JSON in whose strings what is not visible is an escape sequence, as [Text] has it, for a program
// that shows their values as they are.
func Values(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		raw := data[:n]
		if r == '\\' && len(data) > 1 {
			switch n = 2; data[1] {
			case 'u':
				if r, n = escaped(data); r == utf8.RuneError {
					n = 6 // itself, or half of a pair
				}
				raw = utf8.AppendRune(nil, r)
			case 'b', 'f', 'r':
				raw = []byte{"\b\f\r"[strings.IndexByte("bfr", data[1])]}
				r = rune(raw[0])
			}
		}
		n = min(n, len(data))
		if r < 0 || r == '\n' || r == '\t' || r == utf8.RuneError && n > 1 || r != utf8.RuneError && Visible(r) {
			out = append(out, data[:n]...)
		} else {
			out = AppendRune(append(out, '\\'), r, raw, false)
		}
		data = data[n:]
	}
	return out
}
