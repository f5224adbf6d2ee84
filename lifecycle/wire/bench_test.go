package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
)

// jsonTask is what encoding/json decodes a task into, for comparison.
type jsonTask struct {
	ID          string        `json:"id"`
	Kind        string        `json:"kind"`
	Name        string        `json:"name"`
	State       string        `json:"state"`
	DependsOn   []string      `json:"dependsOn"`
	Box         string        `json:"box"`
	Attempts    int           `json:"attempts"`
	LastError   string        `json:"lastError"`
	StartedAt   time.Time     `json:"startedAt"`
	CompletedAt time.Time     `json:"completedAt"`
	Log         []jsonAttempt `json:"log"`
	Children    []jsonTask    `json:"children"`
}

type jsonAttempt struct {
	Number    int       `json:"number"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	Exit      int       `json:"exit"`
	Artifacts []string  `json:"artifacts"`
}

// BenchmarkDecode compares reading 100,000 tasks, with every rule checked, with
// a bare encoding/json into structs: less than half is what is asked for.
func BenchmarkDecode(b *testing.B) {
	st := plan(b, 100_000, 100)
	state, metrics := wire.EncodeState(st, session.Mark{Seq: 1}), wire.EncodeMetrics(st, session.Mark{Seq: 1})
	b.Run("session", func(b *testing.B) {
		b.SetBytes(int64(len(state)))
		b.ReportAllocs()
		for b.Loop() {
			st, _, err := decode(state, metrics)
			require.NoError(b, err)
			require.Empty(b, session.Check(st))
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(state)))
		b.ReportAllocs()
		for b.Loop() {
			var v struct {
				Tasks []jsonTask `json:"tasks"`
			}
			require.NoError(b, json.Unmarshal(state, &v))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	st := plan(b, 100_000, 100)
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(wire.EncodeState(st, session.Mark{Seq: 1}))))
	}
}
