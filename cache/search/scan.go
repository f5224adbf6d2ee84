package search

import (
	"context"
	"errors"
	"strings"
	"time"
)

// ErrChanged says that a source is not as it was when it was read before.
var ErrChanged = errors.New("the source has changed")

// Scan reads the sources and returns what has what is asked. It needs no index. Sources that
// cannot be read are named by failed.
func Scan(ctx context.Context, sources []Source, q *Query, limit int, failed func(*Source, error)) (*Result, error) {
	p := newPool(q, limit)
	for _, s := range sorted(sources, q.Sources) {
		err := p.scan(ctx, s)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			failed(s, err)
		}
		if p.full() {
			break
		}
	}
	return p.result(limit), nil
}

// stored is a time as the index has it.
func stored(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// A candidate is a piece that matches, of a source that is being read.
type candidate struct {
	Document
	piece int
}

// scan takes the newest matches of a source. It reads the oldest first, and keeps only as many as
// could be taken.
func (p *pool) scan(ctx context.Context, s *Source) error {
	var last []candidate
	trim := 4 * (p.limit + 1)
	_, _, err := s.Read(0, "", func(d *Document) error {
		if d.Time = stored(d.Time); ctx.Err() != nil {
			return ctx.Err()
		}
		if !p.filters(d) {
			return nil
		}
		return pieces(d.Text, func(n int, part string) error {
			if !p.match(part, nil) {
				return nil
			}
			if len(last) >= trim {
				last = append(last[:0], last[len(last)-p.keep(last):]...)
				trim = max(trim, 2*len(last))
			}
			c := candidate{*d, n}
			c.Text = strings.Clone(part)
			last = append(last, c)
			return nil
		})
	})
	for i := len(last) - 1; i >= 0; i-- {
		p.take(s.Key, &last[i].Document, last[i].piece)
	}
	return err
}

// keep is how many of the last candidates have as many places as the pool can take, and one more.
func (p *pool) keep(all []candidate) int {
	seen := map[place]bool{}
	for i := len(all) - 1; i >= 0; i-- {
		seen[place{number: all[i].Number, kind: all[i].Kind}] = true
		if len(seen) > p.limit+1 {
			return len(all) - 1 - i
		}
	}
	return len(all)
}
