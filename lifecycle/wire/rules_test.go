package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// No State that can be built or read breaks a critical rule. The error names each of
// these rules.
func TestRulesThatAreErrors(t *testing.T) {
	t.Parallel()
	created := func(id, parent string) string {
		return fmt.Sprintf(`{"op":"task-created","parent":%q,"task":{"id":%q,"kind":"task","state":"pending"}}`, parent, id)
	}
	children := func(of string, ids ...string) string {
		return fmt.Sprintf(`{"op":"children-changed","of":%q,"inserted":["%s"]}`, of, strings.Join(ids, `","`))
	}
	start := wire.EncodeChange(nil, fresh(t), record.Record{At: at, Event: record.EventCreated}, 0).Body
	for name, c := range map[string]struct {
		ops  []string
		rule string
	}{
		"orphan":                          {[]string{created("x", "gone")}, "orphaned-task"},
		"a parent that lists no child":    {[]string{created("x", ""), created("y", "x"), children("", "x")}, "parent-knows-child"},
		"a parent that lists another's":   {[]string{created("x", ""), created("y", ""), created("z", "y"), children("", "x"), children("x", "z")}, "parent-knows-child"},
		"a child twice":                   {[]string{created("x", ""), created("y", ""), children("", "x", "x")}, "duplicate-id"},
		"each is the other one's parent":  {[]string{created("x", "y"), created("y", "x"), children("x", "y"), children("y", "x")}, "parents-end"},
		"an operation that nobody can do": {[]string{`{"op":"exploded"}`}, "whole"},
	} {
		var r wire.Replay
		_, err := r.Apply(line(1, start))
		require.NoError(t, err)
		_, err = r.Apply(line(2, []byte(`"schemaVersion":2,"ops":[`+strings.Join(c.ops, ",")+`]`)))
		if err == nil {
			_, _, err = r.State(fresh(t).ID())
		}
		require.ErrorIs(t, err, envelope.ErrCorrupt, name)
		f, ok := session.FindingOf(fmt.Errorf("read: %w", err))
		require.True(t, ok, name)
		require.Equal(t, c.rule, f.Rule, name)
		require.Equal(t, session.SeverityCritical, f.Severity, name)
	}
	state, metrics := encode(full(t))
	for rule, files := range map[string][2]string{
		"duplicate-id": {string(sealed(strings.Replace(string(state), `{"id":"c",`, `{"id":"b",`, 1))), string(metrics)},
		"session-id":   {string(state), string(sealed(strings.Replace(string(metrics), "auth-", "other-", 1)))},
		"checksum":     {strings.Replace(string(state), `"status":"paused"`, `"status":"active"`, 1), string(metrics)},
		"whole":        {string(state[:100]), string(metrics)},
	} {
		_, _, err := decode([]byte(files[0]), []byte(files[1]))
		f, ok := session.FindingOf(err)
		require.True(t, ok, rule)
		require.Equal(t, rule, f.Rule)
	}
	other, err := session.ParseID("auth-20260214-2")
	require.NoError(t, err)
	require.NoError(t, session.CheckFolder(other, other))
	f, ok := session.FindingOf(session.CheckFolder(fresh(t).ID(), other))
	require.True(t, ok)
	require.Equal(t, "session-id", f.Rule)
	for _, err := range []error{nil, envelope.ErrFutureVersion} {
		_, ok := session.FindingOf(err)
		require.False(t, ok, "it says nothing of the content")
	}
}

func TestSumsThatDoNotAddUp(t *testing.T) {
	t.Parallel()
	state, metrics := encode(full(t))
	load := func(state, metrics []byte) (rules []string) {
		var r wire.Replay
		require.NoError(t, r.Load(state, metrics))
		for _, f := range r.Findings() {
			require.Equal(t, session.SeverityError, f.Severity)
			rules = append(rules, f.Rule)
		}
		_, _, err := r.State(fresh(t).ID())
		require.NoError(t, err, "it is usable")
		return rules
	}
	swap := func(file []byte, old, now string) []byte {
		require.Equal(t, 1, strings.Count(string(file), old), old)
		return sealed(strings.Replace(string(file), old, now, 1))
	}
	require.Empty(t, load(state, metrics))
	require.Equal(t, []string{"progress-adds-up"}, load(swap(state, `"failed":1`, `"failed":0`), metrics))
	require.Equal(t, []string{"totals-add-up"}, load(swap(state, `"outputTokens":80`, `"outputTokens":81`), metrics))
	require.Equal(t, []string{"totals-add-up"}, load(state, swap(metrics, `"outputTokens":80`, `"outputTokens":81`)))
	require.Equal(t, []string{"totals-add-up"}, load(state, swap(metrics, `"costUSD":4.0`, `"costUSD":4.1`)))
	require.Empty(t, load(swap(state, `"progress":{"done":0,"total":2,"failed":1,"skipped":0},`, ``), metrics), "what is not said is not wrong")

	// Metrics of an earlier record are compared with nothing: they are replayed.
	e := full(t).Edit() // of before somebody went back
	for range 40 {
		e.AppendIteration(session.Iteration{StartedAt: at, OutputTokens: 1000})
	}
	more, err := e.State()
	require.NoError(t, err)
	e = fresh(t).Edit()
	for it := range more.Iterations() {
		it.OutputTokens++
		e.AppendIteration(it)
	}
	more, err = e.State()
	require.NoError(t, err)
	for _, st := range []*session.State{fresh(t), more} {
		var r wire.Replay
		require.NoError(t, r.Load(wire.EncodeState(full(t), session.Mark{Seq: 42, Iterations: 40}), wire.EncodeMetrics(st, session.Mark{Seq: 7})))
		require.Empty(t, r.Findings())
	}
}
