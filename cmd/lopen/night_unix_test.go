//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A line is one of a log that was written with --log-format json.
type line map[string]any

func (l line) text(key string) string { s, _ := l[key].(string); return s }
func (l line) num(key string) int     { f, _ := l[key].(float64); return int(f) }

// fields are all that a line of the log may have beside time, level and message. A name
// means the same in each line.
var fields = strings.Fields(`session evidence agent agent_session problem woken module task attempt iteration outcome exit signal check_exit failure passes remembered
	changed input_tokens output_tokens cached_tokens cost_usd duration_ms starts done total command check reason text until
	seq epoch event last_exit saves triggers entries bytes commit_us durable_us files snapshots read held
	checkpoint number before undo state force contested paths kept tasks from name for_good strategy changes
	error path class os_error durable process_group fault rule repair free_bytes file`)

// levels are those of the lines that tell a night.
var levels = map[string]string{
	"store created": "info", "the machine may fall asleep": "debug", "session created": "info", "session opened": "info", "session closed": "info", "session paused": "info",
	"session complete": "info", "session forked": "info", "session renamed": "info", "session pinned": "info", "session unpinned": "info",
	"session pruned": "info", "session restored": "info", "session deleted": "info", "session recovered": "info", "session accepted": "info",
	"edit accepted": "info", "edit discarded": "info", "pause requested": "info",
	"checkpoint made": "info", "checkpoint pinned": "info", "checkpoint removed": "info", "rewind begins": "info", "rewind ends": "info",
	"run begins": "info", "run ends": "info", "task begins": "info", "task ends": "info", "task used up its attempts": "info",
	"component complete": "info", "check before the first task": "info", "wait begins": "info", "wait ends": "info",
	"agent set aside": "info", "agent session continues": "info", "a person is needed": "warn", "budget reached": "info",
	"check of a task that was cut off": "info", "check after a task failed": "info", "task not set back": "info",
	"circuit breaker opens": "warn", "circuit breaker closes": "info", "wait ended on request": "info",
	"commit": "debug", "published": "debug", "documents are read when they are asked for": "debug", "assessment is not stored: its scope changed meanwhile": "info",
	"paused on a storage error": "error", "goes on after a storage error": "info",
}

// night is a project in which agents work, and the log of all that is done there.
type night struct {
	*testing.T
	dir, log string
	lopen    func(code int, args ...string) string
}

func (n *night) lines() (all []line) {
	data, err := os.ReadFile(n.log)
	require.NoError(n, err)
	for text := range bytes.Lines(data) {
		var l line
		if json.Unmarshal(text, &l) == nil { // a reader beside the writer may see half a line
			all = append(all, l)
		}
	}
	return all
}

// linesOf are the lines with one of the messages, of one session.
func linesOf(all []line, id string, messages ...string) (some []line) {
	for _, l := range all {
		if l.text("session") == id && slices.Contains(messages, l.text("message")) {
			some = append(some, l)
		}
	}
	return some
}

// each makes a text of each line, with the named fields in it.
func each(all []line, names ...string) (texts []string) {
	for _, l := range all {
		var t []string
		for _, name := range names {
			if v, ok := l[name]; ok {
				t = append(t, fmt.Sprint(v))
			} else {
				t = append(t, "-")
			}
		}
		texts = append(texts, strings.Join(t, " "))
	}
	return texts
}

// query is what the command prints for a --jq query, a line each.
func (n *night) query(query string, args ...string) []string {
	n.Helper()
	return strings.Split(strings.TrimSpace(n.lopen(0, append(args, "--jq", query)...)), "\n")
}

// nightAgent is a stand-in whose tasks end in all the ways that there are.
const nightAgent = `cat >/dev/null
echo "$LOPEN_TASK $LOPEN_ATTEMPT" >>work
case $LOPEN_TASK-$LOPEN_ATTEMPT in
red-1) exit 0 ;;
red-2) exit 3 ;;
esac
[ -e "been-$LOPEN_TASK" ] && exit 0
touch "been-$LOPEN_TASK"
case $LOPEN_TASK in
limited) printf '{"retryAt":"2020-01-01T00:00:00Z","inputTokens":5,"outputTokens":2,"costUSD":0.25}' >"$LOPEN_METRICS_FILE"; exit 75 ;;
locked) chmod 500 ".lopen/sessions/$LOPEN_SESSION_ID" ;;
denied) until grep -q 'paused on a storage error' ../tmp/night.log; do sleep 0.05; done ;; # when it was quiet
killed) kill -9 $LOPEN_TEST_PID; exit 1 ;;
esac
exit 0
`

// waitForCommand waits until what a run that was killed had started has ended, and its keeper.
func waitForCommand(t *testing.T, dir string) {
	t.Helper()
	locks, err := filepath.Glob(filepath.Join(dir, ".lopen/sessions/*/.child"))
	require.NoError(t, err)
	require.NotEmpty(t, locks)
	for _, name := range locks {
		f, err := os.Open(name)
		require.NoError(t, err)
		require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
		require.NoError(t, f.Close())
	}
}

// TestTheLogHasTheWholeNight works through a plan whose tasks fail, are limited,
// meet a denied write and a kill, and does what a person does on the morning after. What
// the log alone tells must be what the session's own record says.
func TestTheLogHasTheWholeNight(t *testing.T) {
	t.Parallel()
	dir, lopen, process := asNobody(t)
	n := &night{T: t, dir: dir, log: filepath.Join(filepath.Dir(dir), "tmp", "night.log"), lopen: lopen}
	logged := func(args ...string) []string {
		return append([]string{"--log-level", "debug", "--log-format", "json", "--log-file", n.log}, args...)
	}
	plan := "- [ ] plain\n- [ ] red\n- [ ] limited\n- [ ] locked\n- [ ] denied\n- [ ] killed\n"
	for name, text := range map[string]string{"TODO.md": plan, "agent.sh": nightAgent, "work": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o666))
	}
	lopen(0, logged("plan", "create", "m", "--from", "TODO.md")...)

	// The run, until its agent kills it. Who looks after the machine takes the pause away.
	run := process(logged("run", "m", "--check", `[ "$LOPEN_TASK-$LOPEN_ATTEMPT" != red-1 ]`, "--", "sh", "agent.sh")...)
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	run.Env = append(run.Env, shortWaits+"=50ms")
	require.NoError(t, run.Start())
	t.Cleanup(func() { _ = run.Process.Kill() })
	require.Eventually(t, func() bool {
		for _, l := range n.lines() {
			if l.text("level") == "error" {
				return os.Chmod(filepath.Join(dir, ".lopen/sessions", l.text("session")), 0o700) == nil
			}
		}
		return false
	}, time.Minute, 5*time.Millisecond)
	require.Error(t, run.Wait(), out.String())
	require.Equal(t, -1, run.ProcessState.ExitCode(), out.String())
	waitForCommand(t, dir)
	lopen(0, logged("run", "m")...)

	// The morning after.
	id := n.query(".[0].id", "session", "list")[0]
	lopen(0, logged("checkpoint", "rewind", "before:limited", "--yes")...)
	lopen(0, logged("undo", "--yes")...)
	lopen(0, logged("checkpoint", "create", "--pin")...)
	lopen(0, logged("session", "rename", id, "the night")...)
	lopen(0, logged("session", "pin", id)...)
	lopen(0, logged("session", "unpin", id)...)
	fork := strings.TrimSpace(lastLine(lopen(0, logged("session", "fork", id, "--at", "3")...)))
	lopen(0, logged("session", "delete", fork, "--yes")...)

	all := n.lines()
	for _, l := range all {
		level, known := levels[l.text("message")]
		require.True(t, known || l.text("message") == "said", "%v", l)
		if known {
			require.Equal(t, level, l.text("level"), "%v", l)
		}
		for name := range l {
			require.Contains(t, append(fields, "time", "level", "message"), name, "%v", l)
		}
	}
	n.runs(all, id)
	n.pause(all, id)
	n.records(all, id)
	n.tasks(all, id)
	n.checkpoints(all, id)
	require.Equal(t, []string{"session renamed the night", "session pinned -", "session unpinned -"},
		each(linesOf(all, id, "session renamed", "session pinned", "session unpinned"), "message", "name"))
	require.Equal(t, []string{"session forked " + id + " 3", "session closed - -", "session deleted - -"},
		each(linesOf(all, fork, "session forked", "session closed", "session deleted"), "message", "from", "seq"))
}

// runs are two, of which the first has no end: the next one finds that it crashed.
func (n *night) runs(all []line, id string) {
	require.Equal(n, []string{
		"session created - - -", "run begins - - -",
		"session opened - - crashed", "run begins - - -", "session complete - - -", "run ends 0 complete -", "session closed - - -",
		"session opened - - complete", "session closed - - -", // the rewind leaves it paused
		"session opened - - paused", "session closed - - -",
		"session opened - - complete", "session closed - - -",
	}, each(linesOf(all, id, "session created", "session opened", "run begins", "session complete", "run ends", "session closed"), "message", "exit", "reason", "last_exit"))
}

// pause is one, with its path and its cause, and it ends.
func (n *night) pause(all []line, id string) {
	paused := linesOf(all, id, "paused on a storage error", "goes on after a storage error")
	require.Equal(n, []string{"denied permission denied", "- -"}, each(paused, "class", "os_error"))
	require.True(n, strings.HasPrefix(paused[0].text("path"), filepath.Join(n.dir, ".lopen/sessions", id)+"/"), "%v", paused[0])
	require.Contains(n, paused[0].text("error"), "permission denied")
	require.Positive(n, paused[1]["duration_ms"])
}

// records are those of the journal, each committed and the last one published.
func (n *night) records(all []line, id string) {
	seqs := []string{"1"} // which the creation wrote
	seqs = append(seqs, each(linesOf(all, id, "commit"), "seq")...)
	require.Equal(n, n.query(".[].seq", "session", "log", id), seqs)
	published := linesOf(all, id, "published")
	require.NotEmpty(n, published)
	require.Equal(n, seqs[len(seqs)-1], each(published, "seq")[len(published)-1])
	for _, l := range published {
		require.Positive(n, l.num("bytes"), "%v", l)
	}
}

// tasks began and ended as the journal says of its attempts. The end of the one that
// was killed is told by the next run.
func (n *night) tasks(all []line, id string) {
	query := `.[].attempts[]? | [.task, .attempt, .iteration, .then, .exit, .check.exit, .inputTokens, .outputTokens, .costUSD, (.files | length)] | map(if . == null then "-" else tostring end) | join(" ")`
	ends := linesOf(all, id, "task ends")
	require.Equal(n, n.query(query, "session", "log", id),
		each(ends, "task", "attempt", "iteration", "outcome", "exit", "check_exit", "input_tokens", "output_tokens", "cost_usd", "changed"))
	require.Equal(n, []string{
		"begins plain 1", "ends plain 1", "begins red 1", "ends red 1", "begins red 2", "ends red 2", "begins red 3", "ends red 3",
		"begins limited 1", "ends limited 1", "begins limited 1", "ends limited 1", "begins locked 1", "ends locked 1",
		"begins denied 1", "ends denied 1", "begins killed 1", "ends killed 1", "begins killed 1", "ends killed 1",
	}, trimmed(each(linesOf(all, id, "task begins", "task ends"), "message", "task", "attempt"), "task "))
	require.Equal(n, []string{"done", "failed", "failed", "done", "waits", "done", "done", "done", "killed", "done"}, each(ends, "outcome"))
	require.Equal(n, []string{`the check "[ \"$LOPEN_TASK-$LOPEN_ATTEMPT\" != red-1 ]": exit 1`, "exit 3"}, each(ends[1:3], "failure"))
	for _, l := range ends {
		if l.text("outcome") != "killed" { // nobody saw how long that took
			require.Positive(n, l["duration_ms"], "%v", l)
		}
	}
	require.Len(n, linesOf(all, id, "wait begins", "wait ends"), 2)
	require.Equal(n, n.query(`.progress | "\(.done) \(.total)"`, "session", "show", id), each(linesOf(all, id, "run ends"), "done", "total"))
}

func trimmed(all []string, prefix string) []string {
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], prefix)
	}
	return all
}

// checkpoints are those that there are, and the rewinds those of the journal.
func (n *night) checkpoints(all []line, id string) {
	query := `.[] | [.id, .reason, (.task // ""), .seq, .changed, .bytes] | map(tostring) | join(" ")`
	want := n.query(query, "checkpoint", "list")
	got := each(linesOf(all, id, "checkpoint made"), "checkpoint", "reason", "task", "seq", "changed", "bytes")
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(n, want, got)
	query = `.[] | select(.rewind) | [.event, .rewind.to, (.rewind.before // "-")] | join(" ")`
	var rewinds []string
	for _, l := range linesOf(all, id, "rewind begins") {
		rewinds = append(rewinds, "rewind-begin "+l.text("checkpoint")+" "+l.text("before"), "rewind-end "+l.text("checkpoint")+" "+l.text("before"))
	}
	require.Equal(n, n.query(query, "session", "log", id), rewinds)
	require.Equal(n, []string{"begins false", "ends -", "begins true", "ends -"}, trimmed(each(linesOf(all, id, "rewind begins", "rewind ends"), "message", "undo"), "rewind "))
	require.Len(n, linesOf(all, id, "checkpoint pinned"), 1)
}
