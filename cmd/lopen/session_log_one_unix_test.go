//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// newKeptSession is a store with one session that has what fn put there.
func newKeptSession(t *testing.T, dir string, fn func(*lifecycle.Session)) session.ID {
	t.Helper()
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "m")
	require.NoError(t, err)
	fn(sess)
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, store.Close(t.Context()))
	return sess.ID()
}

// TestOneMessageAsItWasWritten prints a call of a tool: a command stands as the agent wrote it.
func TestOneMessageAsItWasWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newKeptSession(t, dir, func(sess *lifecycle.Session) {
		require.NoError(t, sess.Append(&session.Message{Role: session.RoleAssistant, Content: session.Text("I look <here> & there."),
			ToolCalls: []session.ToolCall{{ID: "c", Name: "Bash", Arguments: strictjson.Value(`{"command":"make 2>&1 <in >out; caf\u00e9 \ud83d\ude80 a\/b; printf \"\\u003e\\n\" \u202e\u001b"}`)}}}))
	})
	out := must(t, dir, "session", "log", "--seq", "2")
	require.Contains(t, out, "\nI look <here> & there.\n")
	require.Contains(t, out, `Bash {"command":"make 2>&1 <in >out; café 🚀 a/b; printf \"\\u003e\\n\" \u202e\u001b"}`)
	require.Contains(t, must(t, dir, "session", "show", "--messages"), `"make 2>&1 <in >out; café 🚀 a/b; printf`)
}
