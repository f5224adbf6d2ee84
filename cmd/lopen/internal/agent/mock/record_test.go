//go:build unix

package mock

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	agents = flag.String("agents", "", "`DIR` whose node_modules has the real agents")
	record = flag.String("record", "", "record what the real agents print below `DIR`: make agents RECORD=DIR")
	only   = flag.String("only", "", "record samples with this `TEXT` in their names, and no index")
)

// A sample is one start of a real agent, and what is recorded of it: NAME.jsonl is its
// stdout, NAME.stderr its stderr, if there was any.
type sample struct {
	agent, name, about string
	args, env          []string // NAME= takes a variable away
	answer             func(*stage, Request) Answer
	prompt             string        // "" is "write the file"
	down, noGit        bool          // nothing listens; there is no repository
	limit              time.Duration // it is killed then; 0 is a minute
	kill               bool          // it is killed in its second answer
	then               func(*stage, sample)
}

// A stage is where samples of one conversation are recorded.
type stage struct {
	*testing.T
	project, home, url string
	api                *Server
	printed            string // by the last start
	index              func(string)
}

// TestRecord records the samples that the readers of events are tested with. Those of
// agents that try again for ever end after a minute.
func TestRecord(t *testing.T) {
	if *agents == "" || *record == "" {
		t.Skip("needs the real agents and a folder: make agents RECORD=DIR")
	}
	var mu sync.Mutex
	var index []string
	t.Cleanup(func() { // when all have ended
		slices.Sort(index)
		if *only == "" {
			require.NoError(t, os.WriteFile(filepath.Join(*record, "index.txt"), []byte(strings.Join(index, "")), 0o600))
		}
	})
	for _, s := range samples() {
		if !strings.Contains(s.agent+"/"+s.name, *only) {
			continue
		}
		t.Run(s.agent+"/"+s.name, func(t *testing.T) {
			t.Parallel()
			st := &stage{T: t, project: filepath.Join(t.TempDir(), "project"), home: t.TempDir(), url: "http://127.0.0.1:9"}
			st.index = func(line string) {
				mu.Lock()
				defer mu.Unlock()
				index = append(index, line)
			}
			require.NoError(t, os.Mkdir(st.project, 0o700))
			if !s.noGit {
				require.NoError(t, exec.Command("git", "-C", st.project, "init", "-q").Run())
			}
			if !s.down {
				st.api = Serve(t, func(r Request) Answer { return s.answer(st, r) })
				st.url = st.api.URL
			}
			st.record(s)
			if s.then != nil {
				s.then(st, s)
			}
		})
	}
}

// command is the command line of a sample and its environment.
func (st *stage) command(s sample) (argv, env []string) {
	env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + st.home, "TERM=dumb", "LANG=C.UTF-8", "TZ=UTC"}
	switch s.agent {
	case "claude":
		argv = []string{"claude", "-p", "--output-format", "stream-json", "--verbose"}
		env = append(env, "ANTHROPIC_BASE_URL="+st.url, "ANTHROPIC_API_KEY=none", "DISABLE_AUTOUPDATER=1")
	case "codex":
		argv = []string{"codex", "exec", "--json"}
		model := "gpt-5-codex"
		if s.name == "success_default_model" {
			model = "gpt-6.1-sol"
		}
		config := fmt.Sprintf("model = %q\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = %q\nenv_key = \"MOCK_KEY\"\nwire_api = \"responses\"\n", model, st.url+"/v1")
		require.NoError(st, os.WriteFile(filepath.Join(st.home, "config.toml"), []byte(config), 0o600))
		env = append(env, "MOCK_KEY=none", "CODEX_HOME="+st.home)
	case "opencode":
		argv = []string{"opencode", "run", "--format", "json", "--model", "anthropic/claude-sonnet-4-5"}
		env = append(env, "OPENCODE_DISABLE_AUTOUPDATE=1", "ANTHROPIC_API_KEY=none",
			"OPENCODE_CONFIG_CONTENT="+`{"provider":{"anthropic":{"options":{"baseURL":"`+st.url+`/v1"}}}}`)
	}
	for _, kv := range s.env {
		if name, ok := strings.CutSuffix(kv, "="); ok {
			env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		} else {
			env = append(env, kv)
		}
	}
	return append(argv, s.args...), env
}

// record starts an agent and writes down what it prints.
func (st *stage) record(s sample) {
	argv, env := st.command(s)
	if s.prompt == "" {
		s.prompt = "write the file"
	}
	if s.limit == 0 {
		s.limit = time.Minute
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(filepath.Join(*agents, "node_modules", ".bin", argv[0]), argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = st.project, env, strings.NewReader(s.prompt), &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begun := time.Now()
	require.NoError(st, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	how := "killed"
	var asked time.Time
	for open := true; open; {
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if how = "exit 0"; errors.As(err, &exit) {
				how = fmt.Sprintf("exit %d", exit.ExitCode())
			}
			open = false
		case now := <-time.After(100 * time.Millisecond):
			if s.kill && asked.IsZero() && len(st.api.Requests()) > 1 {
				asked = now
			}
			if now.Sub(begun) > s.limit || !asked.IsZero() && now.Sub(asked) > 2*time.Second {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				<-ended
				open = false
			}
		}
	}
	st.printed = out.String()
	dir := filepath.Join(*record, s.agent)
	require.NoError(st, os.MkdirAll(dir, 0o750))
	require.NoError(st, os.WriteFile(filepath.Join(dir, s.name+".jsonl"), st.clean(out.String()), 0o600))
	if said := harmless.ReplaceAllString(errs.String(), ""); said != "" {
		require.NoError(st, os.WriteFile(filepath.Join(dir, s.name+".stderr"), st.clean(said), 0o600))
	}
	line := fmt.Sprintf("%s/%s: %s: %s after %.0f s\n\t%s\n", s.agent, s.name, s.about, how, time.Since(begun).Seconds(), strings.Join(append(s.env, argv...), " "))
	st.index(string(st.clean(line)))
	st.Log(line)
}

// harmless is what codex says on stderr in healthy runs.
var harmless = regexp.MustCompile(`(?m)^(WARNING: proceeding, even though.*|Reading prompt from stdin\.\.\.)\n`)

// clean takes this machine's paths out of a text.
func (st *stage) clean(text string) []byte {
	folder := strings.NewReplacer("/", "-", ".", "-", "_", "-")
	return []byte(strings.NewReplacer(st.project, "/project", folder.Replace(st.project), "-project",
		st.home, "/home/me", st.url, "http://127.0.0.1:8080", strings.TrimPrefix(st.url, "http://"), "127.0.0.1:8080", *agents, "/agents").Replace(text))
}
