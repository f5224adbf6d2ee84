package redact

import "bytes"

const (
	pemOpen  = "-----BEGIN "
	pemClose = "-----END "
	pemDash  = "-----"
	pemLabel = "PRIVATE KEY"
	// pemReach bounds how far the end of a block is looked for when its body is
	// not plain: quoted, prefixed by a log's timestamps, on one line. A 16384 bit
	// RSA key is 13 KiB.
	pemReach = 32 << 10
)

// matchPEM takes a private key block, from its first line to its last, or as far
// as it goes when the last is missing: what was cut off is still a key.
func matchPEM(b []byte, i int) (span, int) {
	label := i + len(pemOpen)
	stop := bytes.Index(b[label:min(len(b), label+64)], []byte(pemDash))
	if stop < 0 || !bytes.Contains(b[label:label+stop], []byte(pemLabel)) {
		return span{}, i + 1
	}
	body := label + stop + len(pemDash)
	end := pemBody(b, body)
	if to := pemEnd(b, body); to > 0 {
		end = max(end, to)
	}
	if end == body {
		return span{}, i + 1 // the line alone, as prose about keys has it
	}
	return span{start: i, end: end, rank: rankToken, kind: "private-key"}, end
}

// matchPEMEnd takes the rest of a private key block whose first line is not there: the
// lines of base64 before its last line. It is what the end of an output begins with.
func matchPEMEnd(b []byte, i int) (span, int) {
	const minWord = 16
	label := i + len(pemClose)
	stop := bytes.Index(b[label:min(len(b), label+64)], []byte(pemDash))
	if stop < 0 || !bytes.Contains(b[label:label+stop], []byte(pemLabel)) {
		return span{}, label
	}
	start, short := i, 0
	long := false
	for at := i; at > 0 && i-at < pemReach; {
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
	}
	if !long {
		return span{}, label
	}
	end := label + stop + len(pemDash)
	return span{start: start, end: end, rank: rankToken, kind: "private-key"}, end
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

// pemEnd returns the end of the block's closing line, or 0.
func pemEnd(b []byte, body int) int {
	text := b[body:min(len(b), body+pemReach)]
	closing := bytes.Index(text, []byte(pemClose))
	if closing < 0 || bytes.Contains(text[:closing], []byte(pemOpen)) {
		return 0
	}
	rest := text[closing+len(pemClose):]
	stop := bytes.Index(rest[:min(len(rest), 64)], []byte(pemDash))
	if stop < 0 {
		return body + closing + len(pemClose)
	}
	return body + closing + len(pemClose) + stop + len(pemDash)
}

// pemBody walks over what a key's body is made of, in words: base64 of a line's
// length, the headers of an encrypted key between, and shorter words only with
// padding or at the very end of the text. It returns body itself when there is
// none.
func pemBody(b []byte, body int) int {
	const minWord = 16
	end := body
	for at := body; at < len(b); {
		at = pemSpace(b, at)
		to, name := run(b, at, pemWord, -1), run(b, at, dash, 64)
		switch {
		case to-at >= minWord, to > at && (to == len(b) || b[to-1] == '='):
			at, end = to, to
		case name > at && name < len(b) && b[name] == ':':
			line := bytes.IndexByte(b[name:min(len(b), name+128)], '\n')
			if line < 0 {
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
// quoting and diffs, and a newline that was escaped.
func pemSpace(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\r', '\n', '"', '\'', ',', '>', '|', '#':
			i++
		case '\\':
			if i+1 < len(b) && (b[i+1] == 'n' || b[i+1] == 'r' || b[i+1] == 't') {
				i++
			}
			i++
		default:
			return i
		}
	}
	return i
}
