package redact

import "bytes"

// A line is one line of a text. Tools show lines with something before each: cat -n, grep -n and the readers of agents
// a number or the file's name, a diff its sign, a mail the sign of a quotation. A rule that looks at the beginning of
// a line looks at b[text:end], which begins behind the number and the name. A sign takes the place of a blank: it is a
// part of the indentation, and b[word] is the first byte that is neither.
type line struct {
	at, text, word, end int
	next                int  // where the line below begins
	escaped             bool // a newline is written \n, as in a string of JSON
}

// lineOf returns the line of b[i], whose text begins at b[i] or before. A long line begins later and ends sooner.
func lineOf(b []byte, i int) line {
	l := line{at: i}
	for l.at > max(0, i-maxHeader) && b[l.at-1] != '\n' && !escapedNewline(b, l.at-2) {
		l.at--
	}
	l.findEnd(b, true)
	if l.escaped && !escapedNewline(b, l.at-2) { // the first line of a string
		l.at += bytes.LastIndexByte(b[l.at:max(l.at, min(i, l.end))], '"') + 1
	}
	l.findText(b, i)
	return l
}

// below returns the line below l. Only below a line with a number or a name a line has one.
func (l line) below(b []byte) line {
	m := line{at: l.next}
	m.findEnd(b, l.escaped)
	m.findText(b, m.at)
	if l.text > l.at {
		m.findText(b, m.end)
	}
	if l.escaped { // the string may end within the line
		if n := bytes.IndexByte(b[m.word:m.end], '"'); n >= 0 {
			m.end = m.word + len(bytes.TrimRight(b[m.word:m.word+n], `\`))
			m.next = len(b)
		}
	}
	return m
}

// above returns the line above l. ok is false where there is none.
func (l line) above(b []byte) (above line, ok bool) {
	if l.at == 0 {
		return l, false
	}
	return lineOf(b, l.at-1), true
}

// indent is how far the line's first word is indented.
func (l line) indent() int { return l.word - l.text }

func (l *line) findEnd(b []byte, escaped bool) {
	text := b[l.at:min(len(b), l.at+2*maxQuoted)]
	l.next = l.at + len(text)
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		text, l.next = text[:n], l.at+n+1
	}
	if n := bytes.Index(text, []byte(`\n`)); n >= 0 && escaped {
		l.next = l.at + n + len(`\n`)
		text = bytes.TrimRight(bytes.TrimSuffix(bytes.TrimRight(text[:n], `\`), []byte(`\r`)), `\`)
		l.escaped = true
	}
	l.end = l.at + len(bytes.TrimRight(text, "\r"))
}

// findText finds where the text begins, at b[last] or before.
func (l *line) findText(b []byte, last int) {
	const maxMarks, maxSigns = 3, 4
	l.text = l.at
	for range maxMarks {
		if text := afterMark(b[:l.end], l.text); text <= last {
			l.text = text
		}
	}
	l.word = l.text
	if w := l.word; w < l.end && (b[w] == '+' || b[w] == '-') && (w+1 == l.end || b[w+1] != b[w]) {
		l.word++
	}
	for n := 0; n < maxSigns && l.word < l.end && (b[l.word] == '>' || b[l.word] == '<' && l.word+1 < l.end && b[l.word+1] == ' '); n++ {
		l.word = run(b[:l.end], l.word+1, blank, 1)
	}
	l.word = run(b[:l.end], l.word, blank, -1)
}

// numberEnds are what stands between the number of a line and the line. Before the last two there is no blank.
var numberEnds = [][]byte{[]byte("→"), []byte("\t"), []byte(`\u2192`), []byte(`\t`), []byte(" │ "), []byte(":"), []byte("-")}

// afterMark returns where the number, or the name of a file with or without a number, ends with which b[at:] begins:
// "   12→", "   12\t", "12:", "12-", "file.go:12:", "file.go-12-", "file.go:". It returns at where there is none.
func afterMark(b []byte, at int) int {
	const maxIndent = 8
	from := run(b, at, blank, maxIndent)
	to := lineNumber(b, from)
	for n, end := range numberEnds {
		if to > from && bytes.HasPrefix(b[to:], end) && (from == at || n < len(numberEnds)-2) {
			return to + len(end)
		}
	}
	end := runUntil(b[:min(len(b), at+maxAuthority)], at, fileEnd)
	name := b[at:end]
	if bytes.IndexByte(name, '.') < 0 && bytes.IndexByte(name, '/') < 0 {
		return at
	}
	for n, c := range name {
		if to := lineNumber(b, at+n+1); c == '-' && to > at+n+1 && to < len(b) && b[to] == '-' {
			return to + 1
		}
	}
	return afterName(b, at, end)
}

// afterName is afterMark for the name of a file b[at:end].
func afterName(b []byte, at, end int) int {
	if end >= len(b) || b[end] != ':' || end+1 < len(b) && (b[end+1] == ':' || b[end+1] == '/') {
		return at
	}
	if to := lineNumber(b, end+1); to > end+1 && to < len(b) && b[to] == ':' {
		return to + 1
	}
	return end + 1
}

func lineNumber(b []byte, at int) (end int) {
	const maxDigits = 9
	return run(b, at, digits, maxDigits)
}

// escapedNewline reports whether \n stands at b[i].
func escapedNewline(b []byte, i int) bool {
	return i >= 0 && i+1 < len(b) && b[i] == '\\' && b[i+1] == 'n'
}

// afterEscape returns i, or i+1 where b[i] is the n or the t of an escape.
func afterEscape(b []byte, i int) int {
	if i > 0 && i < len(b) && b[i-1] == '\\' && (b[i] == 'n' || b[i] == 't') {
		return i + 1
	}
	return i
}

// beginsLine reports whether nothing stands before b[i] on its line but blanks, bars, marks of code, a cell with a
// number, and what a tool shows before a line.
func beginsLine(b []byte, i int) bool {
	from := skipBack(b, i, cellGap, maxName)
	if number := skipBack(b, from, digits, maxName); number < from {
		from = skipBack(b, number, cellGap, maxName)
	}
	switch {
	case from == 0 || b[from-1] == '\n' || escapedNewline(b, from-2):
		return true
	case !markEnd[b[from-1]] && afterEscape(b, from-1) == from-1:
		return false
	}
	at := run(b, lineOf(b, i).word, cellGap, -1)
	if number := run(b, at, digits, maxName); number > at {
		at = run(b, number, cellGap, -1)
	}
	return at >= i
}

// spaceEnd returns where the space ends that begins at b[at], and what a tool shows before the lines within.
func spaceEnd(b []byte, at int) int {
	for at < len(b) && space[b[at]] {
		if b[at] == '\n' {
			at = lineOf(b, at).below(b).word
		} else {
			at++
		}
	}
	return at
}

// lineStart returns where the line begins, if nothing stands before b[i] on it but blanks and what a tool shows
// before it; else i.
func lineStart(b []byte, i int) int {
	from := skipBack(b, i, blank, maxGap)
	if from == 0 || !markEnd[b[from-1]] && afterEscape(b, from-1) == from-1 {
		return i
	}
	if l := lineOf(b, i); l.word >= i {
		return l.at
	}
	return i
}
