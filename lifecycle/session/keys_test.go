package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// TestKnownKeys holds the lists of known members against the decoder: of those
// on a list it keeps none as unknown. What is not on a list but known would be
// written twice.
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
	require.ErrorIs(t, err, ErrChecksum)
	st := file.state
	require.Equal(t, []Field{{"x", []byte("{}")}}, st.h.Extra)
	for _, key := range stateKeys {
		for _, value := range []string{"{}", "true", "[]", `"x"`, "1"} {
			if file, _ := decodeState([]byte(head + `,"` + key + `":` + value + `}`)); file != nil {
				require.Empty(t, file.state.h.Extra, key)
			}
		}
	}
	written := map[string]bool{}
	collect := func(data []byte) {
		r := strictjson.NewReader(data)
		r.Object(func(key string) { written[key] = true; r.Raw() })
	}
	collect(EncodeState(st, Mark{Seq: 1}))
	for key := range written {
		if key != "x" {
			require.Contains(t, stateKeys, key)
		}
	}
}
