package lifecycle_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
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

func messageIDs(t *testing.T, store *lifecycle.Store, id session.ID) []string {
	t.Helper()
	messages, _, err := conversationIn(store, id)
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
	require.Len(t, messageIDs(t, store, sess.ID()), 2)
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

// The messages of several holders are one conversation, whether or not a publication was between.
func TestMessagesOfSeveralHolders(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	says(t, sess, "a")
	for i := range 2 {
		require.NoError(t, sess.Close(t.Context()))
		var err error
		sess, err = store.Open(sess.ID())
		require.NoError(t, err)
		says(t, sess, fmt.Sprint(i))
	}
	require.Equal(t, []string{"a", "0", "1"}, messageIDs(t, store, sess.ID()))
}

// Messages without a change of the State are records of their own and nothing else.
func TestMessagesAloneChangeNothing(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	says(t, sess, "a", "b")
	require.NoError(t, sess.AppendEvent([]byte(`{"e":1}`)))
	require.NoError(t, sess.Sync(t.Context()))
	var got []string
	require.NoError(t, store.Log(sess.ID(), 0, func(r record.Record) error {
		require.False(t, r.At.IsZero())
		got = append(got, fmt.Sprintf("%d %s %d %d %d", r.Seq, r.Event, r.Messages, r.Transcript, len(r.Ops)))
		return nil
	}))
	require.Equal(t, []string{"1 created 0 0 4", "2  1 0 1", "3  2 0 1", "4  2 1 1"}, got)
}

// Everything that Append accepts can be read back, and the session can still be read.
func TestMessagesThatNoOtherMemberMayBe(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	contents := []string{deep, `{"a":1,"a":2}`, "\"\xff\"", `",\"crc\":\"00000000\"}\n{\"seq\":9"`, `{"message":{"transcriptEvent":{}}}`}
	for i, c := range contents {
		require.NoError(t, sess.Append(&session.Message{ID: fmt.Sprint(i), Role: session.RoleUser, Content: []byte(c)}))
		require.NoError(t, sess.AppendEvent([]byte(`{"x":`+c+`}`)))
	}
	require.NoError(t, sess.Close(t.Context()))
	_, err := store.Recover(t.Context(), sess.ID().String(), repair.JournalAlone, true)
	require.NoError(t, err)
	i := 0
	for m, err := range store.Messages(sess.ID()) {
		require.NoError(t, err)
		require.Equal(t, contents[i], string(m.Content))
		i++
	}
	require.Len(t, contents, i)
	i = 0
	for e, err := range store.Transcript(sess.ID()) {
		require.NoError(t, err)
		require.Equal(t, `{"x":`+contents[i]+`}`, string(e))
		i++
	}
	require.Len(t, contents, i)
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
		require.NoError(t, sess.Record(record.Attempt{Task: "t", Tail: key, CheckTail: "x\n" + key}))
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
	require.Equal(t, 6, found(storeWith(t, t.TempDir(), lifecycle.Policy{Unredacted: true})), "redact is off: two more in the copies")
}

// The end of an output that begins within a private key.
func TestTailThatBeginsWithinAKey(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	key := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n", 20)
	require.NoError(t, sess.Record(record.Attempt{Task: "t", Tail: key + "-----END PRIVATE KEY-----\nand then\n"}))
	require.NoError(t, sess.Close(t.Context()))
	var tail string
	require.NoError(t, store.Log(sess.ID(), 0, func(r record.Record) error {
		for _, a := range r.Attempts {
			tail = a.Tail
		}
		return nil
	}))
	require.Equal(t, "[redacted:private-key]\nand then\n", tail)
}

// messageLine is the line of a message in a journal.
func messageLine(t *testing.T, lines [][]byte, id string) int {
	t.Helper()
	i := slices.IndexFunc(lines, func(line []byte) bool { return bytes.Contains(line, []byte(`{"uuid":"`+id+`"`)) })
	require.Positive(t, i)
	return i
}

// A recovered session has all that the damaged one's log still has of the conversation, also
// behind what is lost, and the error names what it lacks.
func TestRecoveredSessionHasTheConversation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose []string
		have []string
		lost string
	}{
		"the newest segment": {[]string{"journal-3-1.jsonl"}, []string{"m0", "m1"}, "the messages 3 to 3 are damaged"},
		"one between":        {[]string{"journal-2-1.jsonl", "state.json", "metrics.json"}, []string{"m0", "m2"}, "the messages 2 to 2 are damaged"},
		"all":                {[]string{"journal-1-1.jsonl", "journal-2-1.jsonl", "journal-3-1.jsonl"}, nil, "the messages 1 to 3 are damaged"},
	} {
		store := initStore(t)
		sess := create(t, store, "auth")
		id := sess.ID()
		for n := range 3 {
			says(t, sess, fmt.Sprintf("m%d", n))
			require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
				e.Put(session.Task{ID: fmt.Sprint("t", n), Kind: session.KindTask, State: session.TaskPending})
				e.SetRoots([]string{"t0", "t1", "t2"}[:n+1])
				return nil
			}))
			require.NoError(t, sess.Close(t.Context()))
			var err error
			if n < 2 {
				sess, err = store.Open(id)
				require.NoError(t, err)
			}
		}
		for _, file := range c.lose {
			require.NoError(t, os.Remove(path(store, "sessions", id.String(), file)), name)
		}
		r, err := store.Recover(t.Context(), id.String(), "", false)
		require.NoError(t, err, name)
		require.Contains(t, strings.Join(r.Lost, "\n"), c.lost, name)
		sess, err = store.Open(r.ID)
		require.NoError(t, err)
		says(t, sess, "next")
		require.NoError(t, sess.Close(t.Context()))
		var have []string
		var lost []error
		for m, err := range store.Messages(r.ID) {
			if err != nil {
				lost = append(lost, err)
				continue
			}
			have = append(have, m.ID)
		}
		require.Equal(t, append(c.have, "next"), have, name)
		require.Len(t, lost, 1, name)
		require.ErrorIs(t, lost[0], folder.ErrDamaged)
		require.ErrorContains(t, lost[0], c.lost, name)
	}
}

// A bad line loses its message and not the session.
func TestDamagedMessageCostsItself(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	for _, id := range []string{"a", "b", "c", "d"} {
		require.NoError(t, sess.Append(&session.Message{ID: id, Role: session.RoleUser}))
		require.NoError(t, sess.AppendEvent([]byte(`{"e":"`+id+`"}`)))
	}
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(7)))
	require.NoError(t, sess.Close(t.Context()))
	name := path(store, "sessions", sess.ID().String(), "journal-1-1.jsonl")
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	with := func(i int, line []byte) []byte {
		return bytes.Join([][]byte{bytes.Join(lines[:i], nil), line, bytes.Join(lines[i+1:], nil)}, nil)
	}
	flip := func(i int) []byte {
		line := bytes.Clone(lines[i])
		line[len(line)/2] ^= 1
		return with(i, line)
	}
	first := messageLine(t, lines, "a")
	for what, c := range map[string]struct {
		content          []byte
		messages, events string
	}{
		"header":       {flip(0), "a b c d", "a b c d"},
		"first":        {flip(first), "! b c d", "a b c d"},
		"middle":       {flip(first + 2), "a ! c d", "a b c d"},
		"event":        {flip(first + 3), "a b c d", "a ! c d"},
		"last":         {flip(first + 6), "a b c !", "a b c d"},
		"last event":   {flip(first + 7), "a b c d", "a b c !"},
		"NULs":         {with(first+2, make([]byte, len(lines[first+2]))), "a ! c d", "a b c d"}, // and the next line begins with them
		"no line feed": {with(first+2, bytes.TrimSuffix(lines[first+2], []byte("\n"))), "a ! c d", "a b c d"},
		"two":          {bytes.Replace(flip(first+2), []byte(`{"uuid":"c"`), []byte(`{"uuid":"x"`), 1), "a ! d", "a b c d"},
		"line is gone": {with(first+2, nil), "a ! c d", "a b c d"},
		"run is gone":  {bytes.Join([][]byte{bytes.Join(lines[:first+2], nil), bytes.Join(lines[first+6:], nil)}, nil), "a ! d", "a ! d"},
	} {
		require.NoError(t, os.WriteFile(name, c.content, 0o600))
		var messages, events []string
		lost := func(err error) bool {
			require.ErrorIs(t, err, folder.ErrDamaged, what)
			require.ErrorContains(t, err, "journal-1-1.jsonl: ", what)
			return true
		}
		for m, err := range store.Messages(sess.ID()) {
			if err != nil && lost(err) {
				m.ID = "!"
			}
			messages = append(messages, m.ID)
		}
		for e, err := range store.Transcript(sess.ID()) {
			text := "!"
			if err == nil || !lost(err) {
				text = strings.Split(string(e), `"`)[3]
			}
			events = append(events, text)
		}
		require.Equal(t, c.messages, strings.Join(messages, " "), what)
		require.Equal(t, c.events, strings.Join(events, " "), what)
		st, _, err := store.Read(sess.ID())
		require.NoError(t, err, "the session stays: %s", what)
		require.Equal(t, 7, st.Header().TurnCount)
		report, err := store.Verify(sess.ID())
		require.NoError(t, err)
		require.NotEqual(t, repair.Intact, report.Condition, what)
	}
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	says(t, again, "e")
	require.NoError(t, again.Close(t.Context()))
	n := 0
	for m, err := range store.Messages(sess.ID()) {
		if err == nil && m.ID == "e" {
			n++
		}
	}
	require.Equal(t, 1, n, "the numbers go on behind what is lost")
}

// A conversation of 64 MB is read with the memory for one line and one segment's places.
func TestLongConversationIsReadWithLittleMemory(t *testing.T) { //nolint:paralleltest // it measures what is in use
	if testing.Short() {
		t.Skip("memory is measured; -short")
	}
	store := initStore(t)
	sess := create(t, store, "auth")
	content := session.Text(strings.Repeat("word ", 100<<10/5))
	for i := range 640 {
		require.NoError(t, sess.Append(&session.Message{ID: fmt.Sprint(i), Role: session.RoleUser, Content: content}))
		if i%16 == 0 {
			require.NoError(t, sess.Sync(t.Context()))
		}
	}
	require.NoError(t, sess.Close(t.Context()))
	highest, n := uint64(0), 0
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	for m, err := range store.Messages(sess.ID()) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(n), m.ID)
		if n++; n%64 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			highest = max(highest, now.HeapAlloc)
		}
	}
	require.Equal(t, 640, n)
	t.Logf("%d KB before, %d KB at the highest", before.HeapAlloc>>10, highest>>10)
	require.Less(t, int64(highest)-int64(before.HeapAlloc), int64(8<<20))
}

// An attempt that no journal can hold is refused at once. If it were accepted, it would
// pause the session for good or be lost silently.
func TestAttemptThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	for what, a := range map[string]record.Attempt{
		"cost": {CostUSD: math.NaN()},
		"time": {StartedAt: day.AddDate(9000, 0, 0)},
		"size": {Failure: strings.Repeat("x", 9<<20)},
	} {
		require.ErrorIs(t, sess.Record(a), lifecycle.ErrInvalid, what)
	}
	require.NoError(t, sess.Record(record.Attempt{Task: "t", Attempt: 1}))
	require.NoError(t, sess.Sync(t.Context()))
}

// A disk that fails while Open answers calls pauses the session, but Open succeeds.
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
		if op.Call == "datasync" && strings.Contains(op.Name, "journal-2-") {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	})
	sess, err := s.store.Open(s.id)
	require.NoError(t, err)
	require.ErrorIs(t, sess.Sync(t.Context()), syscall.EIO)
	s.disk.SetHook(nil)
	require.NoError(t, sess.Unpause(t.Context()))
	all, _, err := conversationIn(s.store, s.id)
	require.NoError(t, err)
	require.Len(t, all, 301)
	require.NoError(t, sess.Close(t.Context()))
}
