package session_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// salvaged loads what can be read of a state.json; nil where nothing comes of it.
func salvaged(t *testing.T, state, metrics []byte) (*session.State, session.Salvaged) {
	t.Helper()
	part, err := session.Salvage(state)
	if err != nil {
		require.ErrorIs(t, err, session.ErrCorrupt)
		return nil, part
	}
	st, at, err := session.Decode(part.State, metrics)
	require.ErrorIs(t, err, session.ErrChecksum, "%s", part.State)
	require.EqualValues(t, 42, at.Seq)
	return st, part
}

// TestSalvageAtEachByte cuts a file at each of its bytes: what comes of it are the
// tasks as they were, one more each time that one more is whole.
func TestSalvageAtEachByte(t *testing.T) {
	t.Parallel()
	want := full(t)
	state, metrics := encode(want)
	tree := strings.Index(string(state), `,"tasks":[`) + len(`,"tasks":`)
	before := 0
	for n := range len(state) + 1 {
		st, part := salvaged(t, state[:n], metrics)
		if n < tree {
			require.Nil(t, st, "%d bytes", n)
			continue
		}
		require.Equal(t, want.Header(), st.Header())
		require.Equal(t, want.Progress().Total, part.Total)
		for task := range st.All() {
			was, ok := want.Task(task.ID)
			require.True(t, ok)
			if len(task.Children) < len(was.Children) {
				task.Children = was.Children
			}
			require.Equal(t, was, task)
		}
		require.GreaterOrEqual(t, st.NumTasks(), before, "%d bytes", n)
		require.LessOrEqual(t, st.NumTasks(), before+1, "%d bytes", n)
		require.Equal(t, n < len(state)-1, part.Err != nil, "%d of %d bytes: %v", n, len(state), part.Err)
		before = st.NumTasks()
	}
	require.Equal(t, want.NumTasks(), before)
}

func TestSalvage(t *testing.T) {
	t.Parallel()
	state, metrics := encode(family(t))
	for name, c := range map[string]struct {
		old, new string
		tasks    string // IDs that are left
		cut      []string
	}{
		"as it is":                 {"", "", "a c b", nil},
		"no JSON in the last task": {`"id":"b"`, `"id":"b",x`, "a c", []string{"b"}},
		"not UTF-8":                {`"id":"b"`, "\"id\":\"b\",\"name\":\"\xff\"", "a c", []string{"b"}},
		"NUL bytes":                {`{"id":"b"`, "\x00\x00\x00\x00\x00\x00\x00\x00", "a c", nil},
		"a rule broken":            {`"id":"a"`, `"id":"a","attempts":-1`, "b", []string{"a", "c"}},
		"an ID twice":              {`"id":"b"`, `"id":"c"`, "a c", nil},
		"no ID":                    {`"id":"c",`, ``, "a b", nil},
		"a key twice":              {`"id":"c"`, `"id":"c","id":"c"`, "a", []string{"c"}},
	} {
		require.Equal(t, 1, max(1, strings.Count(string(state), c.old)*min(1, len(c.old))), name)
		st, part := salvaged(t, []byte(strings.Replace(string(state), c.old, c.new, 1)), metrics)
		require.NotNil(t, st, name)
		var ids []string
		for task := range st.All() {
			ids = append(ids, task.ID)
		}
		require.Equal(t, c.tasks, strings.Join(ids, " "), name)
		require.Equal(t, c.cut, part.Cut, name)
	}
}

func FuzzSalvage(f *testing.F) {
	_, metrics := encode(full(f))
	for _, st := range []*session.State{fresh(f), family(f), full(f)} {
		state, _ := encode(st)
		f.Add(state[:len(state)*2/3])
		f.Add(state)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		part, err := session.Salvage(data)
		if err != nil {
			known(t, err)
			return
		}
		if st, _, _ := session.Decode(part.State, metrics); st != nil {
			again(t, st)
		}
	})
}
