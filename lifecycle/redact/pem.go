package redact

import "bytes"

// An armor is how the lines around a key begin and end: of PEM, and of SSH2.
type armor struct{ open, close, dash string }

var armors = []armor{{"-----BEGIN ", "-----END ", "-----"}, {"---- BEGIN ", "---- END ", "----"}}

const (
	// The lines around the secret part of a key of PuTTY.
	puttyOpen, puttyClose = "Private-Lines: ", "Private-MAC: "
	pemLabel              = "PRIVATE KEY"
	// pemReach bounds how far the end of a block is looked for when its body is
	// not plain: quoted, prefixed by a log's timestamps, on one line. A 16384 bit
	// RSA key is 13 KiB.
	pemReach = 32 << 10
)

// match takes a private key block, from its first line to its last, or as far
// as it goes when the last is missing: what was cut off is still a key.
func (a *armor) match(b []byte, i int) (span, int) {
	label := i + len(a.open)
	stop := bytes.Index(b[label:min(len(b), label+64)], []byte(a.dash))
	if stop < 0 || !bytes.Contains(b[label:label+stop], []byte(pemLabel)) {
		return span{}, i + 1
	}
	body := label + stop + len(a.dash)
	end := pemBody(b, body)
	if to := a.end(b, body); to > 0 {
		end = max(end, to)
	}
	if end == body {
		return span{}, i + 1 // the line alone, as prose about keys has it
	}
	return span{start: i, end: end, rank: rankToken, kind: "private-key"}, end
}

// matchEnd takes the rest of a private key block whose first line is not there: the
// lines of base64 before its last line. It is what the end of an output begins with.
func (a *armor) matchEnd(b []byte, i int) (span, int) {
	label := i + len(a.close)
	stop := bytes.Index(b[label:min(len(b), label+64)], []byte(a.dash))
	if stop < 0 || !bytes.Contains(b[label:label+stop], []byte(pemLabel)) {
		return span{}, label
	}
	start, ok := keyBefore(b, i)
	if !ok {
		return span{}, label
	}
	end := label + stop + len(a.dash)
	return span{start: start, end: end, rank: rankToken, kind: "private-key"}, end
}

// keyBefore returns where the lines of base64 before b[i] begin. ok is false where there are none.
func keyBefore(b []byte, i int) (start int, ok bool) {
	const minWord = 16
	start, short := i, 0
	long := false
	for at := lineStart(b, i); at > 0 && i-at < pemReach; {
		to := pemSpaceBack(b, at)
		at = skipBack(b, to, pemWord, pemReach)
		switch {
		case at == to:
			at = 0 // neither space nor a word
			continue
		case to-at >= minWord:
			long = true
		case at == 0:
			long = true // a line that was cut
		case long || short == 2:
			at = 0
			continue
		default:
			short++ // the last line, and the checksum of PGP
			continue
		}
		start = at
		at = lineStart(b, at)
	}
	return start, long
}

// pemSpaceBack is pemSpace backwards from b[i].
func pemSpaceBack(b []byte, i int) int {
	for i > 0 {
		escaped := i > 1 && b[i-2] == '\\' && (b[i-1] == 'n' || b[i-1] == 'r' || b[i-1] == 't')
		switch {
		case escaped:
			i -= 2
		case bytes.IndexByte([]byte(" \t\r\n\"',>|#\\"), b[i-1]) >= 0:
			i--
		default:
			return i
		}
	}
	return i
}

// end returns the end of the block's closing line, or 0.
func (a *armor) end(b []byte, body int) int {
	text := b[body:min(len(b), body+pemReach)]
	closing := bytes.Index(text, []byte(a.close))
	if closing < 0 || bytes.Contains(text[:closing], []byte(a.open)) {
		return 0
	}
	rest := text[closing+len(a.close):]
	stop := bytes.Index(rest[:min(len(rest), 64)], []byte(a.dash))
	if stop < 0 {
		return body + closing + len(a.close)
	}
	return body + closing + len(a.close) + stop + len(a.dash)
}

// pemBody walks over what a key's body is made of, in words: base64 of a line's
// length, the headers of an encrypted key between, and shorter words only with
// padding or at the very end of the text. It returns body itself when there is
// none.
func pemBody(b []byte, body int) int {
	const minWord, maxHeaders = 16, 16
	end, headers := body, 0
	for at := body; at < len(b); {
		at = pemSpace(b, at)
		to, name := run(b, at, pemWord, -1), run(b, at, dash, 64)
		switch {
		case to-at >= minWord, to > at && (to == len(b) || b[to-1] == '='):
			at, end = to, to
		case name > at && name < len(b) && b[name] == ':':
			line := bytes.IndexByte(b[name:min(len(b), name+128)], '\n')
			if headers++; line < 0 || headers > maxHeaders {
				return end
			}
			at = name + line
		default:
			return end
		}
	}
	return end
}

// pemSpace skips what may stand between two lines: space, quotes, the marks of
// quoting and diffs, what a tool shows before a line, and a newline that was escaped.
func pemSpace(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\r', '"', '\'', ',', '>', '|', '#':
			i++
		case '\n':
			i = lineOf(b, i).below(b).word
		case '\\':
			switch {
			case escapedNewline(b, i):
				i = lineOf(b, i).below(b).word - 1
			case i+1 < len(b) && (b[i+1] == 'r' || b[i+1] == 't'):
				i++
			}
			i++
		default:
			return i
		}
	}
	return i
}

// matchPuTTY is called at "Private-Lines: " and takes the rest of a key of PuTTY: the lines of base64, and the sum over
// them where it is there.
func matchPuTTY(b []byte, i int) (span, int) {
	body := run(b, i+len(puttyOpen), digits, 4)
	end := pemBody(b, body)
	if at := pemSpace(b, end); bytes.HasPrefix(b[at:], []byte(puttyClose)) {
		end = run(b, at+len(puttyClose), hex, -1)
	}
	if body == i+len(puttyOpen) || end == body {
		return span{}, body
	}
	return span{start: i, end: end, rank: rankToken, kind: "private-key"}, end
}

// matchPuTTYEnd is called at "Private-MAC: " and takes what is left of a key whose first lines are not there.
func matchPuTTYEnd(b []byte, i int) (span, int) {
	end := run(b, i+len(puttyClose), hex, -1)
	start, ok := keyBefore(b, i)
	if !ok || end == i+len(puttyClose) {
		return span{}, i + len(puttyClose)
	}
	return span{start: start, end: end, rank: rankToken, kind: "private-key"}, end
}
