package main

import (
	"context"
	"time"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/find"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A searchPage is the data of search.
type searchPage struct {
	Hits  []find.Hit `json:"hits"`
	Found int        `json:"found"`          // places, of which hits are the best
	More  bool       `json:"more,omitempty"` // there are older ones, which were not ranked
}

func (t *toolAnswer) search(ctx context.Context, in mcp.Search) (any, error) {
	limit, err := atMost(in.Limit, 10, 50)
	if err != nil {
		return nil, err
	}
	s := searchCall{app: t.app, query: find.Query{Text: in.Query, Module: in.Module, Role: in.Role, Tool: in.Tool, File: in.File, Limit: limit}}
	if s.query.Since, err = sinceTime(in.Since, time.Now()); err != nil {
		return nil, err
	}
	page, err := s.find(ctx)
	if err != nil {
		return nil, usageIf(err, search.ErrQuery)
	}
	if page.Hits, err = fittingHits(page.Hits); err != nil {
		return nil, err
	}
	s.notes(page)
	return searchPage{page.Hits, page.Found, page.More}, s.print(page)
}

// fittingHits are the best hits that have room in an answer, each with the first of its files.
func fittingHits(hits []find.Hit) ([]find.Hit, error) {
	size := 0
	for i := range hits {
		hits[i].Files = boundedTexts(hits[i].Files, 10, 500)
		data, err := strictjson.MarshalShown(hits[i])
		if err != nil {
			return nil, err
		}
		if size += len(data); size > mcp.MaxText {
			return hits[:i], nil
		}
	}
	return hits, nil
}
