package lifecycle_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// says appends messages of a user with these IDs.
func says(t *testing.T, sess *lifecycle.Session, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, sess.Append(&session.Message{ID: id, Role: session.RoleUser, Content: session.Text("this is " + id)}))
	}
	require.NoError(t, sess.Sync(t.Context()))
}

func heard(t *testing.T, store *lifecycle.Store, id session.ID) []string {
	t.Helper()
	messages, _, err := heardIn(store, id)
	require.NoError(t, err)
	return messages
}

func TestMessages(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	first := &session.Message{Role: session.RoleUser, Content: session.Text("hello\nthere")}
	require.NoError(t, sess.Append(first))
	require.NotEmpty(t, first.ID)
	require.False(t, first.Time.IsZero())
	usage := &session.Usage{InputTokens: 3, OutputTokens: 4}
	second := &session.Message{ID: "b", Time: day, Role: session.RoleAssistant, Content: []byte(`[{"type":"text","text":"ok"}]`), Usage: usage}
	require.NoError(t, sess.Append(second))
	require.NoError(t, sess.AppendEvent([]byte(`{ "type": "turn.completed" }`)))
	require.NoError(t, sess.Sync(t.Context()))

	var all []session.Message
	for m, err := range sess.Messages() {
		require.NoError(t, err)
		all = append(all, m)
	}
	require.Len(t, all, 2)
	require.Equal(t, first.ID, all[0].ID)
	require.JSONEq(t, `"hello\nthere"`, string(all[0].Content))
	require.Equal(t, *second, all[1])
	for e, err := range store.Transcript(sess.ID()) {
		require.NoError(t, err)
		require.Equal(t, `{"type":"turn.completed"}`, string(e))
	}
	require.FileExists(t, path(store, "sessions", sess.ID().String(), "messages.jsonl"))
	require.NoError(t, sess.Flush(t.Context()))
	info, _ := infoOf(t, store, sess.ID())
	require.EqualValues(t, 2, info.Messages)

	for what, m := range map[string]*session.Message{
		"role":    {ID: "c", Role: "robot"},
		"content": {ID: "c", Role: session.RoleUser, Content: []byte(`{`)},
		"answer":  {ID: "c", Role: session.RoleTool},
		"call":    {ID: "c", Role: session.RoleAssistant, ToolCalls: []session.ToolCall{{Name: "x"}}},
		"size":    {ID: "c", Role: session.RoleUser, Content: session.Text(strings.Repeat("x", 9<<20))},
	} {
		require.ErrorIs(t, sess.Append(m), lifecycle.ErrInvalid, what)
	}
	for _, event := range []string{`3`, `[]`, `{"a":1`, ``} {
		require.ErrorIs(t, sess.AppendEvent([]byte(event)), lifecycle.ErrInvalid, event)
	}
	require.NoError(t, sess.Close(t.Context()))
	require.ErrorIs(t, sess.Append(&session.Message{Role: session.RoleUser}), lifecycle.ErrClosed)
	require.Len(t, heard(t, store, sess.ID()), 2)
}

func infoOf(t *testing.T, store *lifecycle.Store, id session.ID) (lifecycle.Info, bool) {
	t.Helper()
	all, err := store.List()
	require.NoError(t, err)
	for _, info := range all {
		if info.ID == id {
			require.NoError(t, info.Err)
			return info, true
		}
	}
	return lifecycle.Info{}, false
}

func TestMessagesUpTo(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	says(t, sess, "a", "b", "c")
	var got []string
	for m, err := range sess.MessagesUpTo("b") {
		require.NoError(t, err)
		got = append(got, m.ID)
	}
	require.Equal(t, []string{"a", "b"}, got)
	n := 0
	for _, err := range sess.MessagesUpTo("x") {
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
		n++
	}
	require.Equal(t, 1, n)
}

// A file of messages that lost its session's holder is not written again: each
// holder has its own.
func TestEachHolderWritesItsOwnFile(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	says(t, sess, "a")
	for i, name := range []string{"messages-2-1.jsonl", "messages-3-1.jsonl"} {
		require.NoError(t, sess.Close(t.Context()))
		var err error
		sess, err = store.Open(sess.ID())
		require.NoError(t, err)
		says(t, sess, fmt.Sprint(i))
		require.FileExists(t, path(store, "sessions", sess.ID().String(), name))
	}
	require.Equal(t, []string{"a", "0", "1"}, heard(t, store, sess.ID()))
}

// A model's API wants an answer to each of its tool calls: what a crash left open
// is answered by the next holder.
func TestOpenToolCallsAreClosed(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	calls := []session.ToolCall{{ID: "c1", Name: "read"}, {ID: "c2", Name: "write"}}
	require.NoError(t, sess.Append(&session.Message{ID: "a", Role: session.RoleAssistant, ToolCalls: calls}))
	require.NoError(t, sess.Append(&session.Message{ID: "b", Role: session.RoleTool, ToolCallID: "c1", Content: session.Text("done")}))
	require.NoError(t, sess.Close(t.Context()))
	for range 2 { // the second time nothing is open
		sess, err := store.Open(sess.ID())
		require.NoError(t, err)
		require.NoError(t, sess.Close(t.Context()))
	}
	var last session.Message
	n := 0
	for m, err := range store.Messages(sess.ID()) {
		require.NoError(t, err)
		last = m
		n++
	}
	require.Equal(t, 3, n)
	require.Equal(t, "c2", last.ToolCallID)
	require.Equal(t, session.RoleTool, last.Role)
	require.Contains(t, string(last.Content), "interrupted")
}

func TestWhatIsAppendedIsRedacted(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	key := "ghp_" + "abcdefghijKLMNOPQRST0123456789abcdEF"
	found := func(store *lifecycle.Store) int {
		sess := create(t, store, "auth")
		require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("use " + key)}))
		require.NoError(t, sess.AppendEvent([]byte(`{"out":"`+key+`"}`)))
		require.NoError(t, sess.Record(session.AttemptRecord{Task: "t", Tail: key, CheckTail: "x\n" + key}))
		require.NoError(t, sess.Close(t.Context()))
		found := 0
		dir := path(store, "sessions", sess.ID().String())
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			if data, err := os.ReadFile(dir + "/" + e.Name()); err == nil {
				found += bytes.Count(data, []byte(key))
			}
		}
		return found
	}
	require.Zero(t, found(store), "without being asked")
	own, err := redact.New([]string{"h[e]y"})
	require.NoError(t, err)
	require.Zero(t, found(storeWith(t, t.TempDir(), lifecycle.Policy{Redact: own})))
	require.Equal(t, 4, found(storeWith(t, t.TempDir(), lifecycle.Policy{Unredacted: true})), "redact is off")
}

// The end of an output that begins within a private key.
func TestTailThatBeginsWithinAKey(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	key := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n", 20)
	require.NoError(t, sess.Record(session.AttemptRecord{Task: "t", Tail: key + "-----END PRIVATE KEY-----\nand then\n"}))
	require.NoError(t, sess.Close(t.Context()))
	var tail string
	require.NoError(t, store.Log(sess.ID(), 0, func(r session.Record) error {
		for _, a := range r.Attempts {
			tail = a.Tail
		}
		return nil
	}))
	require.Equal(t, "[redacted:private-key]\nand then\n", tail)
}

// One bad line costs that message.
func TestDamagedMessageIsSetAside(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	says(t, sess, "a", "b", "c", "d")
	require.NoError(t, sess.Close(t.Context()))
	name := path(store, "sessions", sess.ID().String(), "messages.jsonl")
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	flip := func(i int) []byte {
		line := bytes.Clone(lines[i])
		line[len(line)/2] ^= 1
		return bytes.Join([][]byte{bytes.Join(lines[:i], nil), line, bytes.Join(lines[i+1:], nil)}, nil)
	}
	for what, c := range map[string]struct {
		content []byte
		want    string
	}{
		"header":  {flip(0), "a b c d"},
		"first":   {flip(1), "! b c d"},
		"middle":  {flip(2), "a ! c d"},
		"last":    {flip(4), "a b c !"},
		"cut":     {whole[:len(whole)-len(lines[4])-9], "a b !"},
		"nothing": {nil, "!"},
		"NULs":    {bytes.Replace(whole, lines[2], make([]byte, len(lines[2])), 1), "a ! c d"},
	} {
		require.NoError(t, os.WriteFile(name, c.content, 0o600))
		var got []string
		for m, err := range store.Messages(sess.ID()) {
			if errors.Is(err, lifecycle.ErrDamaged) {
				require.ErrorContains(t, err, "messages.jsonl")
				m.ID = "!"
			} else {
				require.NoError(t, err, what)
			}
			got = append(got, m.ID)
		}
		require.Equal(t, c.want, strings.Join(got, " "), what)
		sess, err := store.Open(sess.ID())
		require.NoError(t, err, "the session stays: %s", what)
		require.NoError(t, sess.Close(t.Context()))
	}
	require.NoError(t, os.Remove(name))
	for _, err := range store.Messages(sess.ID()) {
		require.ErrorIs(t, err, lifecycle.ErrDamaged)
	}
}

// An attempt that no journal takes is refused at once: kept, it would pause the
// session for good, or be lost without a word.
func TestAttemptThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	for what, a := range map[string]session.AttemptRecord{
		"cost": {CostUSD: math.NaN()},
		"time": {StartedAt: day.AddDate(9000, 0, 0)},
		"size": {Failure: strings.Repeat("x", 9<<20)},
	} {
		require.ErrorIs(t, sess.Record(a), lifecycle.ErrInvalid, what)
	}
	require.NoError(t, sess.Record(session.AttemptRecord{Task: "t", Attempt: 1}))
	require.NoError(t, sess.Sync(t.Context()))
}

// A disk that fails while calls are answered pauses the session: it is open.
func TestOpenCallsAndAFailingDisk(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.init()
	require.NoError(t, s.create())
	var calls []session.ToolCall
	for i := range 300 {
		calls = append(calls, session.ToolCall{ID: fmt.Sprint("c", i)})
	}
	require.NoError(t, s.sess.Append(&session.Message{ID: "a", Role: session.RoleAssistant, ToolCalls: calls}))
	require.NoError(t, s.sess.Close(t.Context()))
	s.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "write" && strings.Contains(op.Name, "messages-") {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	})
	sess, err := s.store.Open(s.id)
	require.NoError(t, err)
	require.ErrorIs(t, sess.Sync(t.Context()), syscall.EIO)
	s.disk.SetHook(nil)
	require.NoError(t, sess.Unpause(t.Context()))
	all, _, err := heardIn(s.store, s.id)
	require.NoError(t, err)
	require.Len(t, all, 301)
	require.NoError(t, sess.Close(t.Context()))
}
