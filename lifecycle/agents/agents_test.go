package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

var update = flag.Bool("update", false, "record the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns the only history in a folder.
func open(t testing.TB, agent, path string) *agents.History {
	t.Helper()
	l, err := agents.Open(t.Context(), agent, t.TempDir(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	require.Empty(t, l.Left)
	require.Len(t, l.Histories, 1)
	return &l.Histories[0]
}

// read reads a pass to its end. Each item is a line of JSON.
func read(t testing.TB, h *agents.History, from agents.Position) (items []string, at agents.Position, rep *agents.Report) {
	t.Helper()
	r, err := h.Open(from)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for {
		some, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return items, r.Position(), r.Report()
		}
		require.NoError(t, err)
		items = append(items, texts(t, some)...)
	}
}

func texts(t testing.TB, items []agents.Item) (all []string) {
	for _, it := range items {
		var v any = it.Message
		if it.Message == nil {
			v = json.RawMessage(it.Event)
		} else {
			require.NoError(t, it.Message.Validate())
		}
		line, err := json.Marshal(v)
		require.NoError(t, err)
		all = append(all, string(line))
	}
	return all
}

// sample copies the testdata of an agent, so that a test may change it.
func sample(t testing.TB, agent string) string {
	t.Helper()
	dir := t.TempDir()
	if agent == agents.OpenCode {
		database(t, filepath.Join(dir, "opencode.db"))
		return dir
	}
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", agent))))
	return dir
}

// database makes a database from the dump of a real one.
func database(t testing.TB, path string, more ...string) {
	t.Helper()
	dump, err := os.ReadFile("testdata/opencode/opencode.sql")
	require.NoError(t, err)
	db, err := driver.Open(uri(path))
	require.NoError(t, err)
	for _, s := range append([]string{"PRAGMA foreign_keys=off", string(dump)}, more...) {
		_, err = db.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	settle(t, path)
}

func uri(path string) string { return (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String() }

// settle makes a file one that was not written just now, so that nobody waits for that.
func settle(t testing.TB, path string) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	require.NoError(t, os.Chtimes(path, old, old))
}

// TestGolden reads what real agents wrote, against mocks of their APIs.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{agents.Claude, agents.Codex, agents.OpenCode} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			l, err := agents.Open(t.Context(), agent, t.TempDir(), sample(t, agent))
			require.NoError(t, err)
			defer l.Close()
			var b bytes.Buffer
			for _, h := range l.Histories {
				head, err := h.Head()
				require.NoError(t, err)
				fmt.Fprintf(&b, "%s %s: %+v\n", h.ID, agents.Module(agent, h.ID), head)
				items, _, rep := read(t, &h, agents.Position{})
				fmt.Fprintln(&b, strings.Join(items, "\n"))
				require.Empty(t, rep.Places)
				require.Empty(t, rep.Unknown)
				line, err := json.MarshalIndent(rep, "", "  ")
				require.NoError(t, err)
				fmt.Fprintf(&b, "%s\n", line)
			}
			golden := filepath.Join("testdata", agent+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), b.String())
		})
	}
}

// TestAPassThatIsInterruptedYieldsTheSame stops a pass behind each record, lets the agent write on,
// and resumes it from its Position as JSON.
func TestAPassThatIsInterruptedYieldsTheSame(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{agents.Claude, agents.Codex} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			dir := sample(t, agent)
			h := open(t, agent, dir)
			want, end, _ := read(t, h, agents.Position{})
			more := "{\"type\":\"user\",\"uuid\":\"new\"}\n"
			appendTo(t, h.Path, more)
			grown := open(t, agent, dir)
			r, err := h.Open(agents.Position{})
			require.NoError(t, err)
			defer r.Close()
			_ = end
			r.Close()
			first, _, _ := read(t, grown, end)
			require.Len(t, first, 1, "the next pass has what came meanwhile")

			var got []string
			r, err = open(t, agent, sample(t, agent)).Open(agents.Position{})
			require.NoError(t, err)
			defer r.Close()
			for {
				items, err := r.Next(t.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				got = append(got, texts(t, items)...)
				data, err := json.Marshal(r.Position())
				require.NoError(t, err)
				var at agents.Position
				require.NoError(t, json.Unmarshal(data, &at))
				rest, _, _ := read(t, grown, at)
				require.Equal(t, want, append(got[:len(got):len(got)], rest...))
			}
			require.Equal(t, want, got)
		})
	}
}

func appendTo(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, errors.Join(err, f.Close()))
}

// user is a line of Claude Code.
func user(id, parent, text string) string {
	return fmt.Sprintf(`{"parentUuid":%q,"type":"user","message":{"role":"user","content":%q},"uuid":%q,"timestamp":"2026-02-14T09:00:00Z"}`+"\n", parent, text, id)
}

// transcript writes a history of Claude Code.
func transcript(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s1.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestDamagedLines(t *testing.T) {
	t.Parallel()
	long := `{"type":"user","message":{"content":"` + strings.Repeat("x", 9<<20) + `"}}` + "\n"
	path := transcript(t, user("a", "", "one")+
		strings.Repeat("\x00", 3<<20)+user("b", "a", "behind NUL")+
		`{"type":"user","uuid":"torn","mess`+user("c", "b", "behind a torn line")+
		"no json\n"+"[1]\n"+long+
		strings.Replace(user("d", "c", "bytes @"), "@", "\xff\xfe", 1)+
		user("e", "d", "last")+`{"type":"user","uuid":"f","message":{"con`)
	items, at, rep := read(t, open(t, agents.Claude, path), agents.Position{})
	var said []string
	for _, it := range items {
		if !strings.Contains(it, agents.BadLine) {
			said = append(said, it)
		}
	}
	require.Len(t, said, 5)
	for i, what := range []string{"one", "behind NUL", "behind a torn line", "bytes ", "last"} {
		require.Contains(t, said[i], what)
	}
	require.Equal(t, 6, rep.Bad)
	var lines []int
	for _, p := range rep.Places {
		require.Equal(t, path, p.Path)
		lines = append(lines, p.Line)
	}
	require.Equal(t, []int{2, 3, 4, 5, 6, 9}, lines)
	require.EqualValues(t, len(user("a", "", "one")), rep.Places[0].Offset)
	require.Len(t, items, 10, "each bad line that will not change is an event")

	appendTo(t, path, `tent":"finished"}}`+"\n")
	items, _, rep = read(t, open(t, agents.Claude, path), at)
	require.Len(t, items, 1)
	require.Contains(t, items[0], "finished")
	require.Zero(t, rep.Bad)
}

// TestMemoryIsBounded reads a line of 64 MiB, and a block of NUL bytes. It counts what is allocated,
// so that no other test may run.
func TestMemoryIsBounded(t *testing.T) {
	path := transcript(t, user("a", "", "one"))
	appendTo(t, path, `{"type":"user","message":{"content":"`)
	block := strings.Repeat("y", 1<<20)
	for range 64 {
		appendTo(t, path, block)
	}
	appendTo(t, path, "\"}}\n")
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	require.NoError(t, f.Truncate(info.Size()+64<<20)) // a sparse block of NUL bytes
	require.NoError(t, f.Close())
	appendTo(t, path, user("b", "a", "two"))
	h := open(t, agents.Claude, path)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	items, _, rep := read(t, h, agents.Position{})
	runtime.ReadMemStats(&after)
	require.Len(t, items, 4)
	require.Equal(t, 2, rep.Bad)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(48<<20), "of a file of 128 MiB")
}

func TestRewritten(t *testing.T) {
	t.Parallel()
	path := transcript(t, user("a", "", "one")+user("b", "a", "two"))
	_, at, _ := read(t, open(t, agents.Claude, path), agents.Position{})
	for what, content := range map[string]string{
		"shorter": user("b", "", "two"),
		"other":   user("x", "", "first") + user("a", "x", "one") + user("b", "a", "two"),
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		h := open(t, agents.Claude, path)
		r, err := h.Open(at)
		require.NoError(t, err)
		items, err := r.Next(t.Context())
		require.NoError(t, err)
		require.True(t, items[0].Again, what)
		require.Equal(t, []string{path}, r.Report().Rewritten)
		require.NoError(t, r.Close())
	}
}

func TestUsageCountsOncePerRequest(t *testing.T) {
	t.Parallel()
	line := func(request string, out int) string {
		return fmt.Sprintf(`{"type":"assistant","requestId":%q,"timestamp":"2026-02-14T09:00:00Z","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"x"}],`+
			`"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":%d}}}`+"\n", request, out)
	}
	path := transcript(t, line("r1", 1)+line("r1", 7)+line("r1", 7))
	_, at, rep := read(t, open(t, agents.Claude, path), agents.Position{})
	require.Equal(t, session.Usage{InputTokens: 15, OutputTokens: 7, CachedTokens: 100}, rep.Usage)
	appendTo(t, path, line("r1", 7)+line("r2", 2))
	_, _, rep = read(t, open(t, agents.Claude, path), at)
	require.Equal(t, session.Usage{InputTokens: 15, OutputTokens: 2, CachedTokens: 100}, rep.Usage, "a later pass knows the request")
}

// The sums of a fork go on from those of the session that it is from, which it has no lines of.
func TestUsageOfACodexFork(t *testing.T) {
	t.Parallel()
	used := func(total, last int) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"output_tokens":1},"last_token_usage":{"input_tokens":%d}}}}`+"\n", total, last)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "rollout-2026-02-14T09-00-00-01a20b27-c73d-76c0-a045-5fdf013e47f4.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"type":"session_meta","payload":{"id":"f","forked_from_id":"p"}}`+"\n"), 0o600))
	_, at, _ := read(t, open(t, agents.Codex, dir), agents.Position{})
	appendTo(t, path, used(3300, 1100)+used(3300, 1100)+used(3500, 200))
	_, _, rep := read(t, open(t, agents.Codex, dir), at)
	require.EqualValues(t, 1300, rep.Usage.InputTokens)
}

func TestBranchesAndSubagents(t *testing.T) {
	t.Parallel()
	path := transcript(t, user("a", "", "one")+user("b", "a", "two")+user("c", "a", "another two"))
	subs := filepath.Join(strings.TrimSuffix(path, ".jsonl"), "subagents")
	require.NoError(t, os.MkdirAll(filepath.Join(subs, "deep"), 0o700))
	for _, name := range []string{"agent-1.jsonl", "deep/agent-1.jsonl"} { // their messages have the same IDs
		require.NoError(t, os.WriteFile(filepath.Join(subs, name), []byte(user("a", "", "sub")), 0o600))
	}
	for _, at := range []string{path, filepath.Dir(path)} {
		items, _, _ := read(t, open(t, agents.Claude, at), agents.Position{})
		require.Len(t, items, 5)
		require.NotContains(t, items[1], "parent")
		require.Contains(t, items[2], `"parent":"a"`)
		require.Contains(t, items[3], `"thread":"1"`)
		require.Contains(t, items[4], `"thread":"deep/1"`)
	}
}

func TestCodexTurnsThatWereRolledBack(t *testing.T) {
	t.Parallel()
	said := func(role, id string) string {
		return fmt.Sprintf(`{"timestamp":"2026-02-14T09:00:00Z","type":"response_item","payload":{"type":"message","role":%q,"id":%q,"content":[{"type":"input_text","text":"x"}]}}`+"\n", role, id)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "rollout-2026-02-14T09-00-00-01a20b27-c73d-76c0-a045-5fdf013e47f4.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(said("user", "u1")+said("assistant", "a1")+said("user", "u2")+said("assistant", "a2")+
		`{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`+"\n"+said("user", "u3")+said("user", "u4")), 0o600))
	h := open(t, agents.Codex, dir)
	require.Equal(t, "01a20b27-c73d-76c0-a045-5fdf013e47f4", h.ID)
	items, _, _ := read(t, h, agents.Position{})
	require.Contains(t, items[5], `"parent":"a1"`)
	require.NotContains(t, items[6], `"parent"`)
}

// TestCodexCompresses reads a rollout, which Codex then compresses, and continues there.
func TestCodexCompresses(t *testing.T) {
	t.Parallel()
	dir := sample(t, agents.Codex)
	h := open(t, agents.Codex, dir)
	want, at, _ := read(t, h, agents.Position{})
	content, err := os.ReadFile(h.Path)
	require.NoError(t, err)
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	more := append(content, "{\"type\":\"later\"}\n"...)
	require.NoError(t, os.WriteFile(h.Path+".zst", z.EncodeAll(more, nil), 0o600))
	require.NoError(t, z.Close())
	items, _, _ := read(t, open(t, agents.Codex, dir), agents.Position{})
	require.Equal(t, want, items, "while both are there the first counts")
	require.NoError(t, os.Remove(h.Path))
	items, _, _ = read(t, open(t, agents.Codex, dir), agents.Position{})
	require.Equal(t, len(want)+1, len(items))
	items, at, rep := read(t, open(t, agents.Codex, dir), at)
	require.Equal(t, []string{`{"type":"later"}`}, items)
	require.Equal(t, map[string]int{"later": 1}, rep.Unknown)
	items, _, _ = read(t, open(t, agents.Codex, dir), at)
	require.Empty(t, items)
}

func TestOpencodeWritesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "opencode.db")
	insert := func(id, parent, data string, ms int64) string {
		return fmt.Sprintf(`INSERT INTO message VALUES ('%s','%s',%d,%d,'%s');`, id, parent, ms, time.Now().UnixMilli(), data)
	}
	part := func(message, parent string) string {
		return fmt.Sprintf(`INSERT INTO part VALUES ('prt_%s','%s','%s',1,1,'{"type":"text","text":"in %s"}');`, message, message, parent, message)
	}
	const root = "ses_df4d4f503ffeGmCID4xKCtwOG3"
	child := strings.ReplaceAll(`INSERT INTO session (id,project_id,parent_id,slug,directory,title,version,time_created,time_updated) SELECT 'ses_child',project_id,'ROOT','x',directory,'sub',version,time_created,time_updated FROM session WHERE id='ROOT';`, "ROOT", root)
	database(t, path, child, insert("msg_c", "ses_child", `{"role":"user"}`, 1), part("msg_c", "ses_child"), insert("msg_late", "ses_child", `{"role":"user"}`, 2), insert("msg_x", root, `{"role":"assistant","time":{}}`, 1e13))
	find := func() *agents.History {
		l, err := agents.Open(t.Context(), agents.OpenCode, t.TempDir(), path)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		require.Len(t, l.Histories, 2)
		return &l.Histories[1]
	}
	h := find()
	require.Equal(t, root, h.ID)
	items, at, _ := read(t, h, agents.Position{})
	all := strings.Join(items, "\n")
	require.NotContains(t, all, "msg_x", "it is being written")
	require.Contains(t, all, `"thread":"ses_child"`)
	require.NotContains(t, all, "msg_late", "its words are not there yet")

	db, err := driver.Open(uri(path)) // its owner holds it, and has written into its log
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `PRAGMA journal_mode=wal; BEGIN IMMEDIATE; UPDATE message SET data='{"role":"assistant","time":{"completed":1}}' WHERE id='msg_x'; `+part("msg_late", "ses_child")+` COMMIT; BEGIN IMMEDIATE`)
	require.NoError(t, err)
	items, _, _ = read(t, find(), at)
	require.Len(t, items, 2)
	require.Contains(t, items[0]+items[1], "msg_x")
	require.Contains(t, items[0]+items[1], "in msg_late")
}

// TestSourcesAreOnlyRead reads from folders that cannot be written, and compares what is there.
func TestSourcesAreOnlyRead(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{agents.Claude, agents.Codex, agents.OpenCode} {
		dir := sample(t, agent)
		before := tree(t, dir)
		require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if d.IsDir() {
				t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
			}
			return errors.Join(err, os.Chmod(path, 0o500))
		}))
		l, err := agents.Open(t.Context(), agent, t.TempDir(), dir)
		require.NoError(t, err)
		for i := range l.Histories {
			_, _, rep := read(t, &l.Histories[i], agents.Position{})
			require.NotZero(t, rep.Messages)
		}
		require.NoError(t, l.Close())
		require.Equal(t, before, tree(t, dir), agent)
	}
}

// tree returns the files in a folder: their contents and times.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[path] = "folder"
			return err
		}
		data, err := os.ReadFile(path)
		info, ierr := d.Info()
		all[path] = string(data) + info.ModTime().String()
		return errors.Join(err, ierr)
	}))
	return all
}

func TestModule(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"04E3bf75-1733-4f51":     "claude-04e3bf75",
		"ses_df4d4f503ffeGmCID4": "claude-df4d4f50",
		"---":                    "claude-0",
		"a-b":                    "claude-ab",
	} {
		require.Equal(t, want, agents.Module(agents.Claude, id))
		require.NoError(t, session.ValidateModule(agents.Module(agents.Claude, id)))
		require.True(t, agents.IsModule(want))
	}
	for _, module := range []string{"auth", "claude", "claude-", "claude-code-2", "claude-04e3bf751", "cursor-04e3bf75"} {
		require.False(t, agents.IsModule(module), module)
	}
}

func TestUnknownAgent(t *testing.T) {
	t.Parallel()
	_, err := agents.Open(context.Background(), "cursor", t.TempDir(), ".")
	require.ErrorContains(t, err, `histories of "cursor" cannot be read`)
}
