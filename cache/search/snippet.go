package search

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// A Snippet is the part of a text in which the words of a query are, on one line.
type Snippet struct {
	Text  string   `json:"text"`
	Marks [][2]int `json:"marks"` // where the words are: the first byte and the one behind the last
}

// snippetBytes is about how long a snippet is.
const snippetBytes = 180

// snippet cuts the part with the most terms of what was found out of a text, and returns where these begin.
func snippet(text string, spans []span) (cut Snippet, at int) {
	best, most := 0, -1
	for i := range spans {
		var terms uint64
		n := 0
		for j := i; j < len(spans) && spans[j].to <= spans[i].from+snippetBytes*2/3; j++ {
			terms |= 1 << spans[j].term
			n++
		}
		if score := bits.OnesCount64(terms)*maxSpans + n; score > most {
			best, most = i, score
		}
	}
	from, to := 0, 0
	if len(spans) > 0 {
		from, to = spans[best].from, spans[best].to
		spans = spans[best:]
	}
	at = from
	from = begin(text, max(0, from-snippetBytes/4), from)
	to = end(text, to, min(len(text), from+snippetBytes))
	return flatten(text, from, to, spans), at
}

// begin is the first place from at on, before limit, where a word begins.
func begin(text string, at, limit int) int {
	if at == 0 {
		return 0
	}
	if i := strings.IndexAny(text[at:limit], " \n\t"); i >= 0 {
		return at + i + 1
	}
	for at < limit && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// end is the last place before at, not before least, where a word ends.
func end(text string, least, at int) int {
	at = max(at, least)
	if at >= len(text) {
		return len(text)
	}
	if i := strings.LastIndexAny(text[least:at], " \n\t"); i >= 0 {
		return least + i
	}
	for at > least && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// flatten is a part of a text with each run of white space as one space, and the marks in it.
func flatten(text string, from, to int, spans []span) (s Snippet) {
	var b strings.Builder
	s.Marks = [][2]int{}
	if from > 0 {
		b.WriteString("…")
	}
	write := func(part string) {
		for i := 0; i < len(part); i++ {
			c := part[i]
			if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
				if n := b.Len(); n > 0 && b.String()[n-1] != ' ' {
					b.WriteByte(' ')
				}
				continue
			}
			b.WriteByte(c)
		}
	}
	at := from
	for _, sp := range spans {
		if sp.from < at || sp.to > to { // within the one before it, or cut
			continue
		}
		write(text[at:sp.from])
		start := b.Len()
		write(text[sp.from:sp.to])
		s.Marks = append(s.Marks, [2]int{start, b.Len()})
		at = sp.to
	}
	write(text[at:to])
	if to < len(text) {
		b.WriteString("…")
	}
	s.Text = b.String()
	return s
}
