package search

import (
	"encoding/hex"
	"hash/maphash"
	"path"
	"slices"
	"strings"
	"unicode"
)

// maxWord is how much of a word is in the index, in bytes. The words of a query are cut there as
// well; what they lead to is compared whole.
const maxWord = 48

// A wordSet finds the different words of a document. The index has each once: where they are and
// how often follows from the text, when it is found.
type wordSet struct {
	buf   []byte
	table []slot
	turn  uint32
	word  []byte
}

type slot struct {
	turn     uint32
	from, to uint32 // in buf
}

var wordSeed = maphash.MakeSeed()

// of returns what is indexed of a document: its different words with spaces between, and
// one for its role, its tools and the names of its files.
func (s *wordSet) of(d *Document) string {
	s.buf = s.buf[:0]
	s.turn++
	if need := len(d.Text) + 64; len(s.table) < need || s.turn == 0 {
		size := 1 << 12
		for size < need {
			size *= 2
		}
		s.table, s.turn = make([]slot, size), 1
	}
	t := tokenizer{text: d.Text, word: s.word}
	for t.scan() {
		if len(t.word) > 0 {
			s.add(t.word[:min(len(t.word), maxWord)])
		}
	}
	s.word = t.word
	s.tag('r', d.Role)
	for tool := range strings.FieldsSeq(d.Tool) {
		s.tag('t', tool)
	}
	for _, f := range d.Files {
		s.tag('f', path.Base(f))
	}
	return string(s.buf)
}

func (s *wordSet) add(word []byte) {
	mask := uint64(len(s.table) - 1)
	for i := maphash.Bytes(wordSeed, word) & mask; ; i = (i + 1) & mask {
		x := &s.table[i]
		if x.turn != s.turn {
			from := len(s.buf)
			s.buf = append(append(s.buf, word...), ' ')
			*x = slot{s.turn, uint32(from), uint32(from + len(word))}
			return
		}
		if string(s.buf[x.from:x.to]) == string(word) {
			return
		}
	}
}

func (s *wordSet) tag(kind byte, text string) {
	if text != "" {
		s.buf = append(append(s.buf, tag(kind, text)...), ' ')
	}
}

// maxTag is how much of a role, a tool or the name of a file is in the index, in bytes. What a tag leads
// to is compared whole, as with maxWord.
const maxTag = 64

// tag is the word for a role, a tool or the name of a file. It begins with a character that
// no text has in a word, and FTS5's tokenizer takes for one.
func tag(kind byte, text string) string {
	text = strings.Map(folding, text)
	return "\uf8ff" + string(kind) + hex.EncodeToString([]byte(text[:min(len(text), maxTag)]))
}

// folding maps all letters that strings.EqualFold takes for the same to one of them.
func folding(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// An expression is a query for FTS5, of which the words are quoted. It finds all documents that
// match, and others: those are compared.
type expression struct {
	all string
	// easy leaves out the beginnings that very many words have: it finds more. It is "" if nothing is left.
	easy  string
	broad bool // there are such beginnings
}

// expression makes the expression of a query. words returns the words of the index that begin so.
func (q *Query) expression(words func(prefix string) ([]string, error)) (e expression, err error) {
	var must, broad, not []string
	for _, t := range q.terms {
		if t.not {
			// A word as long as maxWord may be the beginning of a longer one, which is no match.
			if w := q.words[t.from]; t.to == t.from+1 && (len(w) < maxWord || t.prefix && len(w) == maxWord) {
				not = append(not, quoted(string(w), t.prefix))
			}
			continue
		}
		for i := t.from; i < t.to; i++ {
			word := string(q.words[i][:min(len(q.words[i]), maxWord)])
			if !t.prefix || i < t.to-1 {
				must = append(must, quoted(word, false))
				continue
			}
			all, err := words(word)
			switch {
			case err != nil:
				return e, err
			case len(all) > maxBegin:
				broad = append(broad, quoted(word, true))
			case len(all) > 0:
				must = append(must, anyOf(all))
			default:
				must = append(must, quoted(word, false))
			}
		}
	}
	must = append(must, q.tags()...)
	return expression{all: with(append(slices.Clip(must), broad...), not), easy: with(must, not), broad: len(broad) > 0}, nil
}

// tags are the words for what else a document must have.
func (q *Query) tags() (all []string) {
	for _, f := range [...]struct {
		kind byte
		text string
	}{{'r', q.Role}, {'t', q.Tool}, {'f', base(q.File)}} {
		if f.text != "" {
			all = append(all, quoted(tag(f.kind, f.text), false))
		}
	}
	return all
}

// with asks for all of some words and none of others, "" if there are none that must occur.
func with(must, not []string) string {
	e := strings.Join(must, " AND ")
	if len(must) > 0 && len(not) > 0 {
		e = "(" + e + ") NOT (" + strings.Join(not, " OR ") + ")"
	}
	return e
}

// maxBegin is of how many words that begin so each is asked for.
const maxBegin = 256

// anyOf asks for one of the words that begin so, which FTS5 reads the newest of as they are needed; the
// beginning of a word it would look up whole, in all entries.
func anyOf(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = quoted(w, false)
	}
	return "(" + strings.Join(all, " OR ") + ")"
}

func base(file string) string {
	if file == "" {
		return ""
	}
	return path.Base(file)
}

func quoted(word string, prefix bool) string {
	if prefix {
		return `"` + word + `"*`
	}
	return `"` + word + `"`
}
