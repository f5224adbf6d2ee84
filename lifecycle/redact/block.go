package redact

import "bytes"

// blockScalar returns where the text of a block scalar of YAML stands whose name has its sign before b[i], and its
// lines joined: "|" or ">", perhaps with how it is indented and ended and a comment, and behind that lines that are
// indented more than the one of the name. ok is false where no block begins, and to is 0 where it is empty.
func blockScalar(b []byte, i int) (from, to int, value []byte, ok bool) {
	at := run(b, properties(b, i), blank, maxGap)
	if at == len(b) || b[at] != '|' && b[at] != '>' {
		return 0, 0, nil, false
	}
	at = run(b, at+1, blockSign, 3)
	l := lineOf(b, i-1)
	if at = run(b, at, blank, maxGap); at < l.end && b[at] != '#' {
		return 0, 0, nil, false
	}
	most := l.indent()
	for l = l.below(b); l.at < len(b) && l.at-i < maxQuoted; l = l.below(b) {
		text := bytes.TrimRight(b[l.word:l.end], " \t")
		if len(text) == 0 {
			continue
		}
		if l.indent() <= most {
			break
		}
		if to == 0 {
			from = l.word
		}
		to = l.word + len(text)
		value = append(value, bare(text)...)
	}
	return from, to, value, true
}

// properties returns where the anchor and the type of a value of YAML end that stand behind b[i]: &name !!str.
func properties(b []byte, i int) int {
	for range 2 {
		at := run(b, i, blank, maxGap)
		if at == i || at+2 >= len(b) || b[at] != '&' && (b[at] != '!' || b[at+1] != '!') {
			break
		}
		end := run(b, at+2, dash, maxName)
		if end == len(b) || !blank[b[end]] {
			break
		}
		i = end
	}
	return i
}

// isTag reports whether the value behind b[i] has a tag that says where it comes from: !Ref Name, !secret name.
func isTag(b []byte, i int) bool {
	at := run(b, i, blank, maxGap)
	if at == len(b) || b[at] != '!' {
		return false
	}
	end := run(b, at+1, alphabet, maxName)
	return end > at+1 && end < len(b) && blank[b[end]]
}
