package session_test

import (
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

// FuzzRecordWithAttempts: what a record says of attempts and streams comes back.
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
			At: at, Messages: session.Tail{File: strings.ToValidUTF8(file, "?"), Bytes: size, Count: n},
			Transcript: session.Tail{File: "transcript.jsonl", Bytes: size, Count: n},
		}
		for range min(max(many, 0), 3) {
			rec.Attempts, rec.OpenCalls = append(rec.Attempts, a), append(rec.OpenCalls, a.Task)
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
			require.Equal(t, rec.Attempts, got.Attempts)
		}
	})
}
