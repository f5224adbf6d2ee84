package loop

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// metrics is the content of LOPEN_METRICS_FILE, which a command may write.
type metrics struct {
	InputTokens     int64      `json:"inputTokens"`
	OutputTokens    int64      `json:"outputTokens"`
	CachedTokens    int64      `json:"cachedTokens"`
	ContextWindow   int64      `json:"contextWindow"`
	ContextUsed     int64      `json:"contextUsed"`
	PremiumRequests float64    `json:"premiumRequests"`
	CostUSD         float64    `json:"costUSD"`
	Model           string     `json:"model"`
	Turns           int        `json:"turns"`
	AgentSession    string     `json:"agentSession"`
	RateLimit       *rateLimit `json:"rateLimit"`
	RetryAt         *time.Time `json:"retryAt"`
}

type rateLimit struct {
	Limit     int64     `json:"limit"`
	Remaining int64     `json:"remaining"`
	ResetsAt  time.Time `json:"resetsAt"`
}

const maxMetrics = 1 << 20

// readMetrics reads the file if the command wrote it. For a malformed file it returns no metrics
// and an error, with which the caller only warns: a mistake in the metrics must not fail a task.
func (r *runner) readMetrics(now time.Time) (metrics, error) {
	data, err := r.dir.Read(r.given.metrics, maxMetrics)
	if errors.Is(err, fs.ErrNotExist) {
		return metrics{}, nil
	}
	if err != nil {
		return metrics{}, fmt.Errorf("metrics ignored: LOPEN_METRICS_FILE: %w", err)
	}
	var m metrics
	if err := strictjson.Unmarshal(data, &m); err != nil {
		return metrics{}, fmt.Errorf("metrics ignored: LOPEN_METRICS_FILE: %w", err)
	}
	if !m.plausible(now) {
		return metrics{}, errors.New("metrics ignored: LOPEN_METRICS_FILE holds a number below 0 or beyond 10^12, a name of more than 1024 bytes, " +
			"or a time more than a year ahead or before the year 1")
	}
	return m, nil
}

// plausible reports whether the numbers and texts are within reasonable bounds, because wrong
// ones would stay in the sums.
func (m *metrics) plausible(now time.Time) bool {
	for _, n := range []float64{float64(m.InputTokens), float64(m.OutputTokens), float64(m.CachedTokens), float64(m.ContextWindow), float64(m.ContextUsed),
		float64(m.Turns), m.PremiumRequests, m.CostUSD} {
		if n < 0 || n > 1e12 {
			return false
		}
	}
	late := now.AddDate(1, 0, 0)
	if m.RetryAt != nil && m.RetryAt.After(late) {
		return false
	}
	if rl := m.RateLimit; rl != nil && (rl.Limit < 0 || rl.Remaining < 0 || rl.ResetsAt.After(late) || rl.ResetsAt.UTC().Year() < 1) {
		return false
	}
	return len(m.Model) <= 1024 && len(m.AgentSession) <= 1024
}

func (m *metrics) iteration(task string, attempt int, begun, now time.Time) session.Iteration {
	return session.Iteration{
		Task: task, Attempt: attempt, StartedAt: begun, Duration: now.Sub(begun),
		InputTokens: m.InputTokens, OutputTokens: m.OutputTokens, CachedTokens: m.CachedTokens,
		ContextWindow: m.ContextWindow, ContextUsed: m.ContextUsed, RateLimit: m.limit(now), PremiumRequests: m.PremiumRequests, CostUSD: m.CostUSD,
		Model: m.Model, Turns: m.Turns,
	}
}

// apply sets in the header what the agent reported about itself.
func (m *metrics) apply(h *session.Header, now time.Time) {
	h.TurnCount += m.Turns
	h.TotalCostUSD += m.CostUSD
	if m.ContextWindow > 0 {
		h.ContextWindow = m.ContextWindow
	}
	if m.Model != "" && !slices.Contains(h.Models, m.Model) {
		h.Models = append(h.Models, m.Model)
	}
	if m.AgentSession != "" {
		h.AgentSession = m.AgentSession
	}
	h.RateLimit = cmp.Or(m.limit(now), h.RateLimit)
}

// limit returns the limit that the agent reported, or nil.
func (m *metrics) limit(now time.Time) *session.RateLimit {
	if m.RateLimit == nil {
		return nil
	}
	return &session.RateLimit{Limit: m.RateLimit.Limit, Remaining: m.RateLimit.Remaining, ResetsAt: m.RateLimit.ResetsAt, SeenAt: now}
}
