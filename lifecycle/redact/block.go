package redact

import "bytes"

// blockScalar returns the text of a block scalar of YAML whose sign ends at b[i]: "|" or ">", perhaps with how it is
// indented and ended and a comment, and behind that lines that are indented more than the one of the name. ok is
// false where there is none.
func blockScalar(b []byte, i int) (from, to int, ok bool) {
	at := run(b, i, blank, maxGap)
	if at == len(b) || b[at] != '|' && b[at] != '>' {
		return 0, 0, false
	}
	at = run(b, at+1, blockSign, 3)
	if at = run(b, at, blank, maxGap); at < len(b) && b[at] == '#' {
		at = runUntil(b, at, lineEnd)
	}
	if at < len(b) && b[at] == '\r' {
		at++
	}
	if at >= len(b) || b[at] != '\n' {
		return 0, 0, false
	}
	most := indent(b, lineBegin(b, i))
	for at++; at < len(b) && at-i < maxQuoted; {
		line := lineAt(b, at)
		text := bytes.TrimRight(line, " \t\r")
		if in := indent(b, at); len(text) > 0 {
			if in <= most {
				break
			}
			if from == 0 {
				from = at + in
			}
			to = at + len(text)
		}
		at += len(line) + 1
	}
	return from, to, from > 0
}

// indent is how far the line from b[at] on is indented.
func indent(b []byte, at int) int { return run(b, at, blank, -1) - at }

// blockSecret decides about the text of a block scalar of that kind. Several lines are one value, cut into lines.
func blockSecret(kind string, text []byte) bool {
	var joined []byte
	for line := range bytes.Lines(bare(text)) {
		joined = append(joined, bytes.TrimSpace(line)...)
	}
	_, _, ok := secretIn(kind, joined, true)
	return ok
}
