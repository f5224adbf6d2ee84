package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// copyOf are the contents of the messages in messages.jsonl, one a line.
func copyOf(t *testing.T, store *lifecycle.Store, id session.ID) (ids []string) {
	t.Helper()
	data, err := os.ReadFile(path(store, "sessions", id.String(), "messages.jsonl"))
	require.NoError(t, err)
	for line := range bytes.Lines(data) {
		var m struct{ UUID string }
		require.NoError(t, json.Unmarshal(line, &m), "%s", line)
		ids = append(ids, m.UUID)
	}
	return ids
}

func quarantinedCopies(t *testing.T, store *lifecycle.Store, id session.ID) []string {
	t.Helper()
	all, err := filepath.Glob(path(store, "corrupted", id.String()+".files", "*[Z+]"))
	require.NoError(t, err)
	return all
}

func TestCopyOfMessages(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	id := sess.ID()
	file := path(store, "sessions", id.String(), "messages.jsonl")
	says(t, sess, "a", "b")
	require.NoError(t, sess.AppendEvent(strictjson.Value(`{"a": 1}`)))
	require.NoError(t, sess.Flush(t.Context()))
	require.Equal(t, []string{"a", "b"}, copyOf(t, store, id))
	events, err := os.ReadFile(path(store, "sessions", id.String(), "transcript.jsonl"))
	require.NoError(t, err)
	require.Equal(t, "{\"a\":1}\n", string(events))
	says(t, sess, "c")
	require.NoError(t, sess.Close(t.Context()))
	require.Equal(t, []string{"a", "b", "c"}, copyOf(t, store, id))
	whole, err := os.ReadFile(file)
	require.NoError(t, err)

	for name, c := range map[string]struct {
		spoil       func() error
		quarantined bool
	}{
		"as it was":     {func() error { return nil }, false},
		"gone":          {func() error { return os.Remove(file) }, false},
		"empty":         {func() error { return os.Truncate(file, 0) }, false},
		"an older copy": {func() error { return os.WriteFile(file, whole[:bytes.IndexByte(whole, '\n')+1], 0o600) }, false},
		"cut":           {func() error { return os.Truncate(file, int64(len(whole)-7)) }, false},
		"torn": {func() error {
			return os.WriteFile(file, append(whole[:len(whole)-9:len(whole)-9], make([]byte, 9)...), 0o600)
		}, true},
		"edited":         {func() error { return os.WriteFile(file, bytes.Replace(whole, []byte(`"b"`), []byte(`"B"`), 1), 0o600) }, true},
		"longer":         {func() error { return os.WriteFile(file, append(whole[:len(whole):len(whole)], "{}\n"...), 0o600) }, true},
		"a folder":       {func() error { return os.Mkdir(file, 0o700) }, true},
		"with two names": {func() error { return os.Link(file, filepath.Join(t.TempDir(), "other")) }, true},
	} {
		before := len(quarantinedCopies(t, store, id))
		require.NoError(t, os.RemoveAll(file), name)
		require.NoError(t, os.WriteFile(file, whole, 0o600), name)
		if name == "a folder" {
			require.NoError(t, os.Remove(file))
		}
		require.NoError(t, c.spoil(), name)
		again, err := store.Open(id)
		require.NoError(t, err, name)
		require.NoError(t, again.Flush(t.Context()), name)
		require.Equal(t, []string{"a", "b", "c"}, copyOf(t, store, id), name)
		require.NoError(t, again.Close(t.Context()), name)
		require.Equal(t, c.quarantined, len(quarantinedCopies(t, store, id)) > before, name)
		for _, old := range quarantinedCopies(t, store, id) {
			require.NoError(t, os.RemoveAll(old))
		}
	}
}

// What waits to be copied is bounded; beyond that the log is read.
func TestCopyThatFallsBehind(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	want := []string{}
	for i := range 50 {
		m := &session.Message{ID: strings.Repeat("x", i+1), Role: session.RoleUser, Content: session.Text(strings.Repeat("word ", 100<<10))}
		require.NoError(t, sess.Append(m))
		want = append(want, m.ID)
	}
	require.NoError(t, sess.Flush(t.Context()))
	require.Equal(t, want, copyOf(t, store, sess.ID()))
	require.Empty(t, quarantinedCopies(t, store, sess.ID()))
}
