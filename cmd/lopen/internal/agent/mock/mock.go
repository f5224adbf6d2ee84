// Package mock stands in for the APIs that coding agents call, so that the real agents can
// be run without a login, a network or a bill. It is for tests.
//
// A [Server] listens on loopback. It answers the Anthropic Messages API, which claude and
// opencode call, and the OpenAI Responses API, which codex calls: which of them a request is
// meant for follows from its path. What it answers is decided by one function.
package mock

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Server answers agents on 127.0.0.1.
type Server struct {
	URL string // without a slash at its end

	answer func(Request) Answer
	http   *httptest.Server

	mu     sync.Mutex
	seen   []Request
	served Usage
}

// A Request is one question of an agent to its model.
type Request struct {
	N       int    // the question's number, from 1
	Model   string // that the agent asked for
	Prompt  string // the last text that a person, or the loop, said
	Results int    // results of tools after that text
	Said    string // everything in the conversation, as JSON
	Header  http.Header
}

// An Answer is what a model says to one question.
type Answer struct {
	Text  string
	Tool  *Tool // called after Text
	Usage Usage
	Error *Error // in place of everything above

	Cut    int           // closes the connection after so many bytes of the answer; 0 does not
	Deltas int           // sends Text so often, a delta each; 0 is once, -1 until the agent leaves
	Pace   time.Duration // between two deltas
	Hang   bool          // falls silent after Text and waits until the agent leaves
}

// A Tool is a call of one.
type Tool struct {
	Name   string
	Input  map[string]any
	Script string // in place of Input: of codex's tool exec
	Server string // of codex's tools of an MCP server: its namespace
}

// Usage is what an answer costs, in tokens. Input is without Cached.
type Usage struct{ Input, Output, Cached int64 }

// An Error is an answer that is no answer.
type Error struct {
	Status int
	Header map[string]string
	Body   string // JSON
}

// Serve answers questions until the test ends. Questions without tools, like those for a
// title of the conversation, get "ok" and are not passed to answer, nor counted.
func Serve(tb testing.TB, answer func(Request) Answer) *Server {
	s := &Server{answer: answer}
	s.http = httptest.NewServer(s)
	s.URL = s.http.URL
	tb.Cleanup(s.Close)
	return s
}

// Close refuses connections from now on, and closes those that are open.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Requests are the questions so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// Served is the usage of every answer that reached its end.
func (s *Server) Served() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
}

// question is what both APIs' requests have in common.
type question struct {
	Model  string             `json:"model"`
	Stream bool               `json:"stream"`
	Tools  []strictjson.Value `json:"tools"`
}

// maxBody bounds a request, in bytes.
const maxBody = 64 << 20

// ServeHTTP answers one request of an agent.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var api api
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages"):
		api = messages{}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/responses"):
		api = responses{}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/count_tokens"):
		_, _ = io.WriteString(w, `{"input_tokens": 10}`)
		return
	default:
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var q question
	if err == nil {
		err = strictjson.Unmarshal(body, &q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, ok := api.(messages); ok && len(q.Tools) == 0 {
		s.send(w, r, api, q, Answer{Text: "ok"}, 0)
		return
	}
	req := api.read(body)
	req.Model, req.Header = q.Model, r.Header
	s.mu.Lock()
	req.N = len(s.seen) + 1
	s.seen = append(s.seen, req)
	s.mu.Unlock()
	a := s.answer(req)
	if s.send(w, r, api, q, a, req.N) {
		s.mu.Lock()
		s.served.Input += a.Usage.Input
		s.served.Output += a.Usage.Output
		s.served.Cached += a.Usage.Cached
		s.mu.Unlock()
	}
}

// An api is how one provider reads questions and writes answers.
type api interface {
	read(body []byte) Request
	// begin, delta and end are the events of a streamed answer.
	begin(model string, n int, a Answer) string
	delta(text string) string
	end(model string, n int, a Answer) string
	// whole is an answer that is not streamed.
	whole(model string, n int, a Answer) string
}

// send writes an answer, and says whether all of it was written.
func (s *Server) send(w http.ResponseWriter, r *http.Request, api api, q question, a Answer, n int) bool {
	if a.Error != nil {
		w.Header().Set("Content-Type", "application/json")
		for k, v := range a.Error.Header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(a.Error.Status)
		_, _ = io.WriteString(w, a.Error.Body)
		return false
	}
	left := a.Cut
	put := func(text string) {
		if a.Cut > 0 && left <= len(text) {
			_, _ = io.WriteString(w, text[:left])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler) // closes the connection
		}
		left -= len(text)
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
	}
	if !q.Stream {
		w.Header().Set("Content-Type", "application/json")
		put(api.whole(q.Model, n, a))
		return true
	}
	w.Header().Set("Content-Type", "text/event-stream")
	put(api.begin(q.Model, n, a))
	for i := 0; a.Text != "" && (i == 0 || a.Deltas < 0 || i < a.Deltas); i++ {
		if i > 0 && !pause(r, a.Pace) {
			return false
		}
		put(api.delta(a.Text))
	}
	if a.Hang {
		<-r.Context().Done()
		return false
	}
	put(api.end(q.Model, n, a))
	return true
}

// pause waits, and says whether the agent is still there.
func pause(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// text is all that an answer says.
func (a Answer) text() string { return strings.Repeat(a.Text, max(a.Deltas, 1)) }

// event is one server-sent event, named by its field type.
func event(fields map[string]any) string {
	return fmt.Sprintf("event: %s\ndata: %s\n\n", fields["type"], encode(fields))
}

// encode is v in JSON.
func encode(v any) string {
	data, err := strictjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
