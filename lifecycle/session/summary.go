package session

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session/strictjson"
)

// A Summary is what a listing shows of a session.
type Summary struct {
	ID                        ID
	Module                    string
	Incarnation               string
	Seq                       uint64
	Status                    Status
	Phase                     Phase
	Step                      Step
	Component                 string
	ActiveTask                string
	ExitReason                ExitReason
	CreatedAt, UpdatedAt      time.Time
	CompletedAt               time.Time
	Progress                  Progress
	Iterations                int
	InputTokens, OutputTokens int64
	CachedTokens              int64
	TotalCostUSD              float64
	Messages                  uint64
	Lineage                   *Lineage // nil for a session of its own
}

// DecodeSummary reads the summary from the first 4 KiB of state.json, which hold
// it whatever the State is; the rest is neither needed nor checked. In a file whose
// members somebody put in another order it is not found. The error wraps ErrCorrupt
// or ErrFutureVersion.
func DecodeSummary(prefix []byte) (Summary, error) {
	d := newDecoder(strictjson.NewPrefixReader(prefix))
	var s Summary
	var h Header
	d.members(func(key string) {
		switch key {
		case "id":
			s.ID = d.id()
		case "module", "iterationsSeq":
			d.Raw()
		case "incarnation":
			s.Incarnation = d.Text()
		case "progress":
			s.Progress = d.readProgress()
		case "iterations":
			s.Iterations = d.int()
		case "messages":
			s.Messages = d.tail().Count
		case "transcript":
			d.Raw()
		case "inputTokens":
			s.InputTokens = d.Int()
		case "outputTokens":
			s.OutputTokens = d.Int()
		case "cachedTokens":
			s.CachedTokens = d.Int()
		case "status", "phase", "step", "exitReason", "createdAt", "updatedAt", "completedAt", "totalCostUSD", "component", "activeTask", "lineage":
			d.header(&h, key)
		default:
			d.Stop() // the summary's fields come first
		}
	})
	if err := d.Err(); err != nil {
		return Summary{}, fmt.Errorf("state.json: %w", err)
	}
	if err := checkDecoded(&State{id: s.ID, h: &h}, s.Iterations); err != nil {
		return Summary{}, fmt.Errorf("state.json: %w: %w", ErrCorrupt, err)
	}
	s.Module, s.Seq = s.ID.Module, d.at.Seq
	s.Status, s.Phase, s.Step, s.ExitReason = h.Status, h.Phase, h.Step, h.ExitReason
	s.Component, s.ActiveTask, s.TotalCostUSD = h.Component, h.ActiveTask, h.TotalCostUSD
	s.Lineage = h.Lineage
	s.CreatedAt, s.UpdatedAt, s.CompletedAt = h.CreatedAt, h.UpdatedAt, h.CompletedAt
	return s, nil
}

func (d *decoder) readProgress() (p Progress) {
	d.Object(func(key string) {
		switch key {
		case "done":
			p.Done = d.int()
		case "total":
			p.Total = d.int()
		case "failed":
			p.Failed = d.int()
		case "skipped":
			p.Skipped = d.int()
		default:
			d.Raw()
		}
	})
	return p
}
