package loop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestReadMetrics(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		want    metrics
		warning string
	}{
		"all": {content: `{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"contextWindow":4,"premiumRequests":0.5,"costUSD":1.25,"model":"m","turns":6,"agentSession":"s"}`,
			want: metrics{InputTokens: 1, OutputTokens: 2, CachedTokens: 3, ContextWindow: 4, PremiumRequests: 0.5, CostUSD: 1.25, Model: "m", Turns: 6, AgentSession: "s"}},
		"unknown fields": {content: `{"inputTokens":1,"mood":"good"}`, want: metrics{InputTokens: 1}},
		"cut":            {content: `{"inputTokens":`, warning: "unexpected end"},
		"negative":       {content: `{"costUSD":-1}`, warning: "below 0"},
		"absurd":         {content: `{"inputTokens":9223372036854775807}`, warning: "beyond"},
		"long name":      {content: `{"model":"` + strings.Repeat("x", 2000) + `"}`, warning: "1024"},
		"wrong type":     {content: `{"turns":"many"}`, warning: "turns"},
		"too large":      {content: `{"model":"` + strings.Repeat("x", maxMetrics) + `"}`, warning: "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "metrics.json")
			require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
			m, err := readMetrics(path)
			if c.warning != "" {
				require.ErrorContains(t, err, c.warning)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.want, m)
		})
	}
	m, err := readMetrics(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
	require.Equal(t, metrics{}, m)
	_, err = readMetrics(t.TempDir())
	require.Error(t, err, "a folder")
}

func TestMetricsOnTheHeader(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 14, 23, 0, 0, 0, time.UTC)
	h := session.Header{TurnCount: 2, TotalCostUSD: 1, Models: []string{"a"}}
	m := metrics{Turns: 3, CostUSD: 0.5, Model: "b", AgentSession: "s", RateLimit: &rateLimit{Limit: 10, Remaining: 1}}
	m.apply(&h, now)
	m.apply(&h, now)
	require.Equal(t, 8, h.TurnCount)
	require.InDelta(t, 2.0, h.TotalCostUSD, 1e-9)
	require.Equal(t, []string{"a", "b"}, h.Models)
	require.Equal(t, "s", h.AgentSession)
	require.Equal(t, &session.RateLimit{Limit: 10, Remaining: 1, SeenAt: now}, h.RateLimit)
}
