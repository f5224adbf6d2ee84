package plain

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Quote writes a command on one line as a shell would have to be given it. A word in
// which a rune is not printable, or that has many spaces in a row, is written as $'...'
// with those bytes in octal, as bash, zsh and POSIX.1-2024 understand it: whoever reads
// the line sees each byte that would run. An older shell gets another word, and runs
// nothing that is in it.
func Quote(argv ...string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		switch {
		case !showsAll(w):
			words[i] = octal(w)
		case w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r))
		}):
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		default:
			words[i] = w
		}
	}
	return strings.Join(words, " ")
}

// Shell is a command for sh -c as it is where that is one line on which everything is
// seen, else as Quote writes it.
func Shell(command string) string {
	if showsAll(command) {
		return command
	}
	return octal(command)
}

// gap is a number of spaces that may push what follows out of sight.
const gap = "        "

// showsAll says that a text hides nothing from who sees it on a line.
func showsAll(s string) bool {
	return utf8.ValidString(s) && !strings.Contains(s, gap) && !strings.ContainsFunc(s, func(r rune) bool { return !Printable(r) })
}

// octal writes a word as $'...'. Octal has three digits whatever follows; \x and \u
// have as many as the shell and its locale please. A quotation mark is in octal as well:
// a shell that does not know $'...' takes \' for the end of the word.
func octal(s string) string {
	b := []byte("$'")
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if strings.HasPrefix(s, gap) {
			size = len(s) - len(strings.TrimLeft(s, " "))
			b = append(b, strings.Repeat(`\040`, size)...)
			s = s[size:]
			continue
		}
		switch {
		case r == '\\':
			b = append(b, `\\`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case Printable(r) && r != '\'' && !(r == utf8.RuneError && size == 1):
			b = append(b, s[:size]...)
		default:
			for i := range size {
				b = fmt.Appendf(b, `\%03o`, s[i])
			}
		}
		s = s[size:]
	}
	return string(append(b, '\''))
}
