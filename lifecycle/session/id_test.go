package session_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	late := time.Date(2026, 2, 14, 23, 30, 0, 0, time.FixedZone("west", -3600))
	id, err := session.NewID("auth", late, 7)
	require.NoError(t, err)
	require.Equal(t, "auth-20260215-7", id.String(), "the day is that of UTC")
	for s, want := range map[string]session.ID{
		"auth-20260215-7":                   id,
		"a-20240229-1":                      {Module: "a", Day: "20240229", Counter: 1},
		"a-20260101-1-20260214-10":          {Module: "a-20260101-1", Day: "20260214", Counter: 10},
		"0_x-00010101-18446744073709551615": {Module: "0_x", Day: "00010101", Counter: math.MaxUint64},
	} {
		got, err := session.ParseID(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got)
		require.Equal(t, s, got.String())
	}
	for _, s := range []string{
		"", "auth", "auth-20260214", "auth-20260214-", "auth-20260214-0", "auth-20260214-01", "auth-20260214-+1", "auth-20260214--1", "auth-20260214-1 ",
		"auth-20260214-18446744073709551616", "auth-20260230-1", "auth-00000101-1", "auth-2026021-1", "-20260214-1", "Auth-20260214-1", "a.b-20260214-1",
		"../x-20260214-1", "a/b-20260214-1", "-a-20260214-1", "a--20260214-1", "auth-20260214-1\n", "auth-20260214-1_0", "auth-2026O214-1",
		strings.Repeat("a", 65) + "-20260214-1",
	} {
		_, err := session.ParseID(s)
		var invalid *session.InvalidError
		require.ErrorAs(t, err, &invalid, s)
		require.ErrorContains(t, err, "{module}-YYYYMMDD-{counter}")
	}
	_, err = session.NewID("auth", at, 0)
	require.Error(t, err)
	_, err = session.NewID("Auth", at, 1)
	require.Error(t, err)
	_, err = session.NewID("auth", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	require.Error(t, err)
	require.True(t, session.ID{}.IsZero())
	require.False(t, id.IsZero())
}

func TestCompareIDs(t *testing.T) {
	t.Parallel()
	want := []string{"b-20260213-9", "b-20260214-2", "a-20260214-10", "b-20260214-10", "a-20260215-1"}
	var ids []session.ID
	for _, s := range want {
		id, err := session.ParseID(s)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	slices.SortFunc(ids, session.ID.Compare)
	for i, id := range ids {
		require.Equal(t, want[i], id.String())
	}
}

func TestValidateModule(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "0", "auth", "auth-v2", "a_b", "a--b", strings.Repeat("a", 64)} {
		require.NoError(t, session.ValidateModule(name), name)
	}
	for _, name := range []string{"", "-", "-a", "a-", "_a", "a_", "A", "a b", "a/b", "..", "a.b", "é", "a\n", "a\x00", strings.Repeat("a", 65)} {
		require.ErrorContains(t, session.ValidateModule(name), "lower-case letters, digits, - and _", name)
	}
}

func TestTriggersAndBoxes(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for trigger := session.TriggerStepCompleted; trigger < session.NumTriggers; trigger++ {
		seen[trigger.String()] = true
	}
	require.Len(t, seen, 7)
	require.Equal(t, "switched", session.TriggerSwitched.String())
	require.Equal(t, "trigger 7", session.NumTriggers.String())
	require.Equal(t, []string{"", "open", "ticked", "box 3"},
		[]string{session.BoxNone.String(), session.BoxOpen.String(), session.BoxTicked.String(), session.Box(3).String()})
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"auth-20260214-1", "a-b-20260214-10", "a-20260101-1-20260214-2", "auth-20260214-01", "--"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := session.ParseID(s)
		if err != nil {
			require.Zero(t, id)
			return
		}
		require.Equal(t, s, id.String())
		require.NoError(t, session.ValidateModule(id.Module))
	})
}
