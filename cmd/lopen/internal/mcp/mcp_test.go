package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A source answers with what a test says.
type source struct {
	log     func(context.Context, SessionLog) (Answer, error)
	changes func(context.Context, ChangesSince) (Answer, error)
}

func (s source) SessionLog(ctx context.Context, in SessionLog) (Answer, error) { return s.log(ctx, in) }

func (s source) ChangesSince(ctx context.Context, in ChangesSince) (Answer, error) {
	return s.changes(ctx, in)
}

func (s source) Search(context.Context, Search) (Answer, error) {
	return Answer{Text: "found", Data: map[string]any{}}, nil
}

func (s source) LastFailure(context.Context, LastFailure) (Answer, error) {
	return Answer{}, errors.New("nothing is stored here: type lopen init")
}

// A wire is one direction of a connection.
type wire struct {
	*io.PipeReader
	*io.PipeWriter
}

func (w wire) Close() error { return errors.Join(w.PipeReader.Close(), w.PipeWriter.Close()) }

func newWire() wire {
	r, w := io.Pipe()
	return wire{r, w}
}

// A served is a server and the ends of its stdin and stdout.
type served struct {
	*testing.T
	in, out wire
	lines   *bufio.Reader
	ended   chan error
	cancel  func()
}

func serve(t *testing.T, src Source) *served {
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{T: t, in: newWire(), out: newWire(), ended: make(chan error, 1), cancel: cancel}
	s.lines = bufio.NewReader(s.out.PipeReader)
	go func() {
		err := Serve(ctx, s.in.PipeReader, s.out.PipeWriter, "devel", src)
		_ = s.out.PipeWriter.Close()
		s.ended <- err
	}()
	return s
}

func (s *served) send(line string) {
	s.Helper()
	_, err := io.WriteString(s.in.PipeWriter, line+"\n")
	require.NoError(s, err)
}

// receive returns the next message.
func (s *served) receive() (m struct {
	ID     any
	Error  *jsonrpc.Error
	Result json.RawMessage
}) {
	s.Helper()
	line, err := s.lines.ReadBytes('\n')
	require.NoError(s, err)
	require.NoError(s, json.Unmarshal(line, &m), "%s", line)
	return m
}

const (
	hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func (s *served) start() {
	s.Helper()
	s.send(hello)
	require.Equal(s, "hello", s.receive().ID)
	s.send(ready)
}

// end closes stdin and requires that the server ends well.
func (s *served) end() {
	s.Helper()
	require.NoError(s, s.in.PipeWriter.Close())
	require.NoError(s, <-s.ended)
	s.cancel()
}

func TestTools(t *testing.T) {
	t.Parallel()
	var asked SessionLog
	s := serve(t, source{
		log: func(_ context.Context, in SessionLog) (Answer, error) {
			asked = in
			return Answer{Text: strings.Repeat("long ", MaxText), Data: map[string]any{"a": "<&\u202e"}}, nil
		},
		changes: func(context.Context, ChangesSince) (Answer, error) {
			return Answer{Text: "x", Data: map[string]any{"a": strings.Repeat("y", MaxData)}}, nil
		},
	})
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &sdk.IOTransport{Reader: s.out.PipeReader, Writer: s.in.PipeWriter}, nil)
	require.NoError(t, err)
	tools, err := client.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		require.True(t, tool.Annotations.ReadOnlyHint, tool.Name)
		require.NotEmpty(t, tool.Description)
	}
	require.Equal(t, []string{"changes_since", "last_failure", "search", "session_log"}, names)

	call := func(name string, args any) (*sdk.CallToolResult, string) {
		r, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
		require.NoError(t, err)
		return r, r.Content[0].(*sdk.TextContent).Text
	}
	r, text := call("session_log", map[string]any{"task": "one", "before": 7, "limit": 3, "seq": 9})
	require.False(t, r.IsError)
	require.Equal(t, SessionLog{Task: "one", Before: 7, Limit: 3, Seq: 9}, asked)
	require.Equal(t, map[string]any{"a": `<&\u202e`}, r.StructuredContent)
	require.Less(t, len(text), MaxText+100)
	require.Contains(t, text, "... cut: ")
	r, text = call("changes_since", map[string]any{"checkpoint": "last"})
	require.True(t, r.IsError)
	require.Contains(t, text, "ask for less")
	r, text = call("last_failure", nil)
	require.True(t, r.IsError)
	require.Equal(t, "nothing is stored here: type lopen init", text)
	for _, args := range []any{map[string]any{"limit": "ten"}, map[string]any{"no": 1}, map[string]any{"before": -1}, map[string]any{"task": nil}} {
		r, text = call("session_log", args)
		require.True(t, r.IsError, args)
		require.Contains(t, text, "arguments", args)
	}
	_, text = call("changes_since", map[string]any{})
	require.Contains(t, text, "checkpoint")
	_, err = client.CallTool(t.Context(), &sdk.CallToolParams{Name: "rewind"})
	require.ErrorContains(t, err, `unknown tool "rewind"`)
	require.NoError(t, client.Close())
	require.NoError(t, <-s.ended)
	s.cancel()
}

// What is no message is answered, and the next message is read.
func TestHostileLines(t *testing.T) {
	t.Parallel()
	s := serve(t, source{})
	s.start()
	for i, c := range []struct {
		line string
		id   any
		code int64
	}{
		{"garbage", nil, jsonrpc.CodeParseError},
		{"\x00\xff\xfe", nil, jsonrpc.CodeParseError},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"} trailing`, nil, jsonrpc.CodeParseError},
		{strings.Repeat("[", 100_000), nil, jsonrpc.CodeParseError},
		{strings.Repeat(`{"a":`, 100_000), nil, jsonrpc.CodeParseError},
		{strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000), nil, jsonrpc.CodeInvalidRequest},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, nil, jsonrpc.CodeInvalidRequest},
		{`17`, nil, jsonrpc.CodeInvalidRequest},
		{`{}`, nil, jsonrpc.CodeInvalidRequest},
		{`{"jsonrpc":"1.0","id":7,"method":"ping"}`, 7.0, jsonrpc.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, nil, jsonrpc.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":8,"method":7}`, 8.0, jsonrpc.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":9,"method":"no/such"}`, 9.0, jsonrpc.CodeMethodNotFound},
		{`{"jsonrpc":"2.0","id":10,"method":"tools/call"}`, 10.0, jsonrpc.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":11,"method":"tools/call","params":[1]}`, 11.0, jsonrpc.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":7}}`, 12.0, jsonrpc.CodeInvalidParams},
		{strings.Repeat("x", 3*maxMessage), nil, jsonrpc.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":13,"method":"ping","params":{"a":"` + strings.Repeat("x", maxMessage) + `"}}`, nil, jsonrpc.CodeInvalidRequest},
		{hello, "hello", 0}, // a second one
	} {
		name := fmt.Sprintf("%d: %.60s", i, c.line)
		s.send(c.line)
		m := s.receive()
		require.Equal(t, c.id, m.ID, name)
		require.NotNil(t, m.Error, name)
		require.Equal(t, c.code, m.Error.Code, "%s: %s", name, m.Error.Message)
		require.Less(t, len(m.Error.Message), maxError+100, name)
	}
	for _, ignored := range []string{"", "   \r", `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/no"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"` + strings.Repeat("x", maxNotification) + `"}}`} {
		s.send(ignored)
	}
	s.send(`{"jsonrpc":"2.0","id":"last","method":"ping"}`)
	require.Equal(t, "last", s.receive().ID)
	s.end()
}

// A client that writes all and closes its end gets all answers.
func TestEndAnswersFirst(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s := serve(t, source{log: func(ctx context.Context, _ SessionLog) (Answer, error) {
		select {
		case <-asked: // stdin is closed by then
		case <-ctx.Done():
		}
		return Answer{Text: "late", Data: map[string]any{}}, ctx.Err()
	}})
	s.start()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_log"}}`)
	_, err := io.WriteString(s.in.PipeWriter, `{"jsonrpc":"2.0","id":2,"method":"ping"}`) // the last line has no end
	require.NoError(t, err)
	require.NoError(t, s.in.PipeWriter.Close())
	require.Equal(t, 2.0, s.receive().ID)
	close(asked)
	m := s.receive()
	require.Equal(t, 1.0, m.ID)
	require.Contains(t, string(m.Result), "late")
	require.NoError(t, <-s.ended)
	s.cancel()
}

// A tool ends when the client cancels its call, and when the server is to end.
func TestCancel(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	s := serve(t, source{log: func(ctx context.Context, _ SessionLog) (Answer, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return Answer{}, ctx.Err()
	}})
	s.start()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_log"}}`)
	<-began
	s.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	require.Contains(t, s.receive().Error.Message, "not answered yet")
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-ended
	require.Equal(t, 1.0, s.receive().ID)
	s.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"session_log"}}`)
	<-began
	s.cancel()
	<-ended
	_, _ = io.Copy(io.Discard, s.lines)
	require.NoError(t, <-s.ended)
}

// What a client sends is not read while many of its requests wait.
func TestPendingIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var in bytes.Buffer
		for i := range maxPending + 1 {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
		}
		c := newConn(io.NopCloser(&in), io.Discard)
		_, err := c.Connect(t.Context())
		require.NoError(t, err)
		var first jsonrpc.Message
		for i := range maxPending {
			m, err := c.Read(t.Context())
			require.NoError(t, err)
			if i == 0 {
				first = m
			}
		}
		read := make(chan error, 1)
		go func() {
			_, err := c.Read(t.Context())
			read <- err
		}()
		synctest.Wait()
		require.Empty(t, read)
		require.NoError(t, c.Write(t.Context(), &jsonrpc.Response{ID: first.(*jsonrpc.Request).ID, Result: json.RawMessage("{}")}))
		require.NoError(t, <-read)
		require.NoError(t, c.Close())
	})
}

// Of a line without an end only the bound is in memory. Not parallel: it counts what is allocated.
func TestLongLine(t *testing.T) {
	for _, end := range []string{"", "\nping\n"} {
		r := bufio.NewReaderSize(io.MultiReader(io.LimitReader(zeros{}, 128<<20), strings.NewReader(end)), 64<<10)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l := readLine(r)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, l.err, errTooLong)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*maxMessage))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
