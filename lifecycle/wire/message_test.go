package wire_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// FuzzDecodeMessage requires that a message that was read is valid, can be written, and is
// read again as the same.
func FuzzDecodeMessage(f *testing.F) {
	m := message()
	data, err := wire.EncodeMessage(&m)
	require.NoError(f, err)
	f.Add(data)
	f.Add(line(3, data[1:len(data)-1]))
	f.Add([]byte(`{"uuid":"a","timestamp":"2026-02-14T09:00:00Z","role":"tool","toolCallId":"c","content":null}`))
	f.Add([]byte(`{"UUID":"\ud800","timestamp":"0001-01-01T00:00:00+23:59","role":"user","content":[1,{"a":"\u0000"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := wire.DecodeMessage(data)
		if err != nil {
			require.ErrorIs(t, err, envelope.ErrCorrupt)
			require.Zero(t, m)
			return
		}
		require.NoError(t, m.Validate())
		out, err := wire.EncodeMessage(&m)
		require.NoError(t, err)
		require.NotContains(t, string(out), "\n")
		got, err := wire.DecodeMessage(out)
		require.NoError(t, err)
		twice, err := wire.EncodeMessage(&got)
		require.NoError(t, err)
		require.Equal(t, string(out), string(twice))
	})
}

// FuzzRecordWithAttempts requires that what a record says of attempts and of the
// conversation is read back.
func FuzzRecordWithAttempts(f *testing.F) {
	f.Add("task", "tail\n", "messages.jsonl", int64(9), uint64(3), 1.5, 2)
	f.Add("\xff\"", "\x00\u2028<&>", "../x", int64(0), uint64(0), math.NaN(), 0)
	f.Add("", "", "", int64(1)<<60, uint64(1)<<60, -1.0, 1)
	f.Fuzz(func(t *testing.T, task, tail, file string, size int64, n uint64, cost float64, many int) {
		size, n = max(size, 0), n>>2
		a := record.Attempt{
			Task: strings.ToValidUTF8(task, "?"), Attempt: many, Command: []string{strings.ToValidUTF8(tail, "?")}, StartedAt: at, EndedAt: at,
			Tail: strings.ToValidUTF8(tail, "?"), CostUSD: cost, Check: &record.CheckRun{Command: "make"},
			Files: []record.FileChange{{Path: strings.ToValidUTF8(file, "?"), Change: "moved", From: "b"}}, Exit: -1,
		}
		if _, err := a.Size(); err != nil {
			return
		}
		rec := record.Record{
			At: at, Messages: n, Transcript: uint64(size),
		}
		for range min(max(many, 0), 3) {
			rec.Attempts, rec.OpenCalls, rec.Inherits = append(rec.Attempts, a), append(rec.OpenCalls, a.Task), append(rec.Inherits, n)
		}
		for _, body := range [][]byte{
			wire.EncodeChange(fresh(t), fresh(t), rec, 0).Body,
			wire.EncodeSnapshotRecord(rec, record.SnapshotRef{SHA256: strings.Repeat("0a", 32)}),
		} {
			got, err := wire.DecodeRecord(line(5, body))
			require.NoError(t, err, "%s", body)
			require.Equal(t, rec.Messages, got.Messages)
			require.Equal(t, rec.Transcript, got.Transcript)
			require.Equal(t, rec.OpenCalls, got.OpenCalls)
			require.Equal(t, rec.Inherits, got.Inherits)
			require.Equal(t, rec.Attempts, got.Attempts)
		}
	})
}

// entryLine returns the line of a record that is a message or an event.
func entryLine(r record.Record) []byte { return line(5, entryBody(r)) }

func entryBody(r record.Record) []byte {
	return append(append(wire.EncodeAppended(r), r.Message...), r.TranscriptEvent...)
}

func TestAppended(t *testing.T) {
	t.Parallel()
	m := message()
	message, err := wire.EncodeMessage(&m)
	require.NoError(t, err)
	rec, err := wire.DecodeRecord(entryLine(record.Record{At: at, Messages: 12, Transcript: 7, Message: message}))
	require.NoError(t, err)
	require.EqualValues(t, 5, rec.Seq)
	require.Equal(t, []record.Op{{Name: record.OpMessagesAppended, Count: 1}}, rec.Ops)
	require.True(t, at.Equal(rec.At))
	got, err := wire.DecodeMessage(rec.Message)
	require.NoError(t, err)
	require.Equal(t, m.ID, got.ID)
	rec, err = wire.DecodeRecord(entryLine(record.Record{At: at, Messages: 12, Transcript: 8, TranscriptEvent: []byte(`{"message":{}}`)}))
	require.NoError(t, err)
	require.Equal(t, []record.Op{{Name: record.OpEventsAppended, Count: 1}}, rec.Ops)
	require.Nil(t, rec.Message)
	require.EqualValues(t, [2]uint64{12, 8}, [2]uint64{rec.Messages, rec.Transcript})

	// What leads to the State continues with it, whatever the message is.
	r := &wire.Replay{}
	st := fresh(t)
	_, err = r.Apply(line(1, wire.EncodeChange(nil, st, record.Record{At: at, Inherits: []uint64{4, 9}, Messages: 10, OpenCalls: []string{"x"}}, 0).Body))
	require.NoError(t, err)
	for i, m := range []string{`{"uuid":"a","timestamp":"2026-02-14T09:00:00Z","role":"assistant","toolCalls":[{"id":"c1"},{"id":"c2"}]}`,
		`{"uuid":"b","timestamp":"2026-02-14T09:00:00Z","role":"tool","toolCallId":"x"}`,
		`{"of":"a role that nobody knows"}`} {
		_, err = r.Apply(line(uint64(i+2), entryBody(record.Record{At: at, Messages: uint64(11 + i), Message: []byte(m)})))
		require.NoError(t, err)
	}
	_, mark, err := r.State(st.ID())
	require.NoError(t, err)
	require.Equal(t, session.Mark{Epoch: mark.Epoch, Seq: 4, Iterations: mark.Iterations, Messages: 13, Inherits: []uint64{4, 9}, OpenCalls: []string{"c1", "c2"}}, mark)
}

// FuzzAppended requires that any object in a message or an event is read back byte by byte.
func FuzzAppended(f *testing.F) {
	f.Add([]byte(`{"a":1}`), uint64(1), uint64(0), true)
	f.Add([]byte(`{"x":",\"crc\":\"00000000\"}","crc":"00000000"}`), uint64(3), uint64(9), false)
	f.Add([]byte("{\"a\":{\"message\":{},\"a\":\"\xff\"}}"), uint64(1)<<60, uint64(1), false)
	f.Fuzz(func(t *testing.T, object []byte, messages, events uint64, message bool) {
		if !json.Valid(object) || object[0] != '{' || bytes.ContainsAny(object, "\n") {
			return
		}
		want := record.Record{At: at, Messages: messages >> 1, Transcript: events >> 1}
		if message {
			want.Message = object
		} else {
			want.TranscriptEvent = object
		}
		got, err := wire.DecodeRecord(entryLine(want))
		require.NoError(t, err)
		require.Equal(t, string(want.Message), string(got.Message))
		require.Equal(t, string(want.TranscriptEvent), string(got.TranscriptEvent))
		require.Equal(t, want.Messages, got.Messages)
		require.Equal(t, want.Transcript, got.Transcript)
	})
}
