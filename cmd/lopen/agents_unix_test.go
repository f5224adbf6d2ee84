//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent/mock"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

var realAgents = flag.String("agents", "", "`DIR` whose node_modules has the real agents, for TestRealAgents: make agents")

// A realAgent is what differs between the agents that people have, seen from outside.
type realAgent struct {
	name  string
	login string // what a run says when there is none
	// setup writes the agent's own configuration, and returns its environment.
	setup func(t *testing.T, home, url string) []string
	write func(dir, file string) *mock.Tool
	look  func(dir string) *mock.Tool // changes nothing
	limit func(until time.Time) *mock.Error
	codes map[int]string // error bodies
	busy  int            // the status of an overload
}

func anthropicBody(kind, text string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, text)
}

var anthropicBodies = map[int]string{
	http.StatusUnauthorized: anthropicBody("authentication_error", "invalid x-api-key"),
	http.StatusNotFound:     anthropicBody("not_found_error", "model: none"),
	529:                     anthropicBody("overloaded_error", "Overloaded"),
}

var claudeAgent = realAgent{
	name: "claude", login: "claude auth login", codes: anthropicBodies, busy: 529,
	setup: func(_ *testing.T, _, url string) []string {
		return []string{"ANTHROPIC_BASE_URL=" + url, "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-none", "DISABLE_AUTOUPDATER=1"}
	},
	write: func(dir, file string) *mock.Tool {
		return &mock.Tool{Name: "Write", Input: map[string]any{"file_path": filepath.Join(dir, file), "content": file}}
	},
	look: func(dir string) *mock.Tool {
		return &mock.Tool{Name: "Read", Input: map[string]any{"file_path": filepath.Join(dir, "TODO.md")}}
	},
	limit: func(until time.Time) *mock.Error {
		at := strconv.FormatInt(until.Unix(), 10)
		return &mock.Error{Status: http.StatusTooManyRequests, Body: anthropicBody("rate_limit_error", "This request would exceed your account's rate limit."), Header: map[string]string{
			"retry-after": "7200", "anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": at,
			"anthropic-ratelimit-unified-representative-claim": "five_hour",
			"anthropic-ratelimit-unified-5h-status":            "rejected", "anthropic-ratelimit-unified-5h-reset": at,
		}}
	},
}

var codexAgent = realAgent{
	name: "codex", login: "codex login", busy: http.StatusServiceUnavailable,
	codes: map[int]string{
		http.StatusUnauthorized:       `{"error":{"type":"invalid_request_error","code":"invalid_api_key","message":"Incorrect API key provided."}}`,
		http.StatusNotFound:           "{\"error\":{\"type\":\"invalid_request_error\",\"code\":\"model_not_found\",\"message\":\"The model `none` does not exist or you do not have access to it.\"}}",
		http.StatusServiceUnavailable: `{"error":{"type":"server_is_overloaded","code":"server_is_overloaded","message":"Our servers are currently overloaded."}}`,
	},
	setup: func(t *testing.T, home, url string) []string {
		dir := filepath.Join(home, ".codex")
		require.NoError(t, os.Mkdir(dir, 0o700))
		config := fmt.Sprintf(`model = "gpt-5-codex"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "%s/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
`, url)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600))
		return []string{"CODEX_HOME=" + dir, "MOCK_KEY=none"}
	},
	write: func(_, file string) *mock.Tool {
		return &mock.Tool{Name: "exec_command", Input: map[string]any{"cmd": "echo " + file + " >" + file}}
	},
	look: func(string) *mock.Tool {
		return &mock.Tool{Name: "exec_command", Input: map[string]any{"cmd": "cat TODO.md"}}
	},
	limit: func(until time.Time) *mock.Error {
		body := fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":%d}}`, until.Unix())
		return &mock.Error{Status: http.StatusTooManyRequests, Body: body}
	},
}

var opencodeAgent = realAgent{
	name: "opencode", login: "opencode auth login", codes: anthropicBodies, busy: 529,
	setup: func(t *testing.T, home, url string) []string {
		dir := filepath.Join(home, ".config", "opencode")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		config := fmt.Sprintf(`{"model":"anthropic/claude-sonnet-4-5","provider":{"anthropic":{"options":{"baseURL":"%s/v1"}}}}`, url)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "opencode.json"), []byte(config), 0o600))
		return []string{"ANTHROPIC_API_KEY=none", "OPENCODE_DISABLE_AUTOUPDATE=1"}
	},
	write: func(dir, file string) *mock.Tool {
		return &mock.Tool{Name: "write", Input: map[string]any{"filePath": filepath.Join(dir, file), "content": file}}
	},
	look: func(dir string) *mock.Tool {
		return &mock.Tool{Name: "read", Input: map[string]any{"filePath": filepath.Join(dir, "TODO.md")}}
	},
}

// A realRun is a project with three tasks, an agent and the API that it calls. A task is
// done when the file that has its name is there.
type realRun struct {
	*testing.T
	agent realAgent
	dir   string // of the project
	home  string
	env   []string
	api   *mock.Server
}

var realTasks = []string{"one", "two", "three"}

// newRealRun makes a project with a plan. answer is asked first; with nil the model works: it
// writes the first file that is not there, and says so.
func newRealRun(t *testing.T, agent realAgent, answer func(*realRun, mock.Request) *mock.Answer) *realRun {
	t.Helper()
	r := newRealProject(t, agent, answer)
	plan := "- [ ] " + strings.Join(realTasks, "\n- [ ] ") + "\n"
	for name, text := range map[string]string{"TODO.md": plan, "check.sh": `test -e "$LOPEN_TASK"` + "\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
	}
	code, out := r.lopen("plan", "create", "m", "--from", "TODO.md")
	require.Zero(t, code, out)
	return r
}

// newRealProject makes a project of nothing but a git repository.
func newRealProject(t *testing.T, agent realAgent, answer func(*realRun, mock.Request) *mock.Answer) *realRun {
	t.Helper()
	r := &realRun{T: t, agent: agent, dir: filepath.Join(t.TempDir(), "project")}
	r.home = t.TempDir()
	r.api = mock.Serve(t, func(q mock.Request) mock.Answer {
		if answer != nil {
			if a := answer(r, q); a != nil {
				return *a
			}
		}
		return r.work(q)
	})
	bin, err := filepath.Abs(filepath.Join(*realAgents, "node_modules", ".bin"))
	require.NoError(t, err)
	r.env = append(agent.setup(t, r.home, r.api.URL), asCommand, "HOME="+r.home, "XDG_STATE_HOME="+filepath.Join(r.home, "state"),
		"PATH="+bin+":"+os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "LOPEN_TEST_WAIT=500ms")
	require.NoError(t, os.Mkdir(r.dir, 0o700))
	require.NoError(t, exec.Command("git", "-C", r.dir, "init", "-q").Run())
	return r
}

// work is what a healthy model answers.
func (r *realRun) work(q mock.Request) mock.Answer {
	if q.Results > 0 {
		return mock.Answer{Text: "The file is written.", Usage: mock.Usage{Input: 50, Output: 10, Cached: 1100}}
	}
	for _, task := range realTasks {
		if _, err := os.Stat(filepath.Join(r.dir, task)); err != nil {
			return mock.Answer{Text: "I write the file.", Tool: r.agent.write(r.dir, task), Usage: mock.Usage{Input: 100, Output: 20, Cached: 1000}}
		}
	}
	return mock.Answer{Text: "Every file is there.", Usage: mock.Usage{Input: 50, Output: 10}}
}

func (r *realRun) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(r, err)
	cmd := exec.CommandContext(r.Context(), self, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.dir, r.env, 5*time.Second
	return cmd
}

// lopen runs a command, and returns its exit code and all that it printed.
func (r *realRun) lopen(args ...string) (int, string) {
	r.Helper()
	out, err := r.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(r, err)
	}
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

// run is a night's run of the plan.
func (r *realRun) run(args ...string) (int, string) {
	r.Helper()
	code, out := r.lopen(r.args(args...)...)
	r.Logf("lopen %s: exit %d\n%s", strings.Join(r.args(args...), " "), code, out)
	return code, out
}

func (r *realRun) args(args ...string) []string {
	return append([]string{"run", "m", "--agent", r.agent.name, "--check", "sh check.sh", "--unattended"}, args...)
}

// killed starts a run, and kills it when seen is closed.
func (r *realRun) killed(seen <-chan struct{}) {
	r.Helper()
	cmd := r.command(r.args()...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(r, cmd.Start())
	select {
	case <-seen:
	case <-time.After(time.Minute):
		r.Error("the agent asks nothing")
	}
	require.NoError(r, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	r.Logf("killed\n%s", out.String())
}

// attempts are the records of a task's starts.
func (r *realRun) attempts(task string) (all []record.Attempt) {
	r.Helper()
	code, out := r.lopen("session", "log", "m", "--task", task, "--json")
	if code == 12 { // never started
		return nil
	}
	require.Zero(r, code, out)
	require.NoError(r, json.Unmarshal([]byte(out), &all))
	return all
}

// thens are what followed each start of a task.
func (r *realRun) thens(task string) (all []string) {
	r.Helper()
	for _, a := range r.attempts(task) {
		all = append(all, a.Then)
	}
	return all
}

// complete requires that the plan is done, that no task has more than one attempt that
// counts, and that what the session says it used is what the API served.
func (r *realRun) complete() {
	r.Helper()
	require.Equal(r, r.api.Served(), r.done())
}

// done requires that the plan is done, and that no task has more than one attempt that
// counts. It returns what the session says it used.
func (r *realRun) done() mock.Usage {
	r.Helper()
	var shown struct {
		Status       string
		InputTokens  int64
		OutputTokens int64
		CachedTokens int64
		Tasks        []struct {
			ID, State string
			Attempts  int
		}
	}
	code, out := r.lopen("session", "show", "m", "--json")
	require.Zero(r, code, out)
	require.NoError(r, json.Unmarshal([]byte(out), &shown))
	require.Equal(r, "complete", shown.Status)
	for _, task := range shown.Tasks {
		require.Equal(r, "complete", task.State, task.ID)
		require.Equal(r, 1, task.Attempts, task.ID)
	}
	return mock.Usage{Input: shown.InputTokens, Output: shown.OutputTokens, Cached: shown.CachedTokens}
}

// resumed are the conversations that have what an earlier process said, and a new prompt.
func (r *realRun) resumed(said string) (n int) {
	for _, q := range r.api.Requests() {
		if q.Results == 0 && strings.Contains(q.Said, said) {
			n++
		}
	}
	return n
}
