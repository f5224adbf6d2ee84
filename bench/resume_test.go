package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
)

// BenchmarkResume decodes, checks and validates a session's files; json is
// encoding/json alone on the state's bytes, into structs that name what they want, and
// copy copies the same bytes once.
func BenchmarkResume(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			st, _ := planState(b, n)
			state, metrics := wire.EncodeState(st, session.Mark{Seq: 1}), wire.EncodeMetrics(st, session.Mark{Seq: 1})
			to := make([]byte, len(state))
			turns.Run(b, turns.Side{Name: "lopen", Before: runtime.GC, Do: func() {
				var r wire.Replay
				require.NoError(b, r.Load(state, metrics))
				st, _, err := r.State(r.ID())
				require.NoError(b, err)
				session.Check(st)
			}}, turns.Side{Name: "json", Before: runtime.GC, Do: func() {
				var plain plainState
				require.NoError(b, json.Unmarshal(state, &plain))
				require.NotEmpty(b, plain.Tasks)
			}}, turns.Side{Name: "copy", Do: func() { copy(to, state) }})
		})
	}
}

// plainState is what a program would read of state.json that wants its tasks.
type plainState struct {
	ID     string      `json:"id"`
	Status string      `json:"status"`
	Phase  string      `json:"phase"`
	Tasks  []plainTask `json:"tasks"`
}

type plainTask struct {
	ID       string      `json:"id"`
	Kind     string      `json:"kind"`
	Name     string      `json:"name"`
	State    string      `json:"state"`
	Attempts int         `json:"attempts"`
	Children []plainTask `json:"children"`
}

// BenchmarkList lists 10,000 sessions; read opens, reads 1 KiB of and closes as
// many files one after the other.
func BenchmarkList(b *testing.B) {
	many := many(10_000)
	dir := b.TempDir()
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close(context.Background())) })
	now := time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC)
	var names []string
	for i := range many {
		id, err := session.NewID("bench", now, uint64(i+1))
		require.NoError(b, err)
		st, err := session.New(id, now.Add(time.Duration(i)*time.Second))
		require.NoError(b, err)
		folder := filepath.Join(dir, lifecycle.Dir, "sessions", id.String())
		require.NoError(b, os.Mkdir(folder, 0o700))
		names = append(names, filepath.Join(folder, "state.json"))
		require.NoError(b, os.WriteFile(names[i], wire.EncodeState(st, session.Mark{Epoch: 1, Seq: 1}), 0o600))
	}
	buf := make([]byte, 1<<10)
	turns.Run(b, turns.Side{Name: "lopen", Do: func() {
		infos, err := store.List()
		require.NoError(b, err)
		require.Len(b, infos, many)
	}}, turns.Side{Name: "read", Do: func() {
		for _, name := range names {
			f, err := os.Open(name)
			require.NoError(b, err)
			_, _ = f.Read(buf)
			require.NoError(b, f.Close())
		}
	}})
}
