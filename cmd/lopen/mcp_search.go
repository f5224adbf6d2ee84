package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/find"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A searchPage is the data of search.
type searchPage struct {
	noted
	Hits  []find.Hit `json:"hits"`
	Found int        `json:"found"`          // places, of which hits are the best
	More  bool       `json:"more,omitempty"` // there are older ones, which were not ranked
	Left  int        `json:"left,omitempty"` // hits within the limit that have no room in the answer
	Cut   string     `json:"cut,omitempty"`
}

// maxHits bounds the hits of an answer.
const maxHits = 50

func (t *toolAnswer) search(ctx context.Context, in mcp.Search) (answerData, error) {
	limit, err := atMost(in.Limit, 10, maxHits)
	if err != nil {
		return nil, err
	}
	if in.Query == "" && in.File == "" {
		return nil, usagef("there is nothing to search for: give query or file")
	}
	s := searchCall{app: t.app, query: find.Query{Text: in.Query, Module: in.Module, Role: in.Role, Tool: in.Tool, File: in.File, Limit: limit}}
	if s.query.Since, err = sinceTime(in.Since, time.Now()); err != nil {
		return nil, usagef("%s", strings.TrimPrefix(err.Error(), "--")) // which is a flag's name
	}
	found, err := s.find(ctx)
	if err != nil {
		return nil, usageIf(err, search.ErrQuery)
	}
	s.notes(found)
	hits, err := fittingHits(found.Hits)
	if err != nil {
		return nil, err
	}
	page := &searchPage{Hits: hits, Found: found.Found, More: found.More, Left: len(found.Hits) - len(hits)}
	page.Cut = page.leftOut(limit)
	if found.Found == 0 {
		fmt.Fprintln(t.stdout, "nothing found")
		return page, nil
	}
	if err := s.print(&find.Page{Hits: hits, Found: len(hits)}); err != nil {
		return nil, err
	}
	if page.Cut != "" {
		fmt.Fprintln(t.stdout, page.Cut)
	}
	return page, nil
}

// leftOut says how many hits there are beside those of the answer, why, and how to see them; "" if
// there are none.
func (p *searchPage) leftOut(limit int) string {
	if p.Found == len(p.Hits) && !p.More {
		return ""
	}
	text := fmt.Sprintf("%d of %d hits", len(p.Hits), p.Found)
	if p.More {
		text = fmt.Sprintf("%d of more than %d hits, of which older ones were not ranked", len(p.Hits), p.Found)
	}
	if p.Left > 0 {
		text += fmt.Sprintf("; %d have no room in the answer", p.Left)
	}
	text += ": "
	if p.Left == 0 && limit < maxHits {
		text += fmt.Sprintf("a limit up to %d shows more, or ", maxHits)
	}
	return text + "narrow it with more words, module, role, tool, file or since"
}

// fittingHits are the best hits that have room in an answer, each with the first of its files and tools.
func fittingHits(hits []find.Hit) ([]find.Hit, error) {
	size := 0
	for i := range hits {
		hits[i].Files, hits[i].Tool = boundedTexts(hits[i].Files, 10, 500), plain.Clip(hits[i].Tool, 500)
		data, err := mcp.Encode(hits[i])
		if err != nil {
			return nil, err
		}
		if size += len(data); size > mcp.MaxText {
			return hits[:i], nil
		}
	}
	return hits, nil
}
