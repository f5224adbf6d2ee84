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
}

// DecodeSummary reads the summary from the first part of state.json, 4 KiB at
// the most; the rest is neither needed nor checked. The error wraps ErrCorrupt or
// ErrFutureVersion.
func DecodeSummary(prefix []byte) (Summary, error) {
	d := &decoder{Reader: strictjson.NewPrefixReader(prefix)}
	var s Summary
	done := false
	var name string
	d.Object(func(key string) bool {
		switch key {
		case "schemaVersion":
			if d.version = d.Int(); d.version > SchemaVersion {
				d.err = fmt.Errorf("state.json: schema version %d: %w: update lopen", d.version, ErrFutureVersion)
				return false
			}
		case "id":
			name = d.String()
		case "module":
			s.Module = d.String()
		case "seq":
			s.Seq = d.Uint()
		case "progress":
			d.progress(&s.Progress)
		case "iterations":
			s.Iterations = d.int()
		case "inputTokens":
			s.InputTokens = d.Int()
		case "outputTokens":
			s.OutputTokens = d.Int()
		case "cachedTokens":
			s.CachedTokens = d.Int()
		case "status":
			s.Status = Status(d.String())
		case "phase":
			s.Phase = Phase(d.String())
		case "step":
			s.Step = Step(d.String())
		case "exitReason":
			s.ExitReason = ExitReason(d.String())
		case "createdAt":
			s.CreatedAt = d.time()
		case "updatedAt":
			s.UpdatedAt = d.time()
		case "completedAt":
			s.CompletedAt = d.time()
		case "totalCostUSD":
			s.TotalCostUSD = d.Float()
		case "component":
			s.Component = d.String()
		case "activeTask":
			s.ActiveTask = d.String()
		default:
			done = true // the summary fields come first
			return false
		}
		return true
	})
	if err := d.Err(); err != nil && !done {
		return Summary{}, fmt.Errorf("state.json: %w", err)
	}
	id, err := ParseID(name)
	if err == nil {
		err = oneOf("status", s.Status, statuses)
	}
	if err != nil {
		return Summary{}, fmt.Errorf("state.json: %w: %w", ErrCorrupt, err)
	}
	s.ID = id
	return s, nil
}

func (d *decoder) progress(p *Progress) {
	d.fields(func(key string) {
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
}
