package mock

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ask posts a question, and returns the status and what came until the connection ended.
func ask(t *testing.T, s *Server, path, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

const (
	message = `{"model":"m","stream":true,"tools":[{}],"messages":[
		{"role":"user","content":"write it"},
		{"role":"assistant","content":[{"type":"tool_use"}]},
		{"role":"user","content":[{"type":"tool_result"},{"type":"text","text":"<system-reminder>a reminder"}]}]}`
	response = `{"model":"m","stream":true,"input":[
		{"role":"user","content":[{"text":"write it"}]},
		{"type":"function_call"},{"type":"function_call_output"}]}`
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{"/v1/messages": message, "/v1/responses": response} {
		s := Serve(t, func(Request) Answer {
			return Answer{Text: "well", Tool: &Tool{Name: "Write", Input: map[string]any{"path": "a"}}, Usage: Usage{Input: 1, Output: 2, Cached: 3}}
		})
		code, text, err := ask(t, s, path, body)
		require.NoError(t, err)
		require.Equal(t, 200, code)
		require.Contains(t, text, `"well"`)
		require.Contains(t, text, `"Write"`)
		require.Equal(t, Usage{Input: 1, Output: 2, Cached: 3}, s.Served())
		req := s.Requests()[0]
		require.Equal(t, "write it", req.Prompt)
		require.Equal(t, 1, req.Results)
		require.Equal(t, "m", req.Model)
	}
}

func TestAnErrorIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := Serve(t, func(Request) Answer {
		return Answer{Error: &Error{Status: 429, Header: map[string]string{"retry-after": "7"}, Body: "{}"}, Usage: Usage{Input: 1}}
	})
	code, text, err := ask(t, s, "/v1/messages", message)
	require.NoError(t, err)
	require.Equal(t, 429, code)
	require.Equal(t, "{}", text)
	require.Zero(t, s.Served())
}

func TestACutAnswerEndsAtItsByte(t *testing.T) {
	t.Parallel()
	cut := 0
	s := Serve(t, func(Request) Answer { return Answer{Text: "well", Deltas: 3, Cut: cut, Usage: Usage{Input: 1}} })
	_, whole, err := ask(t, s, "/v1/responses", response)
	require.NoError(t, err)
	for _, cut = range []int{1, 100, len(whole)} {
		_, text, err := ask(t, s, "/v1/responses", response)
		require.Error(t, err)
		require.Len(t, text, cut)
	}
	require.Equal(t, Usage{Input: 1}, s.Served())
}

func TestAQuestionWithoutToolsIsNotCounted(t *testing.T) {
	t.Parallel()
	s := Serve(t, func(Request) Answer { panic("asked") })
	_, text, err := ask(t, s, "/v1/messages", `{"messages":[{"role":"user","content":"a title?"}]}`)
	require.NoError(t, err)
	require.Contains(t, text, `"ok"`)
	require.Empty(t, s.Requests())
}

func TestAnEndlessAnswerEndsWithTheAgent(t *testing.T) {
	t.Parallel()
	for _, a := range []Answer{{Text: "on", Deltas: -1, Pace: time.Millisecond}, {Text: "on", Hang: true}} {
		s := Serve(t, func(Request) Answer { return a })
		resp, err := http.Post(s.URL+"/v1/messages", "", strings.NewReader(message))
		require.NoError(t, err)
		buf := make([]byte, 10)
		_, err = io.ReadFull(resp.Body, buf)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close()) // the test's end waits for the handler
	}
}
