package agents

import (
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// maxBad bounds the places that a Report names.
const maxBad = 100

// A Report says what a Reader found.
type Report struct {
	Messages int            `json:"messages"`
	Events   int            `json:"events"`
	Types    map[string]int `json:"types,omitempty"`   // records by type
	Unknown  map[string]int `json:"unknown,omitempty"` // those among them that are not known
	Bad      int            `json:"bad"`               // records that could not be read
	Places   []Place        `json:"places,omitempty"`  // of the first of them
	// Rewritten are the files that had to be read from the beginning again.
	Rewritten []string `json:"rewritten,omitempty"`
	// Backwards counts the messages that are older than the one before them.
	Backwards int           `json:"backwards,omitempty"`
	First     time.Time     `json:"first,omitzero"`
	Last      time.Time     `json:"last,omitzero"`
	Usage     session.Usage `json:"usage"`
	Model     string        `json:"model,omitempty"` // the last one
}

// A Place is where a record stands that could not be read.
type Place struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`   // from 1
	Offset int64  `json:"offset"` // of its first byte
	Bytes  int64  `json:"bytes"`
	Why    string `json:"why"`
}

// maxTypes and maxType bound the types that are counted by name, and their length in bytes.
const (
	maxTypes = 100
	maxType  = 64
)

func count(in *map[string]int, name string) {
	if *in == nil {
		*in = map[string]int{}
	}
	if len(name) > maxType {
		name = name[:maxType]
	}
	if _, known := (*in)[name]; !known && len(*in) >= maxTypes {
		name = "others"
	}
	(*in)[name]++
}

func (r *Report) bad(p Place) {
	r.Bad++
	if len(r.Places) < maxBad {
		r.Places = append(r.Places, p)
	}
}

// item counts an item and what it says of time and cost.
func (r *Report) item(it *Item) {
	if u := it.Usage; u != nil {
		r.Usage.InputTokens += u.InputTokens
		r.Usage.OutputTokens += u.OutputTokens
		r.Usage.CachedTokens += u.CachedTokens
	}
	m := it.Message
	if m == nil {
		r.Events++
		return
	}
	r.Messages++
	if m.Time.Equal(unknownTime) {
		return
	}
	if r.First.IsZero() || m.Time.Before(r.First) {
		r.First = m.Time
	}
	if m.Time.After(r.Last) {
		r.Last = m.Time
	}
}
