//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gitInit makes a repository in a folder, with a first commit of what is there.
func gitInit(t testing.TB, dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.name", "a"}, {"config", "user.email", "a@b"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", "begin"}} {
		gitIn(t, dir, args...)
	}
}

func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}

// workAgent prints what claude prints. At the first start of some tasks it fails, is limited, or
// commits what it did. It notes each start, and whether it ended well.
const workAgent = `#!/bin/sh
[ "$1 $2" != 'auth status' ] || exit 0
cat >/dev/null
key=$LOPEN_MODULE-$LOPEN_TASK_ID
echo "begin $key" >>"$S/log"
end='"subtype":"success","num_turns":1,"session_id":"x","total_cost_usd":0.25,"usage":{"input_tokens":100,"output_tokens":50}'
echo '{"type":"system","subtype":"init","session_id":"x","model":"claude-opus-4-8"}'
echo '{"type":"assistant","message":{"model":"claude-opus-4-8","content":[{"type":"text","text":"I work on '"$key"'."}]},"session_id":"x"}'
case $LOPEN_TASK in
limited)
	if mkdir "$S/limited-$key" 2>/dev/null; then
		echo "mood $key" >>"$S/log"
		echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":'$(($(date +%s) + 1))',"rateLimitType":"five_hour"},"session_id":"x"}'
		echo '{"type":"result","is_error":true,"api_error_status":429,"result":"limit",'"$end"'}'
		exit 1
	fi
	;;
fails)
	if mkdir "$S/failed-$key" 2>/dev/null; then
		echo "mood $key" >>"$S/log"
		echo half >"half-$key"
		echo '{"type":"result","is_error":false,"result":"done",'"$end"'}'
		exit
	fi
	;;
esac
sleep 0.03
mkdir -p done
rm -f "half-$key"
echo "$LOPEN_TASK" >"done/$key"
if [ "$LOPEN_TASK" = commits ] && [ -n "$(git status --porcelain -- "done/$key")" ]; then
	git add "done/$key" && git commit -qm "by the agent: $key" -- "done/$key"
fi
echo '{"type":"result","is_error":false,"result":"done",'"$end"'}'
echo "well $key" >>"$S/log"
`

// TestWorkKilled kills a work on three modules with SIGKILL at random moments and starts the same
// command again until it has ended, as often as -kills says. Whatever the moments: each task is
// done and has one commit, no kill makes more tasks run again than were in progress, and the
// branches can be merged in the order of the modules.
func TestWorkKilled(t *testing.T) {
	t.Parallel()
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	all := *kills
	if testing.Short() {
		all = 1
	}
	t.Logf("go test -run TestWorkKilled ./cmd/lopen -kills %d -seed %d", all, s)
	rnd := rand.New(rand.NewPCG(s, 2))
	for left, round := all, 1; left > 0; round++ {
		left -= workRound(t, rnd, min(left, 5))
		require.Less(t, round, all+50, "the works end before they can be killed")
	}
}

const workJobs = 2

var workTasks = []string{"plain", "fails", "limited", "commits"}

func workRound(t *testing.T, rnd *rand.Rand, budget int) (killed int) {
	dir, state := filepath.Join(t.TempDir(), "project"), t.TempDir()
	put := func(mode os.FileMode, text string, name ...string) {
		path := filepath.Join(append([]string{dir}, name...)...)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	put(0o600, ".xdg\n.home\nTODO.md\n", ".gitignore")
	gitInit(t, dir)
	for module, front := range map[string]string{"auth": "priority: 2", "db": "priority: 1", "ui": "after: auth"} {
		put(0o600, "- [ ] "+strings.Join(workTasks, "\n- [ ] ")+"\n", "TODO.md")
		must(t, dir, "plan", "create", module, "--from", "TODO.md")
		path := filepath.Join(".lopen", "modules", module, "plan.md")
		text, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		put(0o600, "---\n"+front+"\n---\n"+string(text), path)
	}
	bin := filepath.Join(state, "bin", "claude")
	require.NoError(t, os.MkdirAll(filepath.Dir(bin), 0o755))
	require.NoError(t, os.WriteFile(bin, []byte(workAgent), 0o755))
	var printed bytes.Buffer
	for {
		cmd := command(t, dir, "work", "--jobs", fmt.Sprint(workJobs), "--agent", "claude", "--check", `test -e "done/$LOPEN_MODULE-$LOPEN_TASK_ID"`)
		cmd.Env = append(cmd.Env, "S="+state, "PATH="+filepath.Dir(bin)+string(os.PathListSeparator)+os.Getenv("PATH"), shortWaits+"=30ms")
		cmd.Stdout, cmd.Stderr = &printed, &printed
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if killed < budget {
			timer := time.NewTimer(time.Duration(rnd.Int64N(int64(1500 * time.Millisecond))))
			select {
			case <-timer.C:
				require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
			case err := <-ended:
				timer.Stop()
				ended <- err
			}
		}
		err := <-ended
		var exit *exec.ExitError
		if err == nil {
			checkWork(t, dir, state, killed, printed.String())
			return killed
		}
		require.True(t, errors.As(err, &exit) && exit.ExitCode() == -1, "killed, or done: %v\n%s", err, printed.String())
		fmt.Fprintf(&printed, "KILLED\n")
		killed++
	}
}

// checkWork is what a person finds in the morning.
func checkWork(t *testing.T, dir, state string, killed int, printed string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(state, "log"))
	require.NoError(t, err)
	starts := map[string]int{}
	begun, moods := 0, 0
	for line := range strings.Lines(string(log)) {
		what, key, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "begin":
			starts[key]++
			begun++
		case "mood":
			moods++
		}
	}
	tasks := 3 * len(workTasks)
	require.LessOrEqual(t, begun, tasks+moods+workJobs*killed, "more ran again than was in progress: %v\n%s\n%s", starts, log, printed)

	// Each task has one commit: its own, or the agent's.
	branches := map[string]string{}
	for _, branch := range strings.Fields(gitIn(t, dir, "branch", "--list", "lopen/*", "--format=%(refname:short)")) {
		branches[moduleOf(strings.TrimPrefix(branch, "lopen/"))] = branch
	}
	require.Len(t, branches, 3, printed)
	for module, branch := range branches {
		plan, err := os.ReadFile(filepath.Join(dir, ".lopen", "modules", module, "plan.md"))
		require.NoError(t, err)
		require.Equal(t, len(workTasks), strings.Count(string(plan), "- [x] "), "%s\n%s", plan, printed)
		for _, task := range workTasks {
			want := strings.TrimPrefix(branch, "lopen/") + " " + task + " " + task
			if task == "commits" {
				want = "by the agent: " + module + "-commits"
			}
			got := gitIn(t, dir, "log", "--format=%(trailers:key=Lopen-Session,valueonly,separator=) %(trailers:key=Lopen-Task,valueonly,separator=) %s", branch, "--", "done/"+module+"-"+task)
			require.Equal(t, want, strings.TrimSpace(got), "the commits of %s\n%s", task, printed)
		}
	}

	// They merge, in the order in which the modules come.
	for _, module := range []string{"db", "auth", "ui"} {
		gitIn(t, dir, "merge", "-q", "--no-edit", branches[module])
	}
	require.Empty(t, gitIn(t, dir, "status", "--porcelain"))
	for module := range branches {
		for _, task := range workTasks {
			text, err := os.ReadFile(filepath.Join(dir, "done", module+"-"+task))
			require.NoError(t, err)
			require.Equal(t, task+"\n", string(text))
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "half-*"))
	require.NoError(t, err)
	require.Empty(t, left, "what a failed attempt left was committed")
	for line := range strings.Lines(must(t, dir, "session", "list", "--jq", `.[] | [.module, .status, .progress.done] | join(" ")`)) {
		require.Regexp(t, `^(auth|db|ui) complete 4$`, strings.TrimSpace(line), printed)
	}
}
