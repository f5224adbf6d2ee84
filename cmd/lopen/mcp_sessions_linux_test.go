package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// TestMCPWithoutASession: the newest session is often the agent's own, in which nothing failed. last_failure looks
// at all sessions, and the other tools name them.
func TestMCPWithoutASession(t *testing.T) {
	t.Parallel()
	c := newToolClient(t, t.TempDir())
	store, _, err := lifecycle.Init(c.dir, lifecycle.Options{})
	require.NoError(t, err)
	defer store.Close(t.Context())
	now := time.Now()
	attempt := func(task, then string, ago time.Duration) record.Attempt {
		return record.Attempt{Task: task, Attempt: 1, Then: then, StartedAt: now.Add(-ago - time.Second), EndedAt: now.Add(-ago)}
	}
	ask := func(tool string, args map[string]any) (text string, found lastFailure) {
		t.Helper()
		text = c.ask(&found, tool, args)
		return text, found
	}
	require.Contains(t, c.ask(nil, "last_failure", nil), "no session here yet")
	imported := keep(t, store, "old", session.OriginImport, attempt("one", record.Failed, time.Second))
	require.Contains(t, c.ask(nil, "last_failure", nil), "imported ones, which have to be named")

	oldest := keep(t, store, "a", session.OriginRun, attempt("one", record.Failed, 50*time.Minute))
	newer := keep(t, store, "b", session.OriginRun, attempt("one", record.Failed, 3*time.Minute), attempt("two", record.Failed, 2*time.Minute))
	older := keep(t, store, "a", session.OriginRun, attempt("one", record.Failed, 30*time.Minute), attempt("other", record.Failed, 40*time.Minute))
	own := keep(t, store, "own", session.OriginHook, attempt("prompt-1", record.Interrupted, time.Minute), attempt("prompt-2", record.Done, time.Second))
	text, found := ask("last_failure", nil)
	require.Equal(t, newer, found.Session)
	require.Equal(t, "two", found.Attempt.Task)
	require.False(t, found.DoneSince)
	var others []string
	for _, o := range found.Others {
		others = append(others, o.ID)
	}
	require.Equal(t, []string{own, older, oldest}, others) // the one that was updated last comes first
	require.Equal(t, "own", found.Others[0].Module)
	require.Equal(t, session.OriginHook, found.Others[0].Origin)
	require.WithinDuration(t, now, found.Others[0].UpdatedAt, time.Hour)
	require.Contains(t, text, "session "+newer+" is the one with the newest failure; other sessions are "+own+", "+older+", "+oldest+"\n")

	_, found = ask("last_failure", map[string]any{"task": "other"}) // which one session alone has
	require.Equal(t, older, found.Session)
	require.Contains(t, c.ask(nil, "last_failure", map[string]any{"task": "nowhere"}), "nowhere")
	text, found = ask("last_failure", map[string]any{"task": "prompt-2"})
	require.Contains(t, text, "no attempt at prompt-2 in 1 session failed")
	require.Nil(t, found.Attempt)
	require.Len(t, found.Others, 4)
	_, found = ask("last_failure", map[string]any{"session": own})
	require.Equal(t, record.Interrupted, found.Attempt.Then)
	require.Empty(t, found.Others)
	_, found = ask("last_failure", map[string]any{"session": imported})
	require.Equal(t, "one", found.Attempt.Task)

	must(t, c.dir, "checkpoint", "create", "--session", own)
	for tool, args := range map[string]map[string]any{"session_log": {"task": "other"}, "changes_since": {"checkpoint": "before:other"}} {
		text = c.ask(nil, tool, args) // the newest one has no such task
		require.Contains(t, text, "other\"")
		require.Contains(t, text, "\nsession "+own+" is the newest one, which is an agent's own; other sessions are ")
	}

	for tool, args := range map[string]map[string]any{"session_log": {}, "changes_since": {"checkpoint": "last"}} {
		text, found = ask(tool, args)
		require.Equal(t, own, found.Session)
		require.Len(t, found.Others, 3)
		require.Contains(t, text, "session "+own+" is the newest one, which is an agent's own; other sessions are ", tool)
		args["session"] = own
		text, found = ask(tool, args)
		require.Equal(t, own, found.Session)
		require.Empty(t, found.Others)
		require.NotContains(t, text, "other sessions")
	}

	keep(t, store, "c", session.OriginRun, attempt("two", record.Done, time.Second)) // another module's
	_, found = ask("last_failure", nil)
	require.False(t, found.DoneSince)
	keep(t, store, "b", session.OriginRun, attempt("two", record.Done, 3*time.Minute)) // before it failed
	_, found = ask("last_failure", nil)
	require.False(t, found.DoneSince)
	keep(t, store, "b", session.OriginRun, attempt("two", record.Done, time.Minute))
	_, found = ask("last_failure", nil)
	require.Equal(t, newer, found.Session)
	require.True(t, found.DoneSince)
}

// The logs of many sessions are not all read.
func TestMCPLooksAtTheNewestSessions(t *testing.T) {
	t.Parallel()
	c := newToolClient(t, t.TempDir())
	store, _, err := lifecycle.Init(c.dir, lifecycle.Options{})
	require.NoError(t, err)
	defer store.Close(t.Context())
	keep(t, store, "a", session.OriginRun, record.Attempt{Task: "one", Attempt: 1, Then: record.Failed, StartedAt: time.Now(), EndedAt: time.Now()})
	for range maxLooked {
		keep(t, store, "b", session.OriginRun)
	}
	var found lastFailure
	text := c.ask(&found, "last_failure", nil)
	require.Nil(t, found.Attempt)
	require.Equal(t, "only the 100 newest of 101 sessions were looked at: name another one", found.Cut)
	require.Contains(t, text, found.Cut)
	require.Contains(t, text, "no attempt in 100 sessions failed")
	require.Contains(t, text, "the newest sessions are b-")
	require.Len(t, found.Others, maxNamed)
}

// It works inside a run, while somebody holds the session, and with one that is damaged; without a
// store it says what to type.
func TestMCPAnywhere(t *testing.T) {
	t.Parallel()
	c := newToolClient(t, t.TempDir())
	for tool, args := range map[string]map[string]any{"session_log": nil, "last_failure": nil, "search": {"query": "x"}, "changes_since": {"checkpoint": "last"}} {
		require.Contains(t, c.ask(nil, tool, args), "lopen init")
	}
	must(t, c.dir, "init") // and it need not be started again
	require.Contains(t, c.ask(nil, "session_log", nil), "session")

	dir := toolProject(t)
	folder := sessionFolder(t, dir, "m")
	lock, err := os.OpenFile(filepath.Join(dir, folder, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	c = newToolClient(t, dir, "LOPEN_SESSION_ID="+filepath.Base(folder))
	var failure lastFailure
	require.Contains(t, c.ask(&failure, "last_failure", nil), "FAIL: TestIt")
	var changes changesSince
	c.ask(&changes, "changes_since", map[string]any{"checkpoint": "last"})

	logs, err := filepath.Glob(filepath.Join(dir, folder, "journal-*"))
	require.NoError(t, err)
	data, err := os.ReadFile(logs[0])
	require.NoError(t, err)
	at := bytes.Index(data, []byte(`{"seq":5,`)) // of a record, and not of a note between two
	require.Positive(t, at)
	copy(data[at+20:], "damaged damaged damaged damaged damaged")
	require.NoError(t, os.WriteFile(logs[0], data, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, folder, "state.json"), []byte("garbage"), 0o600))
	var page logPage
	require.Contains(t, c.ask(&page, "session_log", nil), "lopen session recover")
	require.NotEmpty(t, page.Records) // what is intact
	require.Contains(t, c.ask(&failure, "last_failure", nil), "lopen session recover")
	require.NotNil(t, failure.Attempt)
	require.DirExists(t, filepath.Join(dir, folder))
}

// damageRecord damages a record in a session's log.
func damageRecord(t *testing.T, folder string, seq uint64) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(folder, "journal-*"))
	require.NoError(t, err)
	for _, name := range logs {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		if at := bytes.Index(data, fmt.Appendf(nil, `{"seq":%d,`, seq)); at >= 0 {
			data[at+40] ^= 1
			require.NoError(t, os.WriteFile(name, data, 0o600))
			return
		}
	}
	require.Fail(t, "no such record", seq)
}

// TestMCPNamesDamage damages the record of the last attempt: the one before it is not returned as if it were the
// last, neither in the text nor in the data.
func TestMCPNamesDamage(t *testing.T) {
	t.Parallel()
	dir := toolProject(t)
	var seq uint64
	require.NoError(t, json.Unmarshal([]byte(must(t, dir, "session", "log", "--jq", "[.[] | select(.attempts)][-1].seq")), &seq))
	c := newToolClient(t, dir)
	var whole lastFailure
	c.ask(&whole, "last_failure", nil)
	require.Empty(t, whole.Warnings)
	damageRecord(t, filepath.Join(dir, sessionFolder(t, dir, "m")), seq)

	warning := fmt.Sprintf("warning: of session %s record %d cannot be read: lopen session verify %s", whole.Session, seq, whole.Session)
	named := func(text string, warnings []string) {
		t.Helper()
		require.Equal(t, []string{warning}, warnings)
		require.True(t, strings.HasPrefix(text, warning+"\n"), text)
	}
	var failure lastFailure
	text := c.ask(&failure, "last_failure", nil)
	named(text, failure.Warnings)
	require.Less(t, failure.Attempt.Iteration, whole.Attempt.Iteration)
	for _, args := range []map[string]any{{"limit": 1}, {"task": "task-two"}} {
		var page logPage
		text = c.ask(&page, "session_log", args)
		named(text, page.Warnings)
	}

	require.Contains(t, c.ask(nil, "session_log", map[string]any{"seq": seq}), "damaged: record")

	chain := filepath.Join(dir, ".lopen/checkpoints/main.jsonl")
	data, err := os.ReadFile(chain)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(chain, data, 0o600))
	var changes changesSince
	text = c.ask(&changes, "changes_since", map[string]any{"checkpoint": "1"})
	require.NotEmpty(t, changes.Warnings)
	require.True(t, strings.HasPrefix(text, "warning: "), text)
	require.Contains(t, text, changes.Warnings[0])
}

// What warnings have no room are counted.
func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	lines := warned(strings.Repeat(strings.Repeat("x", 1000)+"\n\n", 100))
	require.Len(t, lines, 9)
	require.Equal(t, "... and 92 more lines of warnings", lines[8])
	require.Equal(t, []string{"a", "b"}, warned("a\nb\n"))
}

// SIGTERM ends the server, also one whose client neither writes nor reads.
func TestMCPEnds(t *testing.T) {
	t.Parallel()
	c := newToolClient(t, t.TempDir())
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	_ = c.Wait()
	_ = c.Close()
	require.Zero(t, c.cmd.ProcessState.ExitCode(), c.stderr)
}
