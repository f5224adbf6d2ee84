package search

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// A Query is what a document must have.
type Query struct {
	terms []term
	words [][]byte // of all terms, one after another; at most maxWords
	last  uint64   // bits of the words that end a term
	first uint64   // bits of the words that begin a term
	head  [256]bool

	Role  string
	Tool  string
	File  string // a path, or the end of one from one of its names on
	Since time.Time
	// Sources says which sources are meant; nil for all.
	Sources func(*Source) bool
}

// A term is a word, or words that follow each other.
type term struct {
	from, to int // of Query.words
	prefix   bool
	not      bool
}

// maxWords bounds a query, so that its words are bits of one number.
const maxWords = 64

// ErrQuery is wrapped by what is wrong with a query.
var ErrQuery = errors.New("cannot search")

// Parse reads a query. All of its words must occur in a document: a word, "words that
// follow each other", begin* of a word; -word must not occur. Case and diacritics do not
// count, and what is no letter or digit separates words: read_file is "read file". The
// error wraps ErrQuery.
func Parse(text string) (*Query, error) {
	q := &Query{}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		var t term
		if len(rest) > 1 && rest[0] == '-' {
			t.not, rest = true, rest[1:]
		}
		var word string
		if rest[0] == '"' {
			var closed bool
			if word, rest, closed = strings.Cut(rest[1:], `"`); !closed {
				return nil, fmt.Errorf(`%w: a " is not closed`, ErrQuery)
			}
		} else {
			end := strings.IndexAny(rest, " \t\r\n\"")
			if end < 0 {
				end = len(rest)
			}
			word, rest = rest[:end], rest[end:]
			t.prefix = strings.HasSuffix(word, "*")
		}
		q.add(t, word)
	}
	if len(q.words) > maxWords {
		return nil, fmt.Errorf("%w for more than %d words", ErrQuery, maxWords)
	}
	for _, t := range q.terms {
		q.first |= 1 << t.from
		q.last |= 1 << (t.to - 1)
	}
	for _, w := range q.words {
		q.head[w[0]] = true
	}
	return q, nil
}

// add adds a term that has words.
func (q *Query) add(t term, text string) {
	t.from = len(q.words)
	for tok := (tokenizer{text: text}); tok.scan(); {
		if len(tok.word) > 0 {
			q.words = append(q.words, append([]byte(nil), tok.word...))
		}
	}
	if t.to = len(q.words); t.to > t.from {
		q.terms = append(q.terms, t)
	}
}

// Empty says that a query asks for nothing that a document has: it has no word that must
// occur, and no file.
func (q *Query) Empty() bool {
	for _, t := range q.terms {
		if !t.not {
			return false
		}
	}
	return q.File == ""
}

// filters says whether all but the words of a document is as asked.
func (q *Query) filters(d *Document) bool {
	if q.Role != "" && !strings.EqualFold(q.Role, d.Role) || !q.Since.IsZero() && d.Time.Before(q.Since) {
		return false
	}
	return (q.Tool == "" || hasTool(d.Tool, q.Tool)) && (q.File == "" || touches(d.Files, q.File))
}

// since is the first millisecond that is asked for.
func (q *Query) since() int64 {
	if q.Since.IsZero() {
		return math.MinInt64
	}
	return q.Since.Add(time.Millisecond - 1).UnixMilli()
}

func hasTool(tools, tool string) bool {
	for t := range strings.FieldsSeq(tools) {
		if strings.EqualFold(t, tool) {
			return true
		}
	}
	return false
}

// touches says whether one of the paths is the file, or ends with it.
func touches(paths []string, file string) bool {
	for _, p := range paths {
		if p == file || strings.HasSuffix(p, file) && p[len(p)-len(file)-1] == '/' {
			return true
		}
	}
	return false
}

// named is where a document's text has a file that it is about, the first time.
func named(d *Document, file string) []span {
	for _, path := range append(slices.Clone(d.Files), file) {
		if !touches([]string{path}, file) {
			continue
		}
		if at := strings.Index(d.Text, path); at >= 0 {
			return []span{{from: at, to: at + len(path)}}
		}
	}
	return nil
}

// Path is a path as documents and queries have it: with slashes, and clean.
func Path(p string) string {
	return strings.TrimPrefix(path.Clean(strings.ReplaceAll(p, `\`, "/")), "./")
}
