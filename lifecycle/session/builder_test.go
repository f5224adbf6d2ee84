package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// header returns a header that a State may have.
func header(t require.TestingT) *session.Header {
	h := fresh(t).Header()
	return &h
}

// begin adds a task to what is built and returns where.
func begin(b *session.Builder, id string, children ...string) int {
	place, t := b.Begin()
	*t = task(id, "", children...)
	return place
}

// A Builder and an Edit make the same State of the same tasks.
func TestBuilder(t *testing.T) {
	t.Parallel()
	var b session.Builder
	b.Grow(3)
	a := begin(&b, "a", "c")
	require.NoError(t, b.End(begin(&b, "c"), "a"))
	require.NoError(t, b.End(a, ""))
	require.NoError(t, b.End(begin(&b, "b"), ""))
	want := family(t)
	got, err := b.State(want.ID(), header(t), []string{"a", "b"})
	require.NoError(t, err)
	require.Equal(t, want.Progress(), got.Progress())
	require.Equal(t, want.Roots(), got.Roots())
	session.Diff(want, got, func(id string, from, to *session.Task) bool {
		require.NotNil(t, from, id)
		require.NotNil(t, to, id)
		require.True(t, from.Equal(to), id)
		return true
	})
	require.Nil(t, got.Lookup("d"))
	require.Equal(t, "a", got.Lookup("c").Parent)
}

// A child may be read before the ID of its parent is known. Adopt gives it the ID.
func TestBuilderAdopts(t *testing.T) {
	t.Parallel()
	var b session.Builder
	root := begin(&b, "")
	inner := begin(&b, "b", "c")
	require.NoError(t, b.End(begin(&b, "c"), "b"))
	require.NoError(t, b.End(inner, ""))
	require.ErrorContains(t, b.End(root, ""), "invalid ID")

	b = session.Builder{}
	place, outer := b.Begin()
	inner = begin(&b, "b", "c")
	require.NoError(t, b.End(begin(&b, "c"), "b"))
	require.NoError(t, b.End(inner, ""))
	*outer = task("a", "", "b")
	require.NoError(t, b.End(place, ""))
	b.Adopt(place)
	st, err := b.State(fresh(t).ID(), header(t), []string{"a"})
	require.NoError(t, err)
	require.Equal(t, "a", st.Lookup("b").Parent)
	require.Equal(t, "b", st.Lookup("c").Parent)
}

func TestBuilderRefuses(t *testing.T) {
	t.Parallel()
	var b session.Builder
	_, err := b.State(session.ID{}, header(t), nil)
	require.ErrorContains(t, err, "id is missing")
	_, err = b.State(fresh(t).ID(), &session.Header{}, nil)
	require.ErrorContains(t, err, "invalid status")
	require.NoError(t, b.End(begin(&b, "a"), ""))
	require.NoError(t, b.End(begin(&b, "a"), ""))
	_, err = b.State(fresh(t).ID(), header(t), []string{"a", "a"})
	require.ErrorContains(t, err, `the task "a" stands twice`)
	f, ok := session.FindingOf(err)
	require.True(t, ok)
	require.Equal(t, "duplicate-id", f.Rule)
}
