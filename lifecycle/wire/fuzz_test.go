package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/envelope"
)

func known(t *testing.T, err error) {
	n := 0
	for _, is := range []error{envelope.ErrCorrupt, session.ErrEdited, envelope.ErrFutureVersion} {
		if errors.Is(err, is) {
			n++
		}
	}
	require.Equal(t, 1, n, "%v", err)
}

// again requires that a State that was read can be written, and is read again as the same.
func again(t *testing.T, st *session.State) {
	state, metrics := encode(st)
	require.True(t, json.Valid(state) && json.Valid(metrics))
	got, seq, err := decode(state, metrics)
	require.NoError(t, err)
	require.EqualValues(t, 42, seq.Seq)
	stateAgain, metricsAgain := encode(got)
	require.Equal(t, string(state), string(stateAgain))
	require.Equal(t, string(metrics), string(metricsAgain))
	_, err = wire.DecodeSummary(state[:min(len(state), listed)])
	require.NoError(t, err)
}

// FuzzDecodeState gives each input the right checksum, so that the decoder gets as far as
// the rules.
func FuzzDecodeState(f *testing.F) {
	_, metrics := encode(full(f))
	for _, st := range []*session.State{fresh(f), family(f), full(f)} {
		state, _ := encode(st)
		f.Add(state)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, file := range [][]byte{data, sealed(string(data))} {
			st, _, err := decode(file, metrics)
			if err != nil {
				known(t, err)
			}
			if st != nil {
				again(t, st)
			}
		}
	})
}

func FuzzDecodeMetrics(f *testing.F) {
	state, metrics := encode(fresh(f))
	f.Add(metrics)
	_, metrics = encode(full(f))
	f.Add(metrics)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, file := range [][]byte{data, sealed(string(data))} {
			st, _, err := decode(state, file)
			if err != nil {
				known(t, err)
			}
			if st != nil {
				again(t, st)
			}
		}
	})
}

func FuzzDecodeSummary(f *testing.F) {
	for _, st := range []*session.State{fresh(f), full(f)} {
		state, _ := encode(st)
		f.Add(state)
		f.Add(state[:200])
	}
	_, metrics := encode(fresh(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		sum, err := wire.DecodeSummary(data)
		if err != nil {
			known(t, err)
			require.Zero(t, sum)
			return
		}
		if st, _, _ := decode(data, metrics); st != nil {
			require.Equal(t, st.ID(), sum.ID)
			require.Equal(t, st.Status(), sum.Status)
			require.Equal(t, st.ActiveTask(), sum.ActiveTask)
		}
	})
}

// FuzzDecodeRecord replays any line on a State that has every field. The line is refused,
// or the State that results can be written and read again.
func FuzzDecodeRecord(f *testing.F) {
	states := []*session.State{nil, fresh(f), family(f), full(f)}
	for i, from := range states {
		for _, to := range states[max(i, 1):] {
			f.Add(line(43, wire.EncodeChange(from, to, record.Record{At: at, Event: record.EventResumed, Triggers: [session.NumTriggers]uint64{1}}, 0).Body))
		}
	}
	f.Add(line(43, wire.EncodeSnapshotRecord(record.Record{At: at}, record.SnapshotRef{SHA256: strings.Repeat("0a", 32)})))
	state, metrics := encode(full(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r wire.Replay
		require.NoError(t, r.Load(state, metrics))
		rec, err := r.Apply(data)
		if err != nil {
			known(t, err)
			return
		}
		require.NotZero(t, rec.Seq)
		st, _, err := r.State(full(t).ID())
		if err != nil {
			known(t, err)
			return
		}
		again(t, st)
	})
}
