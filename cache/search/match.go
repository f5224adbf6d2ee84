package search

import (
	"bytes"
	"math/bits"
)

// A match is what of a query a text has.
type match struct {
	counts [maxWords]uint16 // by the last word of a term
	spans  []span           // of the terms, as they occur; at most maxSpans
	words  int              // of the text
}

type span struct{ from, to, term int }

const maxSpans = 64

// A matcher finds the terms of a query in texts. It is used by one goroutine.
type matcher struct {
	*Query
	not  uint64 // last words of terms that must not occur
	must uint64 // and of those that must
	pre  uint64 // bits of words of which a word's beginning is enough
	tok  tokenizer
}

func newMatcher(q *Query) *matcher {
	m := &matcher{Query: q}
	for _, t := range q.terms {
		bit := uint64(1) << (t.to - 1)
		if t.not {
			m.not |= bit
		} else {
			m.must |= bit
		}
		if t.prefix {
			m.pre |= bit
		}
	}
	return m
}

// match says whether a text has all that it must and nothing that it must not. got is nil
// for a caller that only asks that.
func (m *matcher) match(text string, got *match) bool {
	var state, seen uint64
	var starts [maxWords]int // of the last words
	words := 0
	if got != nil {
		*got = match{spans: got.spans[:0]}
	}
	word := m.tok.word
	for m.tok = (tokenizer{text: text, word: word}); m.tok.scan(); words++ {
		starts[words%maxWords] = m.tok.start
		state = (state<<1 | m.first) & m.bits()
		ended := state & m.last
		if ended == 0 {
			continue
		}
		if seen |= ended; seen&m.not != 0 {
			return false
		}
		if got == nil {
			if seen == m.must && m.not == 0 {
				return true
			}
			continue
		}
		got.add(m, ended, words, &starts)
	}
	if got != nil {
		got.words = words
	}
	return seen&m.must == m.must
}

// bits are the words of the query that the current word is. A state of another term ends with
// the first word of the next, so that a shift never leads from one to the other.
func (m *matcher) bits() (mask uint64) {
	w := m.tok.word
	if len(w) == 0 || !m.head[w[0]] {
		return 0
	}
	for i, q := range m.words {
		bit := uint64(1) << i
		if len(w) >= len(q) && (len(w) == len(q) || m.pre&bit != 0) && bytes.Equal(w[:len(q)], q) {
			mask |= bit
		}
	}
	return mask
}

func (got *match) add(m *matcher, ended uint64, word int, starts *[maxWords]int) {
	for ; ended != 0; ended &= ended - 1 {
		last := bits.TrailingZeros64(ended)
		if got.counts[last] < 1<<16-1 {
			got.counts[last]++
		}
		if len(got.spans) < maxSpans {
			from := last
			for m.first&(1<<from) == 0 {
				from--
			}
			got.spans = append(got.spans, span{starts[(word-(last-from))%maxWords], m.tok.end, last})
		}
	}
}

// score is BM25's term frequency, saturated and normalised by length. Every match has every
// word, so how rare a word is would weigh all matches alike. What a tool printed counts less
// than what somebody said.
func (got *match) score(m *matcher, role string) float64 {
	const k1, b, usual = 1.2, 0.5, 120
	var sum float64
	norm := k1 * (1 - b + b*float64(got.words)/usual)
	for must := m.must; must != 0; must &= must - 1 {
		tf := float64(got.counts[bits.TrailingZeros64(must)])
		sum += tf / (tf + norm)
	}
	if role == "tool" {
		sum *= 0.6
	}
	return sum
}
