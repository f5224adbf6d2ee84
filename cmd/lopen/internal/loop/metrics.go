package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// metrics is what a command may leave in LOPEN_METRICS_FILE.
type metrics struct {
	InputTokens     int64      `json:"inputTokens"`
	OutputTokens    int64      `json:"outputTokens"`
	CachedTokens    int64      `json:"cachedTokens"`
	ContextWindow   int64      `json:"contextWindow"`
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

// readMetrics reads the file if the command wrote it. One that is malformed
// counts as absent and comes with an error to warn with: a slip in the metrics
// must not fail a task that is done.
func readMetrics(path string) (metrics, error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return metrics{}, nil
	}
	if err != nil {
		return metrics{}, fmt.Errorf("metrics ignored: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return metrics{}, fmt.Errorf("metrics ignored: %s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxMetrics+1))
	if err != nil {
		return metrics{}, fmt.Errorf("metrics ignored: %w", err)
	}
	if len(data) > maxMetrics {
		return metrics{}, fmt.Errorf("metrics ignored: LOPEN_METRICS_FILE is larger than %d bytes", maxMetrics)
	}
	var m metrics
	if err := json.Unmarshal(data, &m); err != nil {
		return metrics{}, fmt.Errorf("metrics ignored: LOPEN_METRICS_FILE: %w", err)
	}
	if m.InputTokens < 0 || m.OutputTokens < 0 || m.CachedTokens < 0 || m.ContextWindow < 0 || m.Turns < 0 ||
		m.PremiumRequests < 0 || m.CostUSD < 0 || math.IsInf(m.PremiumRequests, 0) || math.IsInf(m.CostUSD, 0) {
		return metrics{}, errors.New("metrics ignored: LOPEN_METRICS_FILE holds a negative number")
	}
	return m, nil
}

func (m *metrics) iteration(task string, attempt int, begun time.Time, d time.Duration) session.Iteration {
	return session.Iteration{
		Task: task, Attempt: attempt, StartedAt: begun, Duration: d,
		InputTokens: m.InputTokens, OutputTokens: m.OutputTokens, CachedTokens: m.CachedTokens,
		ContextWindow: m.ContextWindow, PremiumRequests: m.PremiumRequests, CostUSD: m.CostUSD,
		Model: m.Model, Turns: m.Turns,
	}
}

// apply notes on the session what the agent reported of itself.
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
	if rl := m.RateLimit; rl != nil {
		h.RateLimit = &session.RateLimit{Limit: rl.Limit, Remaining: rl.Remaining, ResetsAt: rl.ResetsAt, SeenAt: now}
	}
}
