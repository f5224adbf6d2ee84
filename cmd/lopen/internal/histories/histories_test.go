package histories

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a store and a history of Claude Code with a subagent.
type world struct {
	t       *testing.T
	project string
	path    string // of the history
	lines   int
}

func newWorld(t *testing.T, lines int) *world {
	w := &world{t: t, project: t.TempDir(), path: filepath.Join(t.TempDir(), "0a1b2c3d-x.jsonl")}
	subs := filepath.Join(strings.TrimSuffix(w.path, ".jsonl"), "subagents")
	require.NoError(t, os.MkdirAll(subs, 0o700))
	w.write(lines)
	var sub bytes.Buffer
	for i := range 5 { // with the IDs of the session's own
		fmt.Fprintf(&sub, `{"type":"user","uuid":"m%d","timestamp":"2026-02-14T10:00:0%dZ","message":{"content":"sub"}}`+"\n", i, i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(subs, "agent-1.jsonl"), sub.Bytes(), 0o600))
	return w
}

// write appends lines to the history: a message, and an event without an ID, which is as the one before.
func (w *world) write(n int) {
	f, err := os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(w.t, err)
	for range n {
		_, err = fmt.Fprintf(f, `{"type":"assistant","uuid":"m%d","requestId":"r%d","timestamp":"2026-02-14T09:00:00Z","cwd":"/was/here","message":{"model":"m","content":"%s","usage":{"output_tokens":1}}}`+
			"\n"+`{"type":"mode","mode":"same"}`+"\n", w.lines, w.lines, strings.Repeat("x", 100))
		require.NoError(w.t, err)
		w.lines++
	}
	require.NoError(w.t, f.Close())
}

func (w *world) store() *lifecycle.Store {
	w.t.Helper()
	s, _, err := lifecycle.Init(w.project, lifecycle.Options{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func (w *world) history() *agents.History {
	w.t.Helper()
	l, err := agents.Open(w.t.Context(), agents.Claude, w.t.TempDir(), w.path)
	require.NoError(w.t, err)
	require.Len(w.t, l.Histories, 1)
	return &l.Histories[0]
}

func (w *world) index(s *lifecycle.Store) Index {
	w.t.Helper()
	x, err := NewIndex(s)
	require.NoError(w.t, err)
	return x
}

// session returns the session that stands for the history.
func (w *world) session(s *lifecycle.Store) (session.ID, *session.State) {
	w.t.Helper()
	id, err := s.OfAgent("claude-0a1b2c3d", "0a1b2c3d-x")
	require.NoError(w.t, err)
	st, _, err := s.Read(id)
	require.NoError(w.t, err)
	return id, st
}

// requireWhole checks that the session has everything of the history once.
func (w *world) requireWhole(s *lifecycle.Store) {
	w.t.Helper()
	infos, err := s.List()
	require.NoError(w.t, err)
	require.Len(w.t, infos, 1)
	id, st := w.session(s)
	seen := map[string]int{}
	for m, err := range s.Messages(id) {
		require.NoError(w.t, err)
		seen[m.Thread+"/"+m.ID]++
	}
	require.Len(w.t, seen, w.lines+5)
	for at, n := range seen {
		require.Equal(w.t, 1, n, at)
	}
	events := 0
	for _, err := range s.Transcript(id) {
		require.NoError(w.t, err)
		events++
	}
	require.Equal(w.t, w.lines, events)
	require.EqualValues(w.t, w.lines, st.Totals().OutputTokens)
	n := read(st)
	require.EqualValues(w.t, w.lines+5, n.Messages)
	require.EqualValues(w.t, w.lines, n.Events)
	require.False(w.t, n.Position.Begun)
}

func TestImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	s := w.store()
	res, err := Import(t.Context(), s, w.index(s), w.history())
	require.NoError(t, err)
	require.True(t, res.Made)
	require.Equal(t, []int{8, 3}, []int{res.Messages, res.Events})
	w.requireWhole(s)
	_, st := w.session(s)
	h := st.Header()
	require.Equal(t, session.OriginImport, h.Origin)
	require.Equal(t, session.StatusComplete, h.Status)
	require.Equal(t, time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC), h.CreatedAt)
	require.Equal(t, time.Date(2026, 2, 14, 10, 0, 4, 0, time.UTC), h.UpdatedAt)
	require.Equal(t, []string{"m"}, h.Models)
	require.Equal(t, "/was/here", read(st).Cwd)

	again, err := Import(t.Context(), s, w.index(s), w.history())
	require.NoError(t, err)
	require.Zero(t, again.Messages+again.Events)
	w.write(2)
	again, err = Import(t.Context(), s, w.index(s), w.history())
	require.NoError(t, err)
	require.Equal(t, []int{2, 2}, []int{again.Messages, again.Events})
	require.False(t, again.Made)
	w.requireWhole(s)
}

// TestInParts takes a long history part by part.
func TestInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	for ; w.lines < 8; w.lines++ {
		_, err = fmt.Fprintf(f, `{"type":"assistant","uuid":"m%d","requestId":"r%d","timestamp":"2026-02-14T09:00:00Z","message":{"content":"%s","usage":{"output_tokens":1}}}`+
			"\n"+`{"type":"mode","mode":"same"}`+"\n", w.lines, w.lines, strings.Repeat("x", part/3))
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	s := w.store()
	sess, _, err := s.OpenOfAgent(t.Context(), "claude-0a1b2c3d", "0a1b2c3d-x", "", func(h *session.Header) { h.Status = session.StatusComplete })
	require.NoError(t, err)
	parts := 0
	for more := true; more; parts++ {
		res := &Result{}
		more, err = ContinueSome(t.Context(), s, sess, w.history(), res)
		require.NoError(t, err)
		require.Less(t, res.Messages, w.lines)
	}
	require.Equal(t, 3, parts)
	require.NoError(t, sess.Close(t.Context()))
	w.requireWhole(s)
}

// TestCutAnywhere ends an import behind any number of items, without its note, as a kill does; the
// agent writes on, and the next import takes the rest.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	for cut := 0; cut < 13; cut += 2 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4)
			s := w.store()
			w.cut(s, cut)
			w.write(1)
			w.cut(s, 1)
			w.write(1)
			for range 2 { // the pass that was begun, and what came since
				_, err := Import(t.Context(), s, w.index(s), w.history())
				require.NoError(t, err)
			}
			w.requireWhole(s)
		})
	}
}

func (w *world) cut(s *lifecycle.Store, items int) {
	w.t.Helper()
	h := w.history()
	sess, _, err := s.OpenOfAgent(w.t.Context(), "claude-0a1b2c3d", "0a1b2c3d-x", "", func(h *session.Header) { h.Status = session.StatusComplete })
	require.NoError(w.t, err)
	im := &importer{sess: sess, res: &Result{}, note: read(sess.State())}
	im.reader, err = h.Open(im.note.Position)
	require.NoError(w.t, err)
	im.known, err = im.there(s)
	require.NoError(w.t, err)
	require.NoError(w.t, im.remember())
	for items > 0 {
		some, err := im.reader.Next(w.t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(w.t, err)
		for i := range some {
			require.NoError(w.t, im.item(w.t.Context(), &some[i]))
			items--
		}
	}
	require.NoError(w.t, im.reader.Close())
	require.NoError(w.t, sess.Close(w.t.Context()))
}

// TestRewrittenFile imports a file that was written anew: what is known in it is not taken again.
func TestRewrittenFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	s := w.store()
	_, err := Import(t.Context(), s, w.index(s), w.history())
	require.NoError(t, err)
	old, err := os.ReadFile(w.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.path, append([]byte("\n \n"), old...), 0o600))
	w.write(1)
	res, err := Import(t.Context(), s, w.index(s), w.history())
	require.NoError(t, err)
	require.Equal(t, []string{w.path}, res.Report.Rewritten)
	require.Equal(t, []int{1, 1}, []int{res.Messages, res.Events})
	_, st := w.session(s)
	require.EqualValues(t, w.lines+5, read(st).Messages)
}

// TestWhatComesBackIsKnown imports a file that is cut, and then whole again, and grown. Nothing is
// taken or counted twice, and an event that is as others is taken.
func TestWhatComesBackIsKnown(t *testing.T) {
	t.Parallel()
	for _, kept := range []int{2, 1, 0} { // lines
		w := newWorld(t, 4)
		s := w.store()
		take := func() *Result {
			res, err := Import(t.Context(), s, w.index(s), w.history())
			require.NoError(t, err)
			return res
		}
		take()
		whole, err := os.ReadFile(w.path)
		require.NoError(t, err)
		cut := bytes.Join(bytes.SplitAfter(whole, []byte("\n"))[:kept], nil)
		for range 2 {
			require.NoError(t, os.WriteFile(w.path, cut, 0o600))
			res := take()
			require.Zero(t, res.Messages+res.Events)
			require.NoError(t, os.WriteFile(w.path, whole, 0o600))
			res = take()
			require.Zero(t, res.Messages+res.Events, "%d lines were kept", kept)
			w.requireWhole(s)
		}
		w.write(2)
		res := take()
		require.Equal(t, []int{2, 2}, []int{res.Messages, res.Events})
		w.requireWhole(s)
		require.Zero(t, take().Messages)
		sub := filepath.Join(strings.TrimSuffix(w.path, ".jsonl"), "subagents", "agent-1.jsonl")
		require.NoError(t, os.WriteFile(sub, []byte("{}\n"), 0o600)) // another file of it is rewritten
		w.write(1)
		res = take()
		require.Equal(t, []int{1, 2}, []int{res.Messages, res.Events})
	}
}

// TestTwoAtOnce imports one history with two stores. One may find the other at it; nothing is
// taken twice.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 500)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		s, h := w.store(), w.history()
		x := w.index(s)
		wg.Go(func() { _, errs[i] = Import(context.Background(), s, x, h) })
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
			continue
		}
		require.ErrorIs(t, err, lifecycle.ErrBusy)
	}
	require.NotZero(t, done)
	w.requireWhole(w.store())
}

// TestSecretsAreHidden imports a credential, which no file of the store then has.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = fmt.Fprintf(f, `{"type":"user","uuid":"s","message":{"content":"%s"}}`+"\n"+`{"type":"mode","key":"%s"}`+"\n"+"bad %s\n"+`{"type":"assistant","uuid":"%s","requestId":"%s","message":{"content":"x","usage":{"input_tokens":1}}}`+"\n", secret, secret, secret, secret, secret)
	require.NoError(t, errors.Join(err, f.Close()))
	s := w.store()
	_, err = Import(t.Context(), s, w.index(s), w.history())
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(s.Path(), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, rerr := os.ReadFile(path)
			require.NotContains(t, string(data), secret, path)
			return rerr
		}
		return err
	}))
}

// TestOtherDataStays imports into a session whose data has members of others.
func TestOtherDataStays(t *testing.T) {
	t.Parallel()
	h := &session.Header{Data: []byte(`{"turns":{"a":[1]}}`)}
	require.NoError(t, (&note{Messages: 7}).write(h))
	var data map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(h.Data, &data))
	require.JSONEq(t, `{"a":[1]}`, string(data["turns"]))
	require.Contains(t, string(data["history"]), `"messages":7`)
}
