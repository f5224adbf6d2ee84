package session_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// said is a message with every member.
func said() session.Message {
	return session.Message{
		ID: "m1", Time: at, Role: session.RoleAssistant, Content: session.Text("a\n<b>\u2028"),
		ToolCalls: []session.ToolCall{{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"a":[1]}`)}},
		Usage:     &session.Usage{InputTokens: 1, OutputTokens: 2, CachedTokens: 3},
	}
}

func TestMessageValidate(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(m *session.Message){
		"no uuid":         func(m *session.Message) { m.ID = "" },
		"long uuid":       func(m *session.Message) { m.ID = strings.Repeat("x", 129) },
		"uuid not UTF-8":  func(m *session.Message) { m.ID = strings.Repeat("\xff", 100) },
		"no time":         func(m *session.Message) { m.Time = time.Time{} },
		"role":            func(m *session.Message) { m.Role = "robot" },
		"content":         func(m *session.Message) { m.Content = json.RawMessage(`{`) },
		"answers nothing": func(m *session.Message) { m.Role = session.RoleTool },
		"call without ID": func(m *session.Message) { m.ToolCalls[0].ID = "" },
		"arguments":       func(m *session.Message) { m.ToolCalls[0].Arguments = json.RawMessage(`x`) },
	} {
		encode := func(m session.Message) error {
			if err := m.Validate(); err != nil {
				return err
			}
			_, err := session.EncodeMessage(&m)
			return err
		}
		m := said()
		require.NoError(t, encode(m))
		change(&m)
		require.Error(t, encode(m), what)
	}
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	call := func(ids ...string) *session.Message {
		m := &session.Message{}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, session.ToolCall{ID: id})
		}
		return m
	}
	answer := func(id string) *session.Message { return &session.Message{ToolCallID: id} }
	for _, c := range []struct {
		open []string
		m    *session.Message
		want []string
	}{
		{nil, call(), nil},
		{nil, call("a", "b"), []string{"a", "b"}},
		{[]string{"a", "b"}, answer("a"), []string{"b"}},
		{[]string{"a", "b"}, answer("x"), []string{"a", "b"}},
		{[]string{"a"}, call("b"), []string{"a", "b"}},
		{[]string{"a"}, call("a", "a"), []string{"a"}}, // one answer closes it
		{[]string{"a"}, answer("a"), nil},
	} {
		was := append([]string{}, c.open...)
		got := session.Answered(c.open, c.m)
		require.Equal(t, len(c.want), len(got))
		require.Equal(t, append([]string{}, c.want...), append([]string{}, got...))
		require.Equal(t, was, append([]string{}, c.open...), "the old list stays")
	}
}

func TestDerive(t *testing.T) {
	t.Parallel()
	from := full(t)
	id, err := session.NewID("auth", at, 9)
	require.NoError(t, err)
	before, _ := encode(from)
	now := at.Add(time.Hour)
	l := session.Lineage{Kind: session.LineageForked, From: from.ID(), Seq: 7}
	st, err := from.Derive(id, now, l)
	require.NoError(t, err)
	require.Equal(t, id, st.ID())
	require.Equal(t, &l, st.Header().Lineage)
	require.True(t, now.Equal(st.Header().CreatedAt) && now.Equal(st.Header().UpdatedAt))
	require.NotEqual(t, session.StatusActive, st.Status())
	require.Equal(t, from.NumTasks(), st.NumTasks())
	again(t, st)
	after, _ := encode(from)
	require.Equal(t, string(before), string(after), "the other one is as it was")

	active, err := fresh(t).Derive(id, now, l)
	require.NoError(t, err)
	require.Equal(t, session.StatusPaused, active.Status())
	require.Equal(t, session.ExitPaused, active.Header().ExitReason)

	_, err = from.Derive(session.ID{}, now, l)
	require.Error(t, err)
}

// FuzzDecodeMessage: what is read is valid, and can be written and read as the same.
func FuzzDecodeMessage(f *testing.F) {
	m := said()
	data, err := session.EncodeMessage(&m)
	require.NoError(f, err)
	f.Add(data)
	f.Add(line(3, data[1:len(data)-1]))
	f.Add([]byte(`{"uuid":"a","timestamp":"2026-02-14T09:00:00Z","role":"tool","toolCallId":"c","content":null}`))
	f.Add([]byte(`{"UUID":"\ud800","timestamp":"0001-01-01T00:00:00+23:59","role":"user","content":[1,{"a":"\u0000"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := session.DecodeMessage(data)
		if err != nil {
			require.ErrorIs(t, err, session.ErrCorrupt)
			require.Zero(t, m)
			return
		}
		require.NoError(t, m.Validate())
		out, err := session.EncodeMessage(&m)
		require.NoError(t, err)
		require.NotContains(t, string(out), "\n")
		got, err := session.DecodeMessage(out)
		require.NoError(t, err)
		twice, err := session.EncodeMessage(&got)
		require.NoError(t, err)
		require.Equal(t, string(out), string(twice))
	})
}

func TestAttemptSize(t *testing.T) {
	t.Parallel()
	size, err := (&session.AttemptRecord{Task: "a", Tail: strings.Repeat("x", 1000)}).Size()
	require.NoError(t, err)
	require.Greater(t, size, 1000)
	for _, a := range []session.AttemptRecord{
		{CostUSD: math.Inf(1)}, {CostUSD: math.NaN()}, {EndedAt: at.AddDate(9000, 0, 0)},
		{Failure: strings.Repeat("x", session.MaxAttempt)},
	} {
		_, err := a.Size()
		require.Error(t, err)
	}
}

// FuzzRecordWithAttempts: what a record says of attempts and of the conversation comes back.
func FuzzRecordWithAttempts(f *testing.F) {
	f.Add("task", "tail\n", "messages.jsonl", int64(9), uint64(3), 1.5, 2)
	f.Add("\xff\"", "\x00\u2028<&>", "../x", int64(0), uint64(0), math.NaN(), 0)
	f.Add("", "", "", int64(1)<<60, uint64(1)<<60, -1.0, 1)
	f.Fuzz(func(t *testing.T, task, tail, file string, size int64, n uint64, cost float64, many int) {
		size, n = max(size, 0), n>>2
		a := session.AttemptRecord{
			Task: strings.ToValidUTF8(task, "?"), Attempt: many, Command: []string{strings.ToValidUTF8(tail, "?")}, StartedAt: at, EndedAt: at,
			Tail: strings.ToValidUTF8(tail, "?"), CostUSD: cost, Check: &session.CheckRun{Command: "make"},
			Files: []session.FileChange{{Path: strings.ToValidUTF8(file, "?"), Change: "moved", From: "b"}}, Exit: -1,
		}
		if _, err := a.Size(); err != nil {
			return
		}
		rec := session.Record{
			At: at, Messages: n, Transcript: uint64(size),
		}
		for range min(max(many, 0), 3) {
			rec.Attempts, rec.OpenCalls, rec.Inherits = append(rec.Attempts, a), append(rec.OpenCalls, a.Task), append(rec.Inherits, n)
		}
		for _, body := range [][]byte{
			session.EncodeChange(fresh(t), fresh(t), rec, 0).Body,
			session.EncodeSnapshotRecord(rec, session.SnapshotRef{SHA256: strings.Repeat("0a", 32)}),
		} {
			got, err := session.DecodeRecord(line(5, body))
			require.NoError(t, err, "%s", body)
			require.Equal(t, rec.Messages, got.Messages)
			require.Equal(t, rec.Transcript, got.Transcript)
			require.Equal(t, rec.OpenCalls, got.OpenCalls)
			require.Equal(t, rec.Inherits, got.Inherits)
			require.Equal(t, rec.Attempts, got.Attempts)
		}
	})
}

// entryLine is the line of a record that is a message or an event.
func entryLine(r session.Record) []byte { return line(5, entryBody(r)) }

func entryBody(r session.Record) []byte {
	return append(append(session.EncodeAppended(r), r.Message...), r.TranscriptEvent...)
}

func TestAppended(t *testing.T) {
	t.Parallel()
	m := said()
	message, err := session.EncodeMessage(&m)
	require.NoError(t, err)
	rec, err := session.DecodeRecord(entryLine(session.Record{At: at, Messages: 12, Transcript: 7, Message: message}))
	require.NoError(t, err)
	require.EqualValues(t, 5, rec.Seq)
	require.Equal(t, []session.Op{{Name: session.OpMessagesAppended, Count: 1}}, rec.Ops)
	require.True(t, at.Equal(rec.At))
	got, err := session.DecodeMessage(rec.Message)
	require.NoError(t, err)
	require.Equal(t, m.ID, got.ID)
	rec, err = session.DecodeRecord(entryLine(session.Record{At: at, Messages: 12, Transcript: 8, TranscriptEvent: []byte(`{"message":{}}`)}))
	require.NoError(t, err)
	require.Equal(t, []session.Op{{Name: session.OpEventsAppended, Count: 1}}, rec.Ops)
	require.Nil(t, rec.Message)
	require.EqualValues(t, [2]uint64{12, 8}, [2]uint64{rec.Messages, rec.Transcript})

	// What leads to the State goes on with it, whatever the message is.
	r := &session.Replay{}
	st := fresh(t)
	_, err = r.Apply(line(1, session.EncodeChange(nil, st, session.Record{At: at, Inherits: []uint64{4, 9}, Messages: 10, OpenCalls: []string{"x"}}, 0).Body))
	require.NoError(t, err)
	for i, m := range []string{`{"uuid":"a","timestamp":"2026-02-14T09:00:00Z","role":"assistant","toolCalls":[{"id":"c1"},{"id":"c2"}]}`,
		`{"uuid":"b","timestamp":"2026-02-14T09:00:00Z","role":"tool","toolCallId":"x"}`,
		`{"of":"a role that nobody knows"}`} {
		_, err = r.Apply(line(uint64(i+2), entryBody(session.Record{At: at, Messages: uint64(11 + i), Message: []byte(m)})))
		require.NoError(t, err)
	}
	_, mark, err := r.State(st.ID())
	require.NoError(t, err)
	require.Equal(t, session.Mark{Epoch: mark.Epoch, Seq: 4, Iterations: mark.Iterations, Messages: 13, Inherits: []uint64{4, 9}, OpenCalls: []string{"c1", "c2"}}, mark)
}

// FuzzAppended: a message and an event come back byte by byte, whatever the object is.
func FuzzAppended(f *testing.F) {
	f.Add([]byte(`{"a":1}`), uint64(1), uint64(0), true)
	f.Add([]byte(`{"x":",\"crc\":\"00000000\"}","crc":"00000000"}`), uint64(3), uint64(9), false)
	f.Add([]byte("{\"a\":{\"message\":{},\"a\":\"\xff\"}}"), uint64(1)<<60, uint64(1), false)
	f.Fuzz(func(t *testing.T, object []byte, messages, events uint64, message bool) {
		if !json.Valid(object) || object[0] != '{' || bytes.ContainsAny(object, "\n") {
			return
		}
		want := session.Record{At: at, Messages: messages >> 1, Transcript: events >> 1}
		if message {
			want.Message = object
		} else {
			want.TranscriptEvent = object
		}
		got, err := session.DecodeRecord(entryLine(want))
		require.NoError(t, err)
		require.Equal(t, string(want.Message), string(got.Message))
		require.Equal(t, string(want.TranscriptEvent), string(got.TranscriptEvent))
		require.Equal(t, want.Messages, got.Messages)
		require.Equal(t, want.Transcript, got.Transcript)
	})
}
