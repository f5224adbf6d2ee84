package agents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// What a person types while Claude Code works is in no line of its own but an attachment.
func TestPromptsThatWaited(t *testing.T) {
	t.Parallel()
	queued := func(id, mode string) string {
		return fmt.Sprintf(`{"parentUuid":"a","isSidechain":false,"attachment":{"type":"queued_command","prompt":"words of %s"%s},"type":"attachment","uuid":%q,"timestamp":"2026-02-14T09:00:00Z"}`+"\n", id, mode, id)
	}
	path := transcript(t, user("a", "", "one")+queued("b", `,"commandMode":"prompt"`)+queued("c", "")+queued("d", `,"commandMode":"task-notification"`)+user("e", "d", "two"))
	items, _, rep := read(t, open(t, agents.Claude, path), agents.Position{})
	require.Len(t, items, 5)
	require.Equal(t, 4, rep.Messages)
	require.Empty(t, rep.Unknown)
	require.Contains(t, items[1], `"role":"user","content":"words of b"`)
	require.Contains(t, items[2], `"role":"user","content":"words of c"`)
	require.Contains(t, items[3], "task-notification", "an event as it stands")
}

// A fork of Claude Code has copies of what was said before it, whose requests are of another session.
func TestUsageOfAClaudeFork(t *testing.T) {
	t.Parallel()
	line := func(request, of string) string {
		return fmt.Sprintf(`{"type":"assistant","sessionId":"s","requestId":%q,"requestSessionId":%q,"timestamp":"2026-02-14T09:00:00Z","message":{"role":"assistant","content":"x","usage":{"input_tokens":10,"output_tokens":1}}}`+"\n", request, of)
	}
	_, _, rep := read(t, open(t, agents.Claude, transcript(t, line("r1", "other")+line("r2", "s")+line("r3", ""))), agents.Position{})
	require.Equal(t, 3, rep.Messages)
	require.Equal(t, session.Usage{InputTokens: 20, OutputTokens: 2}, rep.Usage)
}

// Older versions of Claude Code write the lines of subagents into the file of their session, those of several
// among each other.
func TestSubagentsInTheSessionsFile(t *testing.T) {
	t.Parallel()
	const many = 10
	side := func(id, parent, request string) string {
		return fmt.Sprintf(`{"type":"assistant","isSidechain":true,"uuid":%q,"parentUuid":%q,"requestId":%q,"timestamp":"2026-02-14T09:00:00Z","message":{"role":"assistant","content":"x","usage":{"input_tokens":12,"output_tokens":5}}}`+"\n", id, parent, request)
	}
	var b strings.Builder
	b.WriteString(user("a", "", "one"))
	for n := range 4 {
		for i := range many {
			parent := ""
			if n > 0 {
				parent = fmt.Sprintf("s%d.%d", i, max(n-2, 0)) // the third and the fourth follow one that is not the last
			}
			b.WriteString(side(fmt.Sprintf("s%d.%d", i, n), parent, fmt.Sprintf("r%d", i)))
		}
	}
	b.WriteString(user("z", "a", "two"))
	path := transcript(t, b.String())
	h := open(t, agents.Claude, path)
	items, _, rep := read(t, h, agents.Position{})
	require.Len(t, items, 4*many+2)
	require.EqualValues(t, 12*many, rep.Usage.InputTokens, "each request once")
	for n, it := range items[1 : 4*many+1] {
		require.Contains(t, it, fmt.Sprintf(`"thread":"s%d.0"`, n%many))
		require.NotContains(t, it, `"parent"`)
	}
	require.NotContains(t, items[4*many+1], `"thread"`)
	require.NotContains(t, items[4*many+1], `"parent"`, "it is no branch")
}

// A copy of a history by another name is the same one.
func TestACopyIsOfItsSession(t *testing.T) {
	t.Parallel()
	const id = "0a1b2c3d-0000-4000-8000-00000000000f"
	dir := t.TempDir()
	text := `{"type":"mode"}` + "\n" + strings.Replace(user("a", "", "one"), "{", `{"sessionId":"`+id+`",`, 1)
	for _, name := range []string{id + ".jsonl", "backup.jsonl"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	h := open(t, agents.Claude, filepath.Join(dir, id+".jsonl"))
	_, at, _ := read(t, h, agents.Position{})
	h = open(t, agents.Claude, filepath.Join(dir, "backup.jsonl"))
	require.Equal(t, id, h.ID)
	items, _, _ := read(t, h, at)
	require.Empty(t, items)
}

func rolloutFile(t *testing.T, dir, id, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rollout-2026-02-14T09-00-00-"+id+".jsonl"), []byte(text), 0o600))
}

// Codex 0.104 copies into a fork all that was said and used before it.
func TestAForkOfCodexWithCopies(t *testing.T) {
	t.Parallel()
	const parent, child, of, own = "01a21502-a0f8-7e50-8b12-ebb748d77550", "01a21502-dda2-76f2-af73-a47567366cdd", "01a21502-a104-7091-abc4-9453cf2cc1e7", "01a21502-f37d-7391-821a-24e68f83e931"
	begins := func(turn string) string {
		return fmt.Sprintf(`{"timestamp":"2026-02-14T09:00:00Z","type":"event_msg","payload":{"type":"task_started","turn_id":%q}}`+"\n", turn)
	}
	used := func(total, last int) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":600,"output_tokens":%d},"last_token_usage":{"input_tokens":%d}}}}`+"\n", total, total/10, last)
	}
	dir := t.TempDir()
	rolloutFile(t, dir, child, fmt.Sprintf(`{"type":"session_meta","payload":{"id":%q,"forked_from_id":%q}}`+"\n"+`{"type":"session_meta","payload":{"id":%q}}`+"\n", child, parent, parent)+
		begins(of)+used(1000, 1000)+used(3000, 2000)+begins(own)+used(3000, 2000)+used(4000, 1000))
	_, _, rep := read(t, open(t, agents.Codex, dir), agents.Position{})
	require.Equal(t, session.Usage{InputTokens: 1000, OutputTokens: 100}, rep.Usage)
}

// Codex 0.104 names the parent of a subagent in its source only, and that may be a subagent itself.
func TestSubagentsOfCodex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said := func(id string) string {
		return fmt.Sprintf(`{"timestamp":"2026-02-14T09:00:00Z","type":"response_item","payload":{"type":"message","id":"m%s","role":"user","content":"said by %s"}}`+"\n", id, id)
	}
	meta := func(id, source string) string {
		return fmt.Sprintf(`{"type":"session_meta","payload":{"id":%q,"source":%s}}`+"\n", id, source)
	}
	spawned := func(by string) string {
		return fmt.Sprintf(`{"subagent":{"thread_spawn":{"parent_thread_id":%q,"depth":1}}}`, by)
	}
	rolloutFile(t, dir, "a", meta("root", `"cli"`)+said("root"))
	rolloutFile(t, dir, "b", meta("deep", spawned("sub"))+said("deep"))
	rolloutFile(t, dir, "c", meta("sub", spawned("root"))+said("sub"))
	rolloutFile(t, dir, "d", meta("one", spawned("two"))+said("one"))
	rolloutFile(t, dir, "e", meta("two", spawned("one"))+said("two")) // a circle ends
	l, err := agents.Open(t.Context(), agents.Codex, t.TempDir(), dir)
	require.NoError(t, err)
	defer l.Close()
	require.Len(t, l.Histories, 3)
	for i := range l.Histories {
		if h := &l.Histories[i]; h.ID == "root" {
			items, _, _ := read(t, h, agents.Position{})
			require.Len(t, items, 6)
			all := strings.Join(items, "\n")
			require.Contains(t, all, `"content":"said by deep","thread":"deep"`)
			require.Contains(t, all, `"content":"said by sub","thread":"sub"`)
		}
	}
}

// Before records had a payload, the first line alone had a time, and what was said stood alone.
func TestOldRollouts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rolloutFile(t, dir, "old", `{"id":"old","timestamp":"2025-05-28T20:26:00Z","instructions":null,"git":{}}`+"\n"+
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"<ide_opened_file>x</ide_opened_file>\nfirst words"}]}`+"\n")
	h := open(t, agents.Codex, dir)
	head, err := h.Head()
	require.NoError(t, err)
	require.Equal(t, "first words", head.Title)
	_, _, rep := read(t, h, agents.Position{})
	require.Equal(t, time.Date(2025, 5, 28, 20, 26, 0, 0, time.UTC), rep.First)
}

// A title has the words of the person, and not what stands in tags in front of them.
func TestTitles(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		`"<command-name>/clear</command-name>\n<command-args></command-args>"`:                                            "behind",
		`"<ide_selection>a > b</ide_selection> mend <this> line"`:                                                         "mend <this> line",
		`[{"type":"image"},{"type":"text","text":"<ide_opened_file>x</ide_opened_file>"},{"type":"text","text":"words"}]`: "words",
		`"<open without an end"`: "<open without an end",
		`"<b>never closed"`:      "<b>never closed",
		`"<div class=x> html"`:   "<div class=x> html",
	} {
		path := transcript(t, `{"type":"user","message":{"content":`+said+`}}`+"\n"+user("b", "", "behind"))
		head, err := open(t, agents.Claude, path).Head()
		require.NoError(t, err)
		require.Equal(t, want, head.Title, said)
	}
}

// What a symbolic link in a folder leads to is not read, and is named. A path that is neither file nor folder
// is an error.
func TestLinksAreNamed(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	path := transcript(t, user("a", "", "one"))
	for name, to := range map[string]string{"x.jsonl": path, "folder": other, "notes.txt": path} {
		if os.Symlink(to, filepath.Join(dir, name)) != nil {
			t.Skip("no symbolic links here")
		}
	}
	l, err := agents.Open(t.Context(), agents.Claude, t.TempDir(), dir)
	require.NoError(t, err)
	require.Empty(t, l.Histories)
	require.Len(t, l.Left, 2)
	require.ErrorContains(t, l.Left[0], "symbolic links are not followed")
	_, err = agents.Open(t.Context(), agents.Claude, t.TempDir(), os.DevNull)
	require.ErrorContains(t, err, "neither a file nor a folder")
}

// Of two files of one session, as a project that moved leaves them, the larger one is read and the other one named.
func TestTwoFilesOfASession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := user("a", "", "one"), user("b", "a", "two")
	for name, text := range map[string]string{"p1": one, "p2": one + two, "p3": one} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "s.jsonl"), []byte(text), 0o600))
	}
	l, err := agents.Open(t.Context(), agents.Claude, t.TempDir(), dir)
	require.NoError(t, err)
	require.Len(t, l.Histories, 1)
	items, _, _ := read(t, &l.Histories[0], agents.Position{})
	require.Len(t, items, 2)
	require.Len(t, l.Left, 2)
	require.ErrorContains(t, l.Left[0], "is of the same session, and larger")
}

// A position of thousands of subagents, and of IDs of any length, is small.
func TestPositionsAreSmall(t *testing.T) {
	t.Parallel()
	const many = 500
	long := strings.Repeat("u", 1<<20)
	path := transcript(t, strings.Replace(user("a", "", "one"), `"a"`, `"`+long+`"`, 1)+strings.Replace(user("b", long, "two"), `"requestId":""`, "", 1))
	subs := filepath.Join(strings.TrimSuffix(path, ".jsonl"), "subagents")
	require.NoError(t, os.MkdirAll(subs, 0o700))
	line := func(i int) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":"0a1b2c3d-0000-4000-8000-00000000000f","requestId":"req_%022d","timestamp":"2026-02-14T09:00:00Z","message":{"role":"assistant","content":"x","usage":{"input_tokens":10}}}`+"\n", i)
	}
	for i := range many {
		require.NoError(t, os.WriteFile(filepath.Join(subs, fmt.Sprintf("agent-%08x.jsonl", i)), []byte(line(i)), 0o600))
	}
	items, at, _ := read(t, open(t, agents.Claude, path), agents.Position{})
	require.Len(t, items, many+2)
	require.NotContains(t, items[1], "parent", "it follows the first")
	data, err := json.Marshal(at)
	require.NoError(t, err)
	require.Less(t, len(data), 200*many, "7,000 are below the bound of a session's data")
	appendTo(t, filepath.Join(subs, "agent-00000000.jsonl"), line(0))
	items, _, rep := read(t, open(t, agents.Claude, path), at)
	require.Len(t, items, 1)
	require.Zero(t, rep.Usage, "a request that goes on counts once")
}

// Messages of opencode that its clock puts before others are read, and the rest is marked.
func TestOpencodesClockGoesBackwards(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "opencode.db")
	const root = "ses_df4d4f503ffeGmCID4xKCtwOG3"
	insert := func(id string, ms int64) string {
		return fmt.Sprintf(`INSERT INTO message VALUES ('%s','%s',%d,%d,'{"role":"user"}'); INSERT INTO part VALUES ('prt_%s','%s','%s',1,1,'{"type":"text","text":"in %s"}');`, id, root, ms, ms, id, id, root, id)
	}
	database(t, path)
	find := func() *agents.History {
		l, err := agents.Open(t.Context(), agents.OpenCode, t.TempDir(), path)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		return &l.Histories[slices.IndexFunc(l.Histories, func(h agents.History) bool { return h.ID == root })]
	}
	items, at, _ := read(t, find(), agents.Position{})
	require.NotEmpty(t, items)
	db, err := driver.Open(uri(path))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), insert("msg_early", 5))
	require.NoError(t, err)
	require.NoError(t, db.Close())
	settle(t, path)
	r, err := find().Open(at)
	require.NoError(t, err)
	defer r.Close()
	first, err := r.Next(t.Context())
	require.NoError(t, err)
	require.True(t, first[0].Again)
	require.Contains(t, string(first[0].Message.Content), "in msg_early")
}

// What a compressed rollout comes to is bounded by its size.
func TestARolloutThatIsABomb(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	line := []byte(`{"type":"event_msg","payload":{"type":"x"}}` + "\n")
	const lines = 1 << 20
	for range lines {
		_, err = z.Write(line)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.Less(t, b.Len()*(4<<10), lines*len(line), "the test would show nothing")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rollout-2026-02-14T09-00-00-01a20b27-c73d-76c0-a045-5fdf013e47f4.jsonl.zst"), b.Bytes(), 0o600))
	r, err := open(t, agents.Codex, dir).Open(agents.Position{})
	require.NoError(t, err)
	defer r.Close()
	n := 0
	for ; ; n++ {
		if _, err := r.Next(t.Context()); err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
	}
	require.Less(t, n, lines)
}

// What follows a record that cannot be read follows it, and is no branch.
func TestNoBranchAfterABadLine(t *testing.T) {
	t.Parallel()
	long := `{"parentUuid":"b","type":"user","uuid":"c","message":{"content":"` + strings.Repeat("x", 9<<20) + `"}}` + "\n"
	path := transcript(t, "\xef\xbb\xbf"+user("a", "", "one")+`{"parentUuid":"a","type":"us`+"\n"+user("b", "torn", "two")+long+user("d", "c", "three")+user("e", "a", "four"))
	items, _, rep := read(t, open(t, agents.Claude, path), agents.Position{})
	require.Equal(t, 2, rep.Bad, "the byte order mark is no damage")
	require.Len(t, items, 6)
	for _, n := range []int{0, 2, 4} {
		require.NotContains(t, items[n], `"parent"`, n)
	}
	require.Contains(t, items[5], `"parent":"a"`)
}
