package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// full returns a State in which nothing is empty.
func full(t require.TestingT) *session.State {
	e := family(t).Edit()
	b, _ := e.Task("b")
	b.Name, b.Box, b.Attempts, b.LastError = "line\n\ttab \"quoted\" \\ \x01 é 😀 </script>\u2028", session.BoxTicked, 3, "exit 1"
	b.State, b.DependsOn, b.StartedAt, b.CompletedAt = session.TaskFailed, []string{"a", "gone"}, at, at.Add(time.Hour)
	b.Log = []session.Attempt{{Number: 1, StartedAt: at, EndedAt: at.Add(time.Second), Exit: -1, Signal: "killed", Error: "it was", Artifacts: []string{"a.go", "b.go"}}}
	b.Extra = []session.Field{{Key: "newer\"", Value: strictjson.Value(`{"a":[1.50,null,"\u00e9"]}`)}}
	e.Put(b)
	a, _ := e.Task("a")
	a.Kind, a.Box = session.KindComponent, session.BoxOpen
	e.Put(a)
	h := e.Header()
	h.Status, h.Phase, h.Step, h.ExitReason = session.StatusPaused, session.PhaseBuilding, session.StepIterateThroughTasks, session.ExitAgentLimit
	h.Component, h.ActiveTask = "a", "c"
	h.UpdatedAt, h.CompletedAt = at.Add(time.Minute), at.Add(time.Hour)
	h.Settings = session.Settings{Command: []string{"sh", "-c", "x"}, Agent: "claude", Check: "make test", Unit: "leaf", Timeout: time.Hour, IdleTimeout: 1500 * time.Microsecond,
		FailureThreshold: 3, RequireChange: true, Commit: true, Branch: true}
	h.Cwd, h.AgentName, h.AgentSession, h.TransactionID = "sub/dir", "claude", "s-1", "t-1"
	h.Models, h.ModelConfig, h.ContextWindow = []string{"m1", "m2"}, strictjson.Value(`{"effort":"high"}`), 200_000
	h.TurnCount, h.TotalCostUSD = 12, 0.1+0.2
	h.RateLimit = &session.RateLimit{Limit: 100, Remaining: 3, ResetsAt: at.Add(time.Hour), SeenAt: at}
	h.Git = session.Git{Head: "abc", Branch: "main", Dirty: true, LastTaskCommit: "def"}
	h.Commits = &session.Commits{Branch: "main", Pending: "a", Held: []string{"a.go", "b.go"}}
	h.Lineage = &session.Lineage{Kind: session.LineageForked, From: fresh(t).ID(), Seq: math.MaxUint64}
	h.Worktree = &session.Worktree{Path: "../auth-worktrees/auth-20260214-1", Branch: "lopen/auth-20260214-1", Base: "0123abc"}
	h.Origin, h.Holder = session.OriginHook, &session.Holder{PID: 12, Start: "345", Host: "h", Boot: "b", Command: "claude", Since: at}
	h.RequiresValidation = true
	h.Check = &session.CheckResult{Command: "make test", Exit: 2, At: at, Duration: time.Second, Task: "a"}
	h.Resources = []session.Resource{{Kind: "plan", Path: "plan.md", Header: "H", SHA256: "00ff", Bytes: 12}}
	h.Data = strictjson.Value(`{"ratings":[1,2.5e3]}`)
	h.Extra = []session.Field{{Key: "later", Value: strictjson.Value(`[true]`)}}
	for i := range 40 {
		e.AppendIteration(session.Iteration{Task: "c", Attempt: 1, StartedAt: at, Duration: time.Duration(i), InputTokens: int64(i), OutputTokens: 2, CachedTokens: 3,
			ContextWindow: 4, ContextUsed: 3, RateLimit: &session.RateLimit{Limit: 100, Remaining: 3, ResetsAt: at, SeenAt: at}, PremiumRequests: 0.33, CostUSD: 0.1, Model: "m1", Turns: 5})
	}
	st, err := e.State()
	require.NoError(t, err)
	return st
}

func encode(st *session.State) (state, metrics []byte) {
	return wire.EncodeState(st, session.Mark{Seq: 42}), wire.EncodeMetrics(st, session.Mark{Seq: 42})
}

// sealed returns a changed file with the checksum of its new content.
func sealed(file string) []byte {
	body, _, _ := strings.Cut(file, `,"checksum":`)
	return fmt.Appendf(nil, "%s,\"checksum\":\"crc32c:%08x\"}\n", body, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)))
}

// TestFullIsFull requires that full has a value for each field of the header, so that a
// test with full tests each field.
func TestFullIsFull(t *testing.T) {
	t.Parallel()
	h := reflect.ValueOf(full(t).Header())
	for i := range h.NumField() {
		require.False(t, h.Field(i).IsZero(), "full has no %s", h.Type().Field(i).Name)
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]*session.State{"new": fresh(t), "full": full(t), "family": family(t)} {
		state, metrics := encode(st)
		got, seq, err := decode(state, metrics)
		require.NoError(t, err, name)
		require.EqualValues(t, 42, seq.Seq)
		require.Equal(t, st.ID(), got.ID())
		require.Equal(t, st.Header(), got.Header())
		require.Equal(t, st.Progress(), got.Progress())
		require.Equal(t, st.Totals(), got.Totals())
		require.Equal(t, slices.Collect(st.Iterations()), slices.Collect(got.Iterations()))
		require.Equal(t, slices.Collect(st.All()), slices.Collect(got.All()))
		again, metricsAgain := encode(got)
		require.Equal(t, string(state), string(again))
		require.Equal(t, string(metrics), string(metricsAgain))
	}
}

// TestFormat shows both files to encoding/json: valid, compact, camelCase, nothing
// null, the version first, the checksum last.
func TestFormat(t *testing.T) {
	t.Parallel()
	state, metrics := encode(full(t))
	for _, file := range [][]byte{state, metrics} {
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, file))
		require.Equal(t, compact.String()+"\n", string(file))
		require.Regexp(t, `^\{"schemaVersion":2,"id":"auth-20260214-1","module":"auth","seq":42,`, string(file))
		require.Regexp(t, `,"checksum":"crc32c:[0-9a-f]{8}"\}\n$`, string(file))
		for _, key := range regexp.MustCompile(`[{,]"(\w+)":`).FindAllStringSubmatch(string(file), -1) {
			require.Regexp(t, `^[a-z][a-zA-Z0-9]*$`, key[1])
		}
	}
	require.Less(t, bytes.Index(state, []byte(`"activeTask"`)), bytes.Index(state, []byte(`"settings"`)))
	require.Less(t, bytes.Index(state, []byte(`"data"`)), bytes.Index(state, []byte(`"tasks"`)))
	require.Contains(t, string(state), `"name":"line\n\ttab \"quoted\" \\ \u0001 é 😀 </script>`)
	small, _ := encode(fresh(t))
	require.NotContains(t, string(small), "null")
	for _, absent := range []string{"completedAt", "settings", "git", "rateLimit", "data", "exitReason"} {
		require.NotContains(t, string(small), absent)
	}
}

func TestCutFilesAreDamaged(t *testing.T) {
	t.Parallel()
	state, metrics := encode(full(t))
	for n := range len(state) - 1 {
		_, _, err := decode(state[:n], metrics)
		require.ErrorIs(t, err, envelope.ErrCorrupt, "cut at %d", n)
	}
	small, _ := encode(fresh(t))
	for n := len(metrics) - 2; n >= 0; n -= 7 {
		_, _, err := decode(small, metrics[:n])
		require.ErrorIs(t, err, envelope.ErrCorrupt, "cut at %d", n)
	}
}

func TestAFlippedBitIsNoticed(t *testing.T) {
	t.Parallel()
	state, metrics := encode(full(t))
	for i := range state {
		file := bytes.Clone(state)
		file[i] ^= 1 << (i % 8)
		_, _, err := decode(file, metrics)
		require.Error(t, err, "byte %d", i)
	}
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	state, metrics := encode(full(t))
	swap := func(old, now string) string {
		require.Equal(t, 1, strings.Count(string(state), old), old)
		return string(sealed(strings.Replace(string(state), old, now, 1)))
	}
	deep := strings.Repeat(`{"id":"x","kind":"task","state":"pending","children":[`, 100_000)
	for name, c := range map[string]struct {
		file string
		is   error
		want string
	}{
		"empty":            {"", envelope.ErrCorrupt, "byte 0"},
		"empty object":     {"{}", envelope.ErrCorrupt, "schemaVersion is missing"},
		"array":            {"[]", envelope.ErrCorrupt, "want '{'"},
		"NUL bytes":        {strings.Repeat("\x00", 4096), envelope.ErrCorrupt, "byte 0"},
		"future and odd":   {`{"schemaVersion":9,"id":null}`, envelope.ErrFutureVersion, "schema version 9"},
		"version 0":        {swap(`"schemaVersion":2`, `"schemaVersion":0`), envelope.ErrCorrupt, "schemaVersion"},
		"no id":            {swap(`"id":"auth-20260214-1",`, ``), envelope.ErrCorrupt, "id is missing"},
		"bad id":           {swap(`"id":"auth-20260214-1",`, `"id":"../x",`), envelope.ErrCorrupt, "session ID"},
		"bad lineage":      {swap(`"from":"auth-20260214-1",`, `"from":"x",`), envelope.ErrCorrupt, "session ID"},
		"no createdAt":     {swap(`"createdAt":"2026-02-14T09:30:00.123456789Z",`, ``), envelope.ErrCorrupt, "createdAt or updatedAt"},
		"bad time":         {swap(`"createdAt":"2026`, `"createdAt":"26`), envelope.ErrCorrupt, "is no time"},
		"time beyond":      {swap(`"createdAt":"2026-02-14T09:30:00.123456789Z"`, `"createdAt":"9999-12-31T23:59:59-01:00"`), envelope.ErrCorrupt, "a year from 1 to 9999"},
		"bad duration":     {swap(`"timeout":"1h0m0s"`, `"timeout":"1"`), envelope.ErrCorrupt, "is no duration"},
		"bad status":       {swap(`"status":"paused"`, `"status":"x"`), envelope.ErrCorrupt, "one of active, paused, complete"},
		"bad box":          {swap(`"box":"ticked"`, `"box":""`), envelope.ErrCorrupt, "is no box"},
		"bad kind":         {swap(`"kind":"component"`, `"kind":"x"`), envelope.ErrCorrupt, "one of module, component, task, subtask"},
		"null":             {swap(`"box":"ticked"`, `"box":null`), envelope.ErrCorrupt, "want '\"'"},
		"key twice":        {swap(`"box":"ticked"`, `"box":"ticked","box":"ticked"`), envelope.ErrCorrupt, `the key "box" stands twice`},
		"key twice nested": {swap(`"dirty":true`, `"dirty":true,"dirty":true`), envelope.ErrCorrupt, `the key "dirty" stands twice`},
		"task twice":       {swap(`{"id":"c",`, `{"id":"b",`), envelope.ErrCorrupt, `the task "b" stands twice`},
		"task in itself":   {swap(`{"id":"c",`, `{"id":"a",`), envelope.ErrCorrupt, `the task "a" stands twice`},
		"task without ID":  {swap(`{"id":"c",`, `{`), envelope.ErrCorrupt, "ID of task"},
		"not UTF-8":        {swap(`"name":"line`, "\"name\":\"\xff"), envelope.ErrCorrupt, "not UTF-8"},
		"trailing":         {string(state) + "{}", envelope.ErrCorrupt, "something behind"},
		"deep tasks":       {swap(`"tasks":[`, `"tasks":[`+deep), envelope.ErrCorrupt, "more than 64 levels deep"},
		"deep unknown":     {swap(`"later":[true]`, `"later":`+strings.Repeat("[", 100_000)), envelope.ErrCorrupt, "more than 64 levels"},
		"many unknown": {swap(`"later":[true]`, func() string {
			var b strings.Builder
			for i := range 300 {
				fmt.Fprintf(&b, `"x%d":1,`, i)
			}
			return b.String() + `"later":1`
		}()), envelope.ErrCorrupt, "at most 256"},
		"data no object":   {swap(`"data":{"ratings":[1,2.5e3]}`, `"data":[]`), envelope.ErrCorrupt, "one JSON object"},
		"minus iterations": {swap(`"iterations":40`, `"iterations":-1`), envelope.ErrCorrupt, "-1 iterations"},
		"attempts":         {swap(`"attempts":3`, `"attempts":-3`), envelope.ErrCorrupt, "attempts of task"},
		"fraction":         {swap(`"attempts":3`, `"attempts":3.5`), envelope.ErrCorrupt, "whole number"},
		"too large":        {swap(`"attempts":3`, `"attempts":99999999999999999999`), envelope.ErrCorrupt, "whole number"},
	} {
		s, seq, err := decode([]byte(c.file), metrics)
		require.ErrorIs(t, err, c.is, name)
		require.ErrorContains(t, err, c.want, name)
		require.Nil(t, s, name)
		require.Zero(t, seq, name)
		for _, other := range []error{envelope.ErrCorrupt, session.ErrEdited, envelope.ErrFutureVersion} {
			require.Equal(t, other == c.is, errors.Is(err, other), name) //nolint:errorlint // compares sentinels
		}
	}
	for name, file := range map[string]string{
		"another session": strings.Replace(string(metrics), "auth-", "other-", 1),
		"no id":           strings.Replace(string(metrics), `"id":"auth-20260214-1",`, "", 1),
		"number":          strings.Replace(string(metrics), `"number":7,`, `"number":8,`, 1),
		"negative tokens": strings.Replace(string(metrics), `"inputTokens":7,`, `"inputTokens":-7,`, 1),
		"key twice":       strings.Replace(string(metrics), `"number":7,`, `"number":7,"number":7,`, 1),
	} {
		_, _, err := decode(state, sealed(file))
		require.ErrorIs(t, err, envelope.ErrCorrupt, name)
		require.ErrorContains(t, err, "metrics.json", name)
	}
	_, _, err := decode([]byte(swap(`"schemaVersion":2`, `"schemaVersion":3`)), []byte("{"))
	require.ErrorIs(t, err, envelope.ErrFutureVersion, "what a newer version has beside it is not judged")
	require.NotErrorIs(t, err, envelope.ErrCorrupt)
}

// TestNewerIsShown reads what this version knows of a file that a newer version wrote.
func TestNewerIsShown(t *testing.T) {
	t.Parallel()
	st := full(t)
	state, metrics := encode(st)
	newer := func(file []byte) []byte {
		return sealed(strings.Replace(string(file), `"schemaVersion":2`, `"schemaVersion":3`, 1))
	}
	for name, files := range map[string][2][]byte{
		"state": {newer(state), metrics}, "metrics": {state, newer(metrics)}, "both": {newer(state), newer(metrics)},
		"edited": {bytes.Replace(newer(state), []byte(`"status":"paused"`), []byte(`"status":"active"`), 1), metrics},
	} {
		got, at, err := decode(files[0], files[1])
		require.ErrorIs(t, err, envelope.ErrFutureVersion, name)
		require.ErrorContains(t, err, "schema version 3: written by a newer version: update lopen", name)
		require.NotErrorIs(t, err, session.ErrEdited, name)
		require.EqualValues(t, 42, at.Seq, name)
		require.Equal(t, st.NumTasks(), got.NumTasks(), name)
		require.Equal(t, st.Totals(), got.Totals(), name)
	}
}

// TestEditedOutside changes the files as people and tools do. No change breaks a rule,
// so the content can be shown, but the file is not as this package wrote it.
func TestEditedOutside(t *testing.T) {
	t.Parallel()
	st := full(t)
	state, metrics := encode(st)
	var tree map[string]any
	d := json.NewDecoder(bytes.NewReader(state))
	d.UseNumber()
	require.NoError(t, d.Decode(&tree))
	pretty, err := json.MarshalIndent(tree, "", "  ") // sorts keys: children come before IDs
	require.NoError(t, err)
	for name, file := range map[string][]byte{
		"reformatted": pretty,
		"edited":      bytes.Replace(state, []byte(`"state":"failed"`), []byte(`"state":"skipped"`), 1),
		"no checksum": regexp.MustCompile(`,"checksum":"[^"]*"`).ReplaceAll(state, nil),
		"behind it":   slices.Concat(bytes.TrimSuffix(state, []byte("\n")), []byte(" \n")),
		"its newline": bytes.TrimSuffix(state, []byte("\n")),
	} {
		got, seq, err := decode(file, metrics)
		require.ErrorIs(t, err, session.ErrEdited, name)
		require.NotErrorIs(t, err, envelope.ErrCorrupt, name)
		require.ErrorContains(t, err, "state.json", name)
		require.EqualValues(t, 42, seq.Seq)
		require.Equal(t, st.NumTasks(), got.NumTasks(), name)
		require.Equal(t, 40, got.NumIterations())
		switch name {
		case "edited": // what is derived follows what was edited
			require.Equal(t, session.Progress{Total: 2, Skipped: 1}, got.Progress())
		case "reformatted":
			require.Equal(t, st.Roots(), got.Roots())
			require.Equal(t, st.Progress(), got.Progress())
			for task := range st.All() {
				other, _ := got.Task(task.ID)
				task.Extra, other.Extra = nil, nil // an escape became its letter
				require.True(t, task.Equal(&other), "%+v: %+v", task, other)
			}
		default:
			again, _ := encode(got)
			require.Equal(t, string(state), string(again), name)
		}
	}
	got, _, err := decode(state, bytes.Replace(metrics, []byte(`"turns":5`), []byte(`"turns":6`), 1))
	require.ErrorIs(t, err, session.ErrEdited)
	require.ErrorContains(t, err, "metrics.json")
	require.Equal(t, 40, got.NumIterations())
}

func TestMetricsAhead(t *testing.T) {
	t.Parallel()
	st := full(t)
	e := st.Edit()
	e.AppendIteration(session.Iteration{CostUSD: 100})
	ahead, err := e.State()
	require.NoError(t, err)
	var r wire.Replay
	require.NoError(t, r.Load(wire.EncodeState(st, session.Mark{Seq: 42}), wire.EncodeMetrics(ahead, session.Mark{Seq: 43})))
	_, _, err = r.State(st.ID())
	require.ErrorIs(t, err, envelope.ErrCorrupt, "the record between them is missing")
	_, err = r.Apply(line(43, wire.EncodeChange(st, ahead, record.Record{At: at}, 0).Body))
	require.NoError(t, err)
	got, _, err := r.State(st.ID())
	require.NoError(t, err)
	require.Equal(t, ahead.Totals(), got.Totals())
	require.Equal(t, slices.Collect(ahead.Iterations()), slices.Collect(got.Iterations()))
}

func TestUnknownFieldsAreWrittenBack(t *testing.T) {
	t.Parallel()
	state, metrics := encode(family(t))
	file := strings.Replace(string(state), `{"id":"c",`, `{"id":"c","priority": [1, "\u0041 b" ],`, 1)
	file = strings.Replace(file, `,"tasks":`, `,"sprint":{"no":1e2},"tasks":`, 1)
	st, _, err := decode(sealed(file), metrics)
	require.NoError(t, err)
	e := st.Edit()
	c, _ := e.Task("c")
	c.State = session.TaskComplete
	e.Put(c)
	e.Header().UpdatedAt = at.Add(time.Hour)
	st, err = e.State()
	require.NoError(t, err)
	again, _ := encode(st)
	require.Contains(t, string(again), `"priority":[1,"\u0041 b"]`)
	require.Contains(t, string(again), `"sprint":{"no":1e2}`)
	st, _, err = decode(sealed(strings.Replace(string(state), `,"tasks":`, `,"rateLimit":{},"tasks":`, 1)), metrics)
	require.NoError(t, err)
	require.Nil(t, st.Header().RateLimit)
}

// TestAnyTextRoundTrips puts random values wherever a State takes a text, a
// number or a time.
func TestAnyTextRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := family(t).Edit()
		text := rapid.StringN(-1, 30, 200)
		when := rapid.Custom(func(t *rapid.T) time.Time {
			return time.Unix(rapid.Int64Range(-62135596799, 253402300799).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		})
		c, _ := e.Task("c")
		c.Name, c.LastError = text.Draw(t, "name"), text.Draw(t, "error")
		c.StartedAt = when.Draw(t, "started")
		c.Log = []session.Attempt{{Exit: rapid.Int().Draw(t, "exit"), Artifacts: rapid.SliceOfN(text, 0, 3).Draw(t, "artifacts")}}
		e.Put(c)
		h := e.Header()
		h.UpdatedAt, h.Cwd = when.Draw(t, "updated"), text.Draw(t, "cwd")
		h.TotalCostUSD = rapid.Float64().Draw(t, "cost")
		h.ContextWindow = rapid.Int64().Draw(t, "window")
		h.Settings.Timeout = time.Duration(rapid.Int64().Draw(t, "timeout"))
		object, err := json.Marshal(rapid.MapOf(text, rapid.Float64()).Draw(t, "data"))
		require.NoError(t, err)
		h.Data = object
		e.AppendIteration(session.Iteration{Task: "c", CostUSD: rapid.Float64Range(0, math.MaxFloat64).Draw(t, "usd"), Duration: time.Duration(rapid.Int64Min(0).Draw(t, "d"))})
		st, err := e.State()
		require.NoError(t, err)
		state, metrics := encode(st)
		require.True(t, json.Valid(state) && json.Valid(metrics))
		got, _, err := decode(state, metrics)
		require.NoError(t, err)
		require.Equal(t, st.Header(), got.Header())
		require.Equal(t, slices.Collect(st.Iterations()), slices.Collect(got.Iterations()))
		again, _ := encode(got)
		require.Equal(t, string(state), string(again))
	})
}
