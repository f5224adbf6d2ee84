package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// message returns a message that has every member.
func message() session.Message {
	return session.Message{
		ID: "m1", Time: at, Role: session.RoleAssistant, Content: session.Text("a\n<b>\u2028"),
		ToolCalls: []session.ToolCall{{ID: "c1", Name: "read", Arguments: strictjson.Value(`{"a":[1]}`)}},
		Usage:     &session.Usage{InputTokens: 1, OutputTokens: 2, CachedTokens: 3},
		Thread:    "a1", Parent: "m0", Kind: session.KindMeta,
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
		"long thread":     func(m *session.Message) { m.Thread = strings.Repeat("x", 129) },
		"long parent":     func(m *session.Message) { m.Parent = strings.Repeat("x", 129) },
		"kind":            func(m *session.Message) { m.Kind = "joke" },
		"content":         func(m *session.Message) { m.Content = strictjson.Value(`{`) },
		"answers nothing": func(m *session.Message) { m.Role = session.RoleTool },
		"call without ID": func(m *session.Message) { m.ToolCalls[0].ID = "" },
		"arguments":       func(m *session.Message) { m.ToolCalls[0].Arguments = strictjson.Value(`x`) },
	} {
		encode := func(m session.Message) error {
			if err := m.Validate(); err != nil {
				return err
			}
			_, err := wire.EncodeMessage(&m)
			return err
		}
		m := message()
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
	e := family(t).Edit()
	e.Header().Status, e.Header().ExitReason = session.StatusComplete, session.ExitComplete
	from, err := e.State()
	require.NoError(t, err)
	id, err := session.NewID("auth", at, 9)
	require.NoError(t, err)
	before := from.Header()
	now := at.Add(time.Hour)
	l := session.Lineage{Kind: session.LineageForked, From: from.ID(), Seq: 7}
	st, err := from.Derive(id, now, l)
	require.NoError(t, err)
	require.Equal(t, id, st.ID())
	require.Equal(t, &l, st.Header().Lineage)
	require.True(t, now.Equal(st.Header().CreatedAt) && now.Equal(st.Header().UpdatedAt))
	require.NotEqual(t, session.StatusActive, st.Status())
	require.Equal(t, from.NumTasks(), st.NumTasks())
	require.Equal(t, before, from.Header(), "the other one is as it was")

	active, err := fresh(t).Derive(id, now, l)
	require.NoError(t, err)
	require.Equal(t, session.StatusPaused, active.Status())
	require.Equal(t, session.ExitPaused, active.Header().ExitReason)

	_, err = from.Derive(session.ID{}, now, l)
	require.Error(t, err)
}
