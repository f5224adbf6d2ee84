package search

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A Hit is a document that has what a query asks for.
type Hit struct {
	Source  string // its key
	Number  uint64
	Time    time.Time
	Kind    string
	Role    string
	Tool    string
	Files   []string
	Snippet Snippet
	Lines   int // of the text that are before the words of the snippet; of its piece, if it is long
	Score   float64
	piece   int
}

// Ranked is how many matches are ranked: the newest, by source and within each. A query that
// more documents have is ranked among these.
const Ranked = 500

// A Result is what was found, the best first.
type Result struct {
	Hits []Hit
	// Found is the number of places that have it; More says that there are more, older ones.
	Found int
	More  bool
	// Note says why the index was not used, or what could not be read; "" if there is nothing to say.
	Note string
}

// A pool has the newest matches of a query.
type pool struct {
	*matcher
	limit int
	hits  []Hit
	got   match
	seen  map[place]int // the index in hits
	more  bool
}

type place struct {
	source string
	number uint64
	kind   string
}

func newPool(q *Query, limit int) *pool {
	return &pool{matcher: newMatcher(q), limit: max(limit, Ranked), seen: map[place]int{}}
}

// full says that no older match counts.
func (p *pool) full() bool { return p.more }

// take looks at a piece of a document and takes it if it matches. Of a document in several
// pieces the best one stays.
func (p *pool) take(source string, d *Document, piece int) {
	if p.more || !p.filters(d) || !p.match(d.Text, &p.got) {
		return
	}
	where := place{source, d.Number, d.Kind}
	score := p.got.score(p.matcher, d.Role)
	i, known := p.seen[where]
	switch {
	case known && (p.hits[i].Score > score || p.hits[i].Score == score && p.hits[i].piece < piece):
		return
	case !known && len(p.hits) == p.limit:
		p.more = true
		return
	case !known:
		i = len(p.hits)
		p.seen[where] = i
		p.hits = append(p.hits, Hit{})
	}
	spans := p.got.spans
	if len(spans) == 0 && p.File != "" {
		spans = named(d, p.File)
	}
	cut, at := snippet(d.Text, spans)
	p.hits[i] = Hit{Source: source, Number: d.Number, Time: d.Time, Kind: d.Kind, Role: d.Role, Tool: d.Tool, Files: d.Files,
		Snippet: cut, Lines: strings.Count(d.Text[:at], "\n"), Score: score, piece: piece}
}

// result are the best of the pool.
func (p *pool) result(limit int) *Result {
	r := &Result{Hits: p.hits, Found: len(p.hits), More: p.more}
	slices.SortFunc(r.Hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Time.Compare(a.Time), strings.Compare(b.Source, a.Source),
			cmp.Compare(b.Number, a.Number), strings.Compare(a.Kind, b.Kind))
	})
	r.Hits = r.Hits[:min(limit, len(r.Hits))]
	return r
}
