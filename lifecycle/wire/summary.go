package wire

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Summary is what a listing shows of a session.
type Summary struct {
	ID                        session.ID
	Module                    string
	Incarnation               string
	Seq                       uint64
	Status                    session.Status
	Phase                     session.Phase
	Step                      session.Step
	Component                 string
	ActiveTask                string
	ExitReason                session.ExitReason
	CreatedAt, UpdatedAt      time.Time
	CompletedAt               time.Time
	Progress                  session.Progress
	Iterations                int
	InputTokens, OutputTokens int64
	CachedTokens              int64
	TotalCostUSD              float64
	Messages                  uint64
	Lineage                   *session.Lineage // nil for a session that was not forked
	Origin                    session.Origin
	Holder                    *session.Holder // see [session.Header]
	TransactionID             string          // "" outside of a transaction
}

// forSummary is what a summary is decoded with and into. It is pooled, because a listing decodes ten
// thousand summaries.
type forSummary struct {
	decoder
	session.Header
	session.Totals
	Summary
}

var decoded = sync.Pool{New: func() any { return new(forSummary) }}

// DecodeSummary decodes the summary from the first 4 KiB of state.json, which have it for
// every State. It neither needs nor checks the rest. If a tool has reordered the members,
// DecodeSummary may fail. The error wraps ErrCorrupt or ErrFutureVersion.
func DecodeSummary(prefix []byte) (Summary, error) {
	read := decoded.Get().(*forSummary) //nolint:forcetypeassert // nothing else is put there
	defer decoded.Put(read)
	*read = forSummary{decoder: decoder{Reader: strictjson.NewPrefixReader(prefix)}}
	d, s, h, sums := &read.decoder, &read.Summary, &read.Header, &read.Totals
	d.members(func(key string) {
		switch key {
		case "id":
			s.ID = d.id()
		case "module":
			d.Raw()
		case "progress":
			d.object(progressObject, &s.Progress)
		default:
			if !d.known(summaryHeader, key, h) && !d.known(sumsObject, key, sums) && !d.known(summaryMark, key, &d.at) {
				d.Stop() // the summary's members come first
			}
		}
	})
	if err := d.Err(); err != nil {
		return Summary{}, fmt.Errorf("state.json: %w", err)
	}
	if err := s.check(h, sums.Iterations); err != nil {
		return Summary{}, fmt.Errorf("state.json: %w: %w", envelope.ErrCorrupt, err)
	}
	s.Module, s.Seq, s.Incarnation, s.Messages = s.ID.Module, d.at.Seq, d.at.Incarnation, d.at.Messages
	s.Iterations, s.InputTokens, s.OutputTokens, s.CachedTokens = sums.Iterations, sums.InputTokens, sums.OutputTokens, sums.CachedTokens
	s.Status, s.Phase, s.Step, s.ExitReason = h.Status, h.Phase, h.Step, h.ExitReason
	s.Component, s.ActiveTask, s.TotalCostUSD = h.Component, h.ActiveTask, h.TotalCostUSD
	s.Lineage, s.TransactionID, s.Origin, s.Holder = h.Lineage, h.TransactionID, h.Origin, h.Holder
	s.CreatedAt, s.UpdatedAt, s.CompletedAt = h.CreatedAt, h.UpdatedAt, h.CompletedAt
	return *s, nil
}

func (s *Summary) check(h *session.Header, iterations int) error {
	switch {
	case s.ID.IsZero():
		return errors.New("id is missing")
	case iterations < 0:
		return fmt.Errorf("%d iterations", iterations)
	}
	return h.Validate()
}
