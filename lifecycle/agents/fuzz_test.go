package agents_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// FuzzClaude and FuzzCodex read any file. FuzzOpencode reads any texts in a database.
func FuzzClaude(f *testing.F) {
	f.Add([]byte(user("a", "", "one") + user("b", "x", "two") + "{}\n\x00\x00{\"type\":\"summary\"}"))
	f.Add([]byte(`{"type":"user","uuid":"u","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[],"is_error":true},{"type":"text"}]}}`))
	f.Fuzz(func(t *testing.T, content []byte) { fuzz(t, agents.Claude, "s.jsonl", content) })
}

func FuzzCodex(f *testing.F) {
	f.Add([]byte(`{"type":"response_item","payload":{"type":"function_call","call_id":"c","name":"x","arguments":"{}"}}` + "\n" +
		`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":5,"cached_input_tokens":9}}}}`))
	f.Add([]byte(`{"type":"compacted","payload":{"message":"short"}}` + "\n" + `{"type":"message","role":"user","content":"old"}`))
	f.Fuzz(func(t *testing.T, content []byte) { fuzz(t, agents.Codex, "rollout-x.jsonl", content) })
}

func fuzz(t *testing.T, agent, name string, content []byte) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	l, err := agents.Open(t.Context(), agent, dir, dir)
	require.NoError(t, err)
	for i := range l.Histories {
		requireStorable(t, &l.Histories[i])
	}
}

// requireStorable reads a history. A session must be able to store each item, and nothing may be
// left for a second pass but a line that is torn.
func requireStorable(t *testing.T, h *agents.History) {
	r, err := h.Open(agents.Position{})
	require.NoError(t, err)
	defer r.Close()
	for {
		items, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.NotEmpty(t, items)
		for _, it := range items {
			if it.Message == nil {
				require.NoError(t, strictjson.Check(it.Event))
				require.Equal(t, "{", string(it.Event[:1]))
				continue
			}
			require.NoError(t, it.Message.Validate())
			line, err := wire.EncodeMessage(it.Message)
			require.NoError(t, err)
			_, err = wire.DecodeMessage(line)
			require.NoError(t, err)
		}
	}
	rep := r.Report()
	require.GreaterOrEqual(t, min(rep.Usage.InputTokens, rep.Usage.OutputTokens, rep.Usage.CachedTokens), int64(0))
	again, _, _ := read(t, h, r.Position())
	require.Empty(t, again)
}

func FuzzOpencode(f *testing.F) {
	f.Add(`{"role":"assistant","time":{"completed":1},"tokens":{"input":1}}`, `{"type":"tool","tool":"bash","callID":"c","state":{"status":"error","error":"x"}}`)
	f.Add(`{"role":"user","summary":true}`, `{"type":"text","text":"x","synthetic":true}`)
	f.Fuzz(func(t *testing.T, message, part string) {
		path := filepath.Join(t.TempDir(), "opencode.db")
		database(t, path, `DELETE FROM message; DELETE FROM part`)
		db, err := driver.Open(uri(path))
		require.NoError(t, err)
		const id = "ses_df4d4f503ffeGmCID4xKCtwOG3"
		_, err = db.ExecContext(t.Context(), `INSERT INTO message VALUES ('m', ?, 1, 1, ?)`, id, strings.ToValidUTF8(message, "?"))
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), `INSERT INTO part VALUES ('p', 'm', ?, 1, 1, ?)`, id, strings.ToValidUTF8(part, "?"))
		require.NoError(t, errors.Join(err, db.Close()))
		settle(t, path)
		l, err := agents.Open(t.Context(), agents.OpenCode, filepath.Dir(path), path)
		require.NoError(t, err)
		defer l.Close()
		for i := range l.Histories {
			requireStorable(t, &l.Histories[i])
		}
	})
}
