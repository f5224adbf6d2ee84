package proc

import "unicode"

// Printable keeps what another process wrote from steering a terminal.
func Printable(s string) string {
	b := []rune(s)
	for i, r := range b {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			b[i] = '?'
		}
	}
	if len(b) > 200 {
		b = append(b[:199], '…')
	}
	return string(b)
}
