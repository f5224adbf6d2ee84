package conversation

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// AsWritten returns JSON in which each character stands as itself that needs no escape: files escape <, >
// and &, and some programs all that is not ASCII. What is not visible keeps its escape.
func AsWritten(data strictjson.Value) string {
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
	r, n := unit(data), 6
	if utf16.IsSurrogate(r) && len(data) > n {
		r, n = utf16.DecodeRune(r, unit(data[n:])), 12
	}
	if r < 0 || r == utf8.RuneError || r == '"' || r == '\\' || !plain.Visible(r) {
		return -1, 2
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
