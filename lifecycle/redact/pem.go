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
	return span{ctx: i, start: i, end: end, rank: rankToken, kind: "private-key"}, end
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
