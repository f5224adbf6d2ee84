package wire_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/envelope"
)

const listed = 4 << 10 // what a listing reads of each state.json

func TestSummary(t *testing.T) {
	t.Parallel()
	st := full(t)
	state, _ := encode(st)
	h := st.Header()
	want := wire.Summary{
		ID: st.ID(), Module: "auth", Seq: 42, Status: h.Status, Phase: h.Phase, Step: h.Step, Component: "a", ActiveTask: "c", ExitReason: h.ExitReason,
		CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt, CompletedAt: h.CompletedAt, Progress: session.Progress{Total: 2, Failed: 1},
		Iterations: 40, InputTokens: 780, OutputTokens: 80, CachedTokens: 120, TotalCostUSD: h.TotalCostUSD, Lineage: h.Lineage, TransactionID: h.TransactionID, Origin: h.Origin, Holder: h.Holder,
	}
	got, err := wire.DecodeSummary(state)
	require.NoError(t, err)
	require.Equal(t, want, got)

	// Cut anywhere, it is whole or refused.
	enough := strings.Index(string(state), `"settings":`) + len(`"settings":`)
	for n := range state {
		got, err := wire.DecodeSummary(state[:n])
		if n < enough {
			require.ErrorIs(t, err, envelope.ErrCorrupt, "cut at %d", n)
			require.Zero(t, got)
		} else {
			require.NoError(t, err, "cut at %d", n)
			require.Equal(t, want, got)
		}
	}
	small, _ := encode(fresh(t))
	got, err = wire.DecodeSummary(small)
	require.NoError(t, err)
	require.Equal(t, session.StatusActive, got.Status)
}

// TestTheLongestSummary gives each field that a listing shows the longest value that a State
// may have. The summary must fit into the part of a file that a listing reads: otherwise the
// listing reads the whole log of such a session.
func TestTheLongestSummary(t *testing.T) {
	t.Parallel()
	id, err := session.NewID(strings.Repeat("m", 64), at, math.MaxUint64)
	require.NoError(t, err)
	st, err := session.New(id, at)
	require.NoError(t, err)
	e := st.Edit()
	for _, field := range before("settings", e.Header()) {
		lengthen(t, e.Header(), id, field)
	}
	e.Header().Holder.PID = math.MaxInt // the least number is refused
	e.AppendIteration(session.Iteration{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CachedTokens: math.MaxInt64})
	st, err = e.State()
	require.NoError(t, err)
	mark := session.Mark{Incarnation: "0123456789abcdef"}
	for _, field := range before("inherits", &mark) {
		if field.IsZero() {
			lengthen(t, nil, id, field)
		}
	}
	state := wire.EncodeState(st, mark)
	want, err := wire.DecodeSummary(state)
	require.NoError(t, err)
	counts := 20 * (1 + reflect.TypeFor[session.Progress]().NumField()) // digits of what is small here: iterations and progress
	got, err := wire.DecodeSummary(state[:listed-counts])
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// before are the fields of what a pointer leads to that stand in front of a member.
func before(key string, of any) (all []reflect.Value) {
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name == key {
			break
		}
		all = append(all, v.Field(i))
	}
	return all
}

// lengthen gives a field of a header the value that takes the most room in JSON.
func lengthen(t *testing.T, h *session.Header, id session.ID, v reflect.Value) {
	t.Helper()
	switch of := v.Addr().Interface().(type) {
	case *time.Time:
		*of = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
		return
	case *session.ID:
		*of = id
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		lengthen(t, h, id, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			lengthen(t, h, id, v.Field(i))
		}
	case reflect.String:
		v.SetString(longest(t, h, v))
	case reflect.Float64:
		v.SetFloat(-math.MaxFloat64)
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MinInt64)
	case reflect.Uint64:
		v.SetUint(math.MaxUint64)
	default:
		require.Fail(t, "say what the longest one is", "%s", v.Type())
	}
}

// longest is the text that takes the most room in JSON of all texts that a field of a
// header may have.
func longest(t *testing.T, h *session.Header, v reflect.Value) string {
	t.Helper()
	refused := func(s string) *session.InvalidError {
		v.SetString(s)
		var bad *session.InvalidError
		errors.As(h.Validate(), &bad)
		return bad
	}
	bad := refused("\xff")
	require.NotNil(t, bad, "no text may have this byte")
	if values, ok := strings.CutPrefix(bad.Want, "one of "); ok {
		return slices.MaxFunc(strings.Split(values, ", "), func(a, b string) int { return len(a) - len(b) })
	}
	most := ""
	for _, c := range []string{"x", "\x01"} { // the second one takes six bytes
		n := sort.Search(1<<20, func(n int) bool {
			more := refused(strings.Repeat(c, n+1))
			return more != nil && more.Field == bad.Field
		})
		if n > 0 {
			most = strings.Repeat(c, n)
		}
	}
	return most
}

func TestSummaryRefuses(t *testing.T) {
	t.Parallel()
	state, _ := encode(full(t))
	for _, c := range []struct {
		old, now string
		is       error
	}{
		{`"schemaVersion":2`, `"schemaVersion":3`, envelope.ErrFutureVersion},
		{`"schemaVersion":2,`, ``, envelope.ErrCorrupt},
		{`"id":"auth-20260214-1"`, `"id":"auth"`, envelope.ErrCorrupt},
		{`"id":"auth-20260214-1",`, ``, envelope.ErrCorrupt},
		{`"status":"paused"`, `"status":"x"`, envelope.ErrCorrupt},
		{`"step":"iterate-through-tasks"`, `"step":"x"`, envelope.ErrCorrupt},
		{`"seq":42`, `"seq":42,"seq":42`, envelope.ErrCorrupt},
		{`"seq":42`, `"seq":-42`, envelope.ErrCorrupt},
		{`"activeTask":"c"`, "\"activeTask\":\"\xff\"", envelope.ErrCorrupt},
	} {
		file := strings.Replace(string(state), c.old, c.now, 1)
		_, err := wire.DecodeSummary([]byte(file))
		require.ErrorIs(t, err, c.is, c.now)
	}
}
