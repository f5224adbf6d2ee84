package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fuzzReader feeds any output to a reader, in pieces of any size: it is sane, and the same
// in one piece.
func fuzzReader(f *testing.F, name string) {
	all, err := filepath.Glob(filepath.Join("testdata", "samples", name, "*.jsonl"))
	require.NoError(f, err)
	for _, path := range all {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data, uint16(100))
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		if len(data) > 1<<16 {
			return
		}
		a := run(t, name, data, data, int(n)+1)
		sane(t, a)
		require.Equal(t, run(t, name, data, data, len(data)+1), a)
	})
}

func FuzzClaude(f *testing.F)   { fuzzReader(f, "claude") }
func FuzzCodex(f *testing.F)    { fuzzReader(f, "codex") }
func FuzzOpencode(f *testing.F) { fuzzReader(f, "opencode") }

// Recipes that are taken can be started, and read again as they were.
func FuzzRecipes(f *testing.F) {
	f.Add([]byte(`{"aider": {"start": ["aider", "--yes-always"], "prompt": "file", "events": "text", "resume": ["--r", "{session}"]}}`))
	f.Add([]byte(`{"a": {"start": ["x"], "ready": ["true"], "open": ["x", "{session}"], "login": "x login"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := Recipes(data)
		if err != nil {
			require.Nil(t, all)
			return
		}
		for name, p := range all {
			require.Regexp(t, recipeName(), name)
			a, _, err := Choose(name, nil, all, "go test")
			require.NoError(t, err)
			require.Equal(t, p.Start, a.Launch(Launch{Prompt: "p"})[:len(p.Start)])
			again, err := json.Marshal(map[string]Profile{name: p})
			require.NoError(t, err)
			back, err := Recipes(again)
			require.NoError(t, err)
			require.Equal(t, p, back[name])
		}
	})
}

// A check that is granted is one that a shell and the agent's rules take word by word.
func FuzzGrant(f *testing.F) {
	f.Add("go test ./...")
	f.Add("go vet ./... && go test ./...")
	f.Fuzz(func(t *testing.T, check string) {
		if rule, _ := claudeGrant(typed{}, check); rule != "" {
			require.Regexp(t, `^Bash\([A-Za-z0-9_./=:@%+-]+( [A-Za-z0-9_./=:@%+-]+)*\)$`, rule)
		}
	})
}
