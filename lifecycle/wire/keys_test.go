package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// TestKnownKeys compares the lists of known members with the decoder and with what a
// State takes as unknown. A known member that is not on a list would be written twice.
func TestKnownKeys(t *testing.T) {
	t.Parallel()
	for _, key := range taskKeys {
		d := newDecoder(strictjson.NewReader([]byte(`{"` + key + `":true}`)))
		d.task("", 1)
		require.Error(t, d.Reader.Err(), "no member of a task is a boolean, so %s was not understood", key)
		require.NotContains(t, d.Reader.Err().Error(), "ID of task", key)
	}
	for _, key := range []string{"Id", "priority", "parent"} {
		d := newDecoder(strictjson.NewReader([]byte(`{"` + key + `":true}`)))
		d.task("", 1)
		require.ErrorContains(t, d.Reader.Err(), "ID of task", key)
	}
	const head = `{"schemaVersion":2,"id":"a-20260214-1","status":"active","phase":"planning","step":"repeat","createdAt":"2026-02-14T00:00:00Z","updatedAt":"2026-02-14T00:00:00Z"`
	file, err := decodeState([]byte(head + `,"x":{}}`))
	require.ErrorIs(t, err, session.ErrEdited)
	st := file.state
	require.Equal(t, []session.Field{{Key: "x", Value: []byte("{}")}}, st.Header().Extra)
	for _, key := range stateKeys {
		for _, value := range []string{"{}", "true", "[]", `"x"`, "1"} {
			if file, _ := decodeState([]byte(head + `,"` + key + `":` + value + `}`)); file != nil {
				require.Empty(t, file.state.Header().Extra, key)
			}
		}
	}
	written := map[string]bool{}
	r := strictjson.NewReader(EncodeState(st, session.Mark{Seq: 1}))
	r.Object(func(key string) { written[key] = true; r.Raw() })
	for key := range written {
		if key != "x" {
			require.Contains(t, stateKeys, key)
		}
	}
}

// A State refuses the unknown members that this package would know, and no others.
func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	id, err := session.ParseID("a-20260214-1")
	require.NoError(t, err)
	st, err := session.New(id, time.Unix(0, 0))
	require.NoError(t, err)
	header := func(key string) error {
		e := st.Edit()
		e.Header().Extra = []session.Field{{Key: key, Value: []byte("1")}}
		_, err := e.State()
		return err
	}
	task := func(key string) error {
		e := st.Edit()
		e.Put(session.Task{ID: "t", Kind: session.KindTask, State: session.TaskPending, Extra: []session.Field{{Key: key, Value: []byte("1")}}})
		e.SetRoots([]string{"t"})
		_, err := e.State()
		return err
	}
	for _, key := range stateKeys {
		require.ErrorContains(t, header(key), fmt.Sprintf("invalid unknown field %q", key))
	}
	for _, key := range taskKeys {
		require.ErrorContains(t, task(key), fmt.Sprintf(`invalid unknown field of task "t" %q`, key))
	}
	for _, key := range []string{"costUSD", "premiumRequests", "duration", "totals", "x"} {
		require.NoError(t, header(key))
		require.NoError(t, task(key))
	}
}
