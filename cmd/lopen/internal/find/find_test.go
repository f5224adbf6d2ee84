package find

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStore(t *testing.T) (*lifecycle.Store, string) {
	t.Helper()
	project := t.TempDir()
	store, _, err := lifecycle.Init(project, lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close(context.Background())) })
	return store, project
}

// both searches with the index and without, and requires the same.
func both(t *testing.T, f *Finder, q Query) *Page {
	t.Helper()
	got, err := f.Find(context.Background(), q)
	require.NoError(t, err)
	q.NoIndex = true
	want, err := f.Find(context.Background(), q)
	require.NoError(t, err)
	require.Equal(t, want, got)
	return got
}

func appendTo(t *testing.T, sess *lifecycle.Session, all ...session.Message) {
	t.Helper()
	for i := range all {
		require.NoError(t, sess.Append(&all[i]))
	}
	require.NoError(t, sess.Sync(context.Background()))
}

func call(id, name, arguments string) session.ToolCall {
	return session.ToolCall{ID: id, Name: name, Arguments: strictjson.Value(arguments)}
}

// A call and its answer are found by the tool and by the file, also when the search came between them.
func TestToolsAndFiles(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	sess, err := store.Create(context.Background(), "auth")
	require.NoError(t, err)
	f := &Finder{Store: store, Cache: store.Path()}
	appendTo(t, sess,
		session.Message{Role: session.RoleUser, Content: session.Text("please look at it")},
		session.Message{Role: session.RoleAssistant, Content: strictjson.Value(`[{"type":"text","text":"I read"},{"type":"thinking","thinking":"hm","signature":"xyzzy"}]`),
			ToolCalls: []session.ToolCall{call("1", "Read", `{"file_path":"/home/u/p/src/auth.go"}`)}})
	require.Len(t, both(t, f, Query{File: "src/auth.go"}).Hits, 1)
	appendTo(t, sess,
		session.Message{Role: session.RoleTool, ToolCallID: "1", Content: session.Text("package auth")},
		session.Message{Role: session.RoleAssistant, ToolCalls: []session.ToolCall{call("2", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: src/auth.go\n@@\n-a\n+verify\n*** End Patch"}`)}})
	require.Len(t, both(t, f, Query{File: "src/auth.go"}).Hits, 3)
	hits := both(t, f, Query{Text: "package", Tool: "read", Role: "tool"}).Hits
	require.Len(t, hits, 1)
	require.Equal(t, "Read", hits[0].Tool)
	require.Equal(t, fmt.Sprintf("lopen session log %s --seq %d", sess.ID(), hits[0].Seq), hits[0].Open)
	require.Len(t, both(t, f, Query{Text: "thinking hm"}).Hits, 0)
	require.Len(t, both(t, f, Query{Text: "hm"}).Hits, 1)
	require.Len(t, both(t, f, Query{Text: "xyzzy"}).Hits, 0)
	_, err = f.Find(context.Background(), Query{Text: "verify", Module: "other"})
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	other, err := store.Create(context.Background(), "other")
	require.NoError(t, err)
	appendTo(t, other, session.Message{Role: session.RoleUser, Content: session.Text("another")})
	require.Len(t, both(t, f, Query{Text: "verify", Module: "other"}).Hits, 0)
	require.Len(t, both(t, f, Query{Text: "another", Module: "other"}).Hits, 1)
	require.Len(t, both(t, f, Query{Text: "verify", Since: time.Now().Add(time.Hour)}).Hits, 0)
	_, err = f.Find(context.Background(), Query{Text: "-verify"})
	require.ErrorIs(t, err, search.ErrQuery)
}

// The messages of a fork that are another session's are found there, and in the fork once that is deleted.
func TestForks(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := context.Background()
	sess, err := store.Create(ctx, "auth")
	require.NoError(t, err)
	appendTo(t, sess, session.Message{Role: session.RoleUser, Content: session.Text("the first words")})
	require.NoError(t, sess.Close(ctx))
	fork, err := store.Fork(ctx, sess.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	appendTo(t, fork, session.Message{Role: session.RoleUser, Content: session.Text("the second words")})
	require.NoError(t, fork.Close(ctx))
	f := &Finder{Store: store, Cache: store.Path()}
	require.Len(t, both(t, f, Query{Text: "words"}).Hits, 2)
	_, err = store.Delete(ctx, sess.ID())
	require.NoError(t, err)
	hits := both(t, f, Query{Text: "words"}).Hits
	require.Len(t, hits, 2)
	for _, h := range hits {
		require.Equal(t, fork.ID().String(), h.Session)
	}
	f.Lopen = []string{"lopen", "-C", "/a b"}
	require.Equal(t, "lopen -C '/a b' session show "+fork.ID().String()+" --messages --full", both(t, f, Query{Text: "first"}).Hits[0].Open)
	require.Len(t, both(t, f, Query{Text: "first"}).Hits, 1)
}

// A record that was read and is not in the log after a power cut is not found, though another has its number.
func TestALogThatWasCut(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	sess, err := store.Create(context.Background(), "auth")
	require.NoError(t, err)
	appendTo(t, sess, session.Message{Role: session.RoleUser, Content: session.Text("one")}, session.Message{Role: session.RoleUser, Content: session.Text("two")})
	l := &logReader{store: store, id: sess.ID()}
	n := 0
	count := func(*search.Document) error { n++; return nil }
	mark, tail, err := l.read(0, "", count)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	again, same, err := l.read(mark, tail, count)
	require.NoError(t, err)
	require.Equal(t, mark, again)
	require.Equal(t, tail, same)
	require.Equal(t, 2, n)
	_, _, err = l.read(mark-1, tail, count) // the tail is that of another record
	require.ErrorIs(t, err, search.ErrChanged)
	_, _, err = l.read(mark+5, tail, count) // records that are lost
	require.ErrorIs(t, err, search.ErrChanged)
	require.Equal(t, 2, n)
	stop := errors.New("stop")
	_, _, err = l.read(0, "", func(*search.Document) error { return stop })
	require.ErrorIs(t, err, stop)
}

// A session that is put back as it was, beside the index, and goes on in another way, is read again although it has as
// many records as before.
func TestAnOlderStoreIsPutBack(t *testing.T) {
	t.Parallel()
	project, old := t.TempDir(), t.TempDir()
	ctx := context.Background()
	store, _, err := lifecycle.Init(project, lifecycle.Options{})
	require.NoError(t, err)
	sess, err := store.Create(ctx, "auth")
	require.NoError(t, err)
	require.NoError(t, sess.Close(ctx))
	id, sessions := sess.ID(), filepath.Join(store.Path(), "sessions")
	require.NoError(t, store.Close(ctx))
	require.NoError(t, os.CopyFS(old, os.DirFS(sessions)))

	say := func(text string) uint64 {
		store, err := lifecycle.Open(project, lifecycle.Options{})
		require.NoError(t, err)
		sess, err := store.Open(id)
		require.NoError(t, err)
		appendTo(t, sess, session.Message{Role: session.RoleUser, Content: session.Text(text)})
		require.NoError(t, sess.Close(ctx))
		f := &Finder{Store: store, Cache: store.Path()}
		require.Len(t, both(t, f, Query{Text: text}).Hits, 1)
		require.Empty(t, both(t, f, Query{Text: "first -" + text}).Hits)
		_, seq, err := store.Read(id)
		require.NoError(t, err)
		require.NoError(t, store.Close(ctx))
		return seq
	}
	seq := say("first")
	require.NoError(t, os.RemoveAll(sessions))
	require.NoError(t, os.CopyFS(sessions, os.DirFS(old)))
	require.Equal(t, seq, say("second"))
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	store, project := newStore(t)
	docs := os.DirFS(project)
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(project+"/docs/m", 0o755))
		require.NoError(t, os.WriteFile(project+"/docs/m/"+name, []byte(text), 0o600))
	}
	write("SPEC.md", "# A\n\nalpha\n\n## B\nbeta\n")
	write("RESEARCH-x.md", "gamma")
	files, err := Modules(docs, docs, nil, "docs", func(module string) string { return "docs/" + module + "/SPEC.md" })
	require.NoError(t, err)
	f := &Finder{Store: store, Cache: store.Path(), Files: files}
	hit := both(t, f, Query{Text: "beta"}).Hits[0]
	require.Equal(t, "docs/m/SPEC.md", hit.Path)
	require.EqualValues(t, 6, hit.Line)
	require.Equal(t, "sed -n 6,26p docs/m/SPEC.md", hit.Open)
	write("SPEC.md", strings.Repeat("# A\n"+strings.Repeat("one line\n", 3000), 2)+"the beta of a long section")
	hits := both(t, f, Query{Text: "beta"}).Hits
	require.Len(t, hits, 1)
	require.EqualValues(t, 2*3001+1, hits[0].Line)
	f.Shown = func(d *File) string { return "../" + d.Path }
	require.Equal(t, "sed -n 6003,6023p ../docs/m/SPEC.md", both(t, f, Query{Text: "beta"}).Hits[0].Open)
	require.Equal(t, "research", both(t, f, Query{Text: "gamma"}).Hits[0].Kind)
	write("SPEC.md", "# A\n\nalpha\n\n## B\ndelta\n")
	require.Empty(t, both(t, f, Query{Text: "beta"}).Hits)
	require.Len(t, both(t, f, Query{Text: "delta"}).Hits, 1)
	require.NoError(t, os.Remove(project+"/docs/m/RESEARCH-x.md"))
	require.Empty(t, both(t, f, Query{Text: "gamma"}).Hits)
	_, err = Modules(docs, docs, []string{"m"}, "docs/m/SPEC.md", path.Base)
	require.Error(t, err)
	files, err = Modules(docs, docs, []string{"n"}, "none", path.Base)
	require.NoError(t, err)
	require.Len(t, files, 2)
}
