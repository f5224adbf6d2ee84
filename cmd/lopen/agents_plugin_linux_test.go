package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent/mock"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// TestRealPlugin has the real agents, whose APIs are mocks, call lopen by their plugin, as a person
// installs it: make agents.
func TestRealPlugin(t *testing.T) {
	if *realAgents == "" {
		t.Skip("needs the real agents: make agents, or -agents DIR")
	}
	both, claude := []realAgent{claudeAgent, codexAgent}, []realAgent{claudeAgent}
	for name, test := range map[string]struct {
		run    func(*testing.T, realAgent)
		agents []realAgent
	}{
		"turns":    {turnsAreKept, both},
		"error":    {errorsFailTheTurn, both},
		"gate":     {gateSendsBack, both},
		"mended":   {gateIsMended, both},
		"killed":   {killedInATurn, both},
		"two":      {twoAtOnce, both},
		"broken":   {brokenStores, both},
		"run":      {noSecondSession, both},
		"hidden":   {otherFoldersAreNot, both},
		"settings": {settingsAreUntouched, claude},
	} {
		for _, agent := range test.agents {
			t.Run(name+"/"+agent.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, agent)
			})
		}
	}
}

// A keptAgent is one that somebody starts in a project.
type keptAgent struct{ *realRun }

// newKept makes a project with some files, in which the agent's turns are kept.
func newKept(t *testing.T, agent realAgent, answer func(*realRun, mock.Request) *mock.Answer) *keptAgent {
	t.Helper()
	p := &keptAgent{newRealProject(t, agent, answer)}
	for name, text := range map[string]string{"kept": "line\n", "gone": "here\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	p.must("plugin", agent.name, "install", "--yes")
	p.must("init")
	return p
}

func (p *keptAgent) must(args ...string) string {
	p.Helper()
	code, out := p.lopen(args...)
	require.Zero(p, code, "lopen %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(out)
}

// start is the agent with a prompt; more are flags of it.
func (p *keptAgent) start(prompt string, more ...string) *exec.Cmd {
	p.Helper()
	args := append([]string{"claude", "-p", prompt, "--allowedTools", "Bash Write Edit Read"}, more...)
	if p.agent.name == "codex" {
		args = []string{"codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-s", "danger-full-access"}
		args = append(append(args, more...), prompt)
	}
	path := filepath.Join(*realAgents, "node_modules", ".bin", args[0])
	cmd := exec.CommandContext(p.Context(), path, args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.dir, append(p.env, "CLAUDE_CODE_MAX_RETRIES=1"), 5*time.Second
	return cmd
}

// ask has the agent do a turn, and returns its exit code and what it printed. What was told last is
// on the disk some time after the agent has ended.
func (p *keptAgent) ask(prompt string, more ...string) (int, string) {
	p.Helper()
	cmd := p.start(prompt, more...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(p, err)
	}
	p.Logf("%s %q: %v\n%s%s", p.agent.name, prompt, err, stdout.String(), stderr.String())
	return cmd.ProcessState.ExitCode(), stdout.String()
}

// settled waits until no session is active.
func (p *keptAgent) settled() {
	p.Helper()
	require.Eventually(p, func() bool {
		code, out := p.lopen("session", "list", "--jq", `[.[] | select(.status == "active" or .status == "paused")] | length`)
		return code == 0 && strings.TrimSpace(out) == "0"
	}, 20*time.Second, 100*time.Millisecond)
}

// outcomes are the attempts of all turns: what became of each, and the files that it changed.
func (p *keptAgent) outcomes() (all []string) {
	p.Helper()
	var attempts []record.Attempt
	require.NoError(p, json.Unmarshal([]byte(p.must("session", "log", "--task", "", "--json")), &attempts))
	for _, a := range attempts {
		var files []string
		for _, f := range a.Files {
			files = append(files, f.Change+" "+f.Path)
		}
		all = append(all, strings.TrimSuffix(a.Task+" "+a.Then+": "+strings.Join(files, ", "), ": "))
	}
	return all
}

// shell is a call of a command by the model.
func (r *realRun) shell(command string) *mock.Answer {
	name, key := "Bash", "command"
	if r.agent.name == "codex" {
		name, key = "exec_command", "cmd"
	}
	return &mock.Answer{Text: "I run it.", Tool: &mock.Tool{Name: name, Input: map[string]any{key: command}}}
}

// steps are the answers to a prompt, one after another; the last one is for all that follow.
func steps(q mock.Request, all ...*mock.Answer) *mock.Answer { return all[min(q.Results, len(all)-1)] }

// twoPrompts is a model that works on files by commands and by its own tools.
func twoPrompts(r *realRun, q mock.Request) *mock.Answer {
	done := &mock.Answer{Text: "All done."}
	if strings.Contains(q.Prompt, "first") {
		return steps(q, r.shell("echo new >by-shell; echo more >>kept; rm gone"), &mock.Answer{Text: "And by a tool.", Tool: r.agent.write(r.dir, "by-tool")}, done)
	}
	if r.agent.name == "claude" {
		return steps(q, r.shell("mkdir sub && echo deep >sub/deep"), &mock.Answer{Tool: &mock.Tool{Name: "Read", Input: map[string]any{"file_path": filepath.Join(r.dir, "kept")}}},
			&mock.Answer{Tool: &mock.Tool{Name: "Edit", Input: map[string]any{"file_path": filepath.Join(r.dir, "kept"), "old_string": "line", "new_string": "edited"}}}, done)
	}
	return steps(q, r.shell("mkdir sub && sed -i s/line/edited/ kept && echo deep >sub/deep"), done)
}

// files are those of the project, with their contents.
func (p *keptAgent) files() map[string]string {
	p.Helper()
	all := map[string]string{}
	require.NoError(p, filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".lopen"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(p.dir, path)
		all[rel] = string(data)
		return err
	}))
	return all
}

// turnsAreKept: two prompts, in one session of the agent, and back.
func turnsAreKept(t *testing.T, agent realAgent) {
	p := newKept(t, agent, twoPrompts)
	was := p.files()
	code, _ := p.ask("the first one")
	require.Zero(t, code)
	p.settled()
	between := p.files()
	more := []string{"--continue"}
	if agent.name == "codex" {
		more = []string{"resume", "--last"}
	}
	code, _ = p.ask("the second one", more...)
	require.Zero(t, code)
	p.settled()

	require.Equal(t, "1", p.must("session", "list", "--jq", "length"))
	own := p.must("session", "show", "--jq", ".agentSession")
	transcript := map[string]string{"claude": ".claude/projects/*/", "codex": ".codex/sessions/*/*/*/*"}[agent.name] + own + ".jsonl"
	found, err := filepath.Glob(filepath.Join(p.home, transcript))
	require.NoError(t, err)
	require.Len(t, found, 1, own)
	require.Contains(t, p.must("session", "list", "--jq", ".[0].id"), agent.name+"-")
	require.Equal(t, []string{
		"prompt-1 done: created by-shell, created by-tool, deleted gone, modified kept",
		"prompt-2 done: modified kept, created sub/deep",
	}, p.outcomes())
	require.Contains(t, p.must("session", "log"), "by-shell")
	require.Contains(t, p.must("session", "show", "--messages"), "And by a tool.")
	p.must("checkpoint", "rewind", "prompt:2", "--yes")
	require.Equal(t, between, p.files())
	p.must("checkpoint", "rewind", "prompt:1", "--yes")
	require.Equal(t, was, p.files())
}

// errorsFailTheTurn: an error of the provider ends a turn, and the agent ends as it does without us. Codex does
// not tell of errors: its transcript does.
func errorsFailTheTurn(t *testing.T, agent realAgent) {
	for _, status := range []int{401, agent.busy} {
		p := newKept(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
			if strings.Contains(q.Prompt, "works") {
				return &mock.Answer{Text: "All done."}
			}
			return failing(status)(r, q)
		})
		p.ask("it works")
		code, _ := p.ask("this does not")
		require.Equal(t, 1, code)
		p.settled()
		require.Equal(t, []string{"prompt-1 failed"}, p.outcomes())
		why := map[int]string{401: "authentication_failed", 529: "server_error"}[status]
		if agent.name == "codex" {
			why = map[int]string{401: "Incorrect API key provided", 503: "at capacity"}[status]
		}
		require.Contains(t, p.must("session", "log", "--task", "prompt-1"), why)
	}
}

// gateSendsBack: a check that fails sends a turn back three times, and then the turn ends.
func gateSendsBack(t *testing.T, agent realAgent) {
	p := newKept(t, agent, func(*realRun, mock.Request) *mock.Answer { return &mock.Answer{Text: "All done."} })
	p.must("config", "set", "gate", "true")
	p.must("config", "set", "check", "echo the reason; test -e wanted")
	code, _ := p.ask("do it")
	require.Zero(t, code)
	p.settled()
	all := p.api.Requests()
	require.Len(t, all, 4, "the prompt, and three times the check")
	require.Contains(t, all[1].Said, "the reason")
	require.Equal(t, []string{"prompt-1 failed", "prompt-1 failed", "prompt-1 failed", "prompt-1 failed"}, p.outcomes())
}

// gateIsMended: the agent does what the check asks for, and the turn is done.
func gateIsMended(t *testing.T, agent realAgent) {
	p := newKept(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
		if strings.Contains(q.Said, "the reason") && !strings.Contains(q.Said, "It is there now.") && q.Results == 0 {
			a := r.shell("touch wanted")
			a.Text = "It is there now."
			return a
		}
		return &mock.Answer{Text: "All done."}
	})
	p.must("config", "set", "gate", "true")
	p.must("config", "set", "check", "echo the reason; test -e wanted")
	code, _ := p.ask("do it")
	require.Zero(t, code)
	p.settled()
	require.Equal(t, []string{"prompt-1 failed", "prompt-1 done: created wanted"}, p.outcomes())
}

// killedInATurn: what an agent was doing when it was killed is interrupted, and its session is resumed.
func killedInATurn(t *testing.T, agent realAgent) {
	asked := make(chan struct{})
	p := newKept(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
		switch q.N {
		case 1:
			return r.shell("echo half >half")
		case 2:
			close(asked)
			return &mock.Answer{Text: "hm ", Hang: true}
		}
		return &mock.Answer{Text: "All done."}
	})
	cmd := p.start("do it")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	<-asked
	require.Equal(t, "active", p.must("session", "list", "--jq", ".[0].status"))
	code, out := p.lopen("checkpoint", "rewind", "prompt:1", "--yes")
	require.Equal(t, 11, code, out)
	require.Contains(t, out, "a turn of "+agent.name+" is in progress")
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return p.must("session", "list", "--jq", ".[0].status") == "interrupted" }, 10*time.Second, 50*time.Millisecond)
	more := []string{"--resume", p.must("session", "show", "--jq", ".agentSession")}
	if agent.name == "codex" {
		more = []string{"resume", more[1]}
	}
	code, _ = p.ask("go on", more...)
	require.Zero(t, code)
	p.settled()
	require.Equal(t, "1", p.must("session", "list", "--jq", "length"))
	require.Equal(t, []string{"prompt-1 interrupted: created half", "prompt-2 done"}, p.outcomes())
	// Between the kill and the next prompt it may have been the person.
	require.Contains(t, p.must("checkpoint", "rewind", "prompt:1", "--yes"), "half (changed while")
	require.FileExists(t, filepath.Join(p.dir, "half"))
	p.must("checkpoint", "rewind", "prompt:1", "--yes", "--contested")
	require.NoFileExists(t, filepath.Join(p.dir, "half"))
}

// twoAtOnce: two agents in one project are two sessions.
func twoAtOnce(t *testing.T, agent realAgent) {
	p := newKept(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
		name := "b"
		if strings.Contains(q.Prompt, "file a") {
			name = "a"
		}
		return steps(q, r.shell("echo x >"+name), &mock.Answer{Text: "All done."})
	})
	var all []*exec.Cmd
	for _, name := range []string{"a", "b"} {
		cmd := p.start("file " + name)
		require.NoError(t, cmd.Start())
		all = append(all, cmd)
	}
	for _, cmd := range all {
		require.NoError(t, cmd.Wait())
	}
	p.settled()
	require.Equal(t, `["complete","complete"]`, p.must("session", "list", "--jq", "[.[].status]"))
	require.Equal(t, `["prompt-1 done","prompt-1 done"]`, p.must("session", "list", "--jq", `[.[] | "prompt-\(.progress.total) done"]`))
	require.FileExists(t, filepath.Join(p.dir, "a"))
	p.must("session", "verify")
}

// brokenStores: whatever is in the place of the store, the agent says and does what it does without us.
func brokenStores(t *testing.T, agent realAgent) {
	sessions := func(p *keptAgent) string { return filepath.Join(p.dir, ".lopen", "sessions") }
	for name, spoil := range map[string]func(*testing.T, *keptAgent){
		"file": func(t *testing.T, p *keptAgent) {
			require.NoError(t, os.RemoveAll(filepath.Join(p.dir, ".lopen")))
			require.NoError(t, os.WriteFile(filepath.Join(p.dir, ".lopen"), nil, 0o600))
		},
		"zeros": func(t *testing.T, p *keptAgent) {
			n := 0
			require.NoError(t, filepath.WalkDir(sessions(p), func(path string, d os.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() && strings.Contains(path, "journal") {
					n++
					info, _ := d.Info()
					err = os.WriteFile(path, make([]byte, info.Size()), 0o600)
				}
				return err
			}))
			require.Positive(t, n)
		},
		"fifo": func(t *testing.T, p *keptAgent) {
			require.NoError(t, os.RemoveAll(filepath.Join(p.dir, ".lopen", "checkpoints")))
			require.NoError(t, syscall.Mkfifo(filepath.Join(p.dir, ".lopen", "checkpoints"), 0o600))
		},
		"config": func(t *testing.T, p *keptAgent) {
			require.NoError(t, os.WriteFile(filepath.Join(p.dir, ".lopen", "config.json"), []byte("\x00{"), 0o600))
		},
		"full": func(t *testing.T, p *keptAgent) {
			if os.Getuid() != 0 {
				t.Skip("mounting a tmpfs takes root")
			}
			dir := filepath.Join(p.dir, ".lopen")
			require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
			t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
			_ = os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 1<<20), 0o600)
		},
		"gone": func(t *testing.T, p *keptAgent) { // lopen itself
			bin := filepath.Join(p.home, "lopen")
			self, err := os.Executable()
			require.NoError(t, err)
			require.NoError(t, os.Symlink(self, bin))
			cmd := exec.Command(bin, "plugin", agent.name, "install", "--yes")
			cmd.Env = p.env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NoError(t, os.Remove(bin))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newKept(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
				return steps(q, r.shell("echo x >made"), &mock.Answer{Text: "All done."})
			})
			code, _ := p.ask("healthy")
			require.Zero(t, code)
			p.settled()
			own := p.must("session", "show", "--jq", ".agentSession")
			require.NoError(t, os.Remove(filepath.Join(p.dir, "made")))
			spoil(t, p)
			more := []string{"--resume", own}
			if agent.name == "codex" {
				more = []string{"resume", own}
			}
			begun := time.Now()
			code, out := p.ask("broken", more...)
			require.Zero(t, code)
			require.Equal(t, "All done.\n", out)
			require.FileExists(t, filepath.Join(p.dir, "made"))
			require.Less(t, time.Since(begun), 30*time.Second)
		})
	}
}

// noSecondSession: what a run of lopen starts is the run's.
func noSecondSession(t *testing.T, agent realAgent) {
	r := newRealRun(t, agent, nil)
	p := &keptAgent{r}
	p.must("plugin", agent.name, "install", "--yes")
	args := []string{}
	if agent.name == "codex" {
		args = []string{"--", "codex", "exec", "--dangerously-bypass-hook-trust", "--sandbox", "workspace-write", "-"}
	}
	code, _ := r.run(args...)
	require.Zero(t, code)
	require.Equal(t, "1", p.must("session", "list", "--jq", "length"))
	require.Equal(t, "m", p.must("session", "list", "--jq", ".[0].module"))
}

// otherFoldersAreNot: a project without .lopen is none of ours.
func otherFoldersAreNot(t *testing.T, agent realAgent) {
	p := newKept(t, agent, twoPrompts)
	require.NoError(t, os.RemoveAll(filepath.Join(p.dir, ".lopen")))
	code, out := p.ask("the first one")
	require.Zero(t, code)
	require.Equal(t, "All done.\n", out)
	require.NoDirExists(t, filepath.Join(p.dir, ".lopen"))
}

// settingsAreUntouched: what the person set is byte for byte as before, after an install, a session and a remove.
func settingsAreUntouched(t *testing.T, agent realAgent) {
	p := newKept(t, agent, twoPrompts)
	p.must("plugin", "claude", "remove")
	mine := map[string]string{
		".claude/settings.json":       `{"env": {"MINE": "1"},   "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo x >\"$HOME/mine\""}]}]}}`,
		".claude/settings.local.json": "{ }",
		".claude/CLAUDE.md":           "Be brief.\n",
		".claude/skills/x/SKILL.md":   "---\nname: x\ndescription: x\n---\nx\n",
	}
	for name, text := range mine {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(p.home, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(p.home, name), []byte(text), 0o600))
	}
	p.must("plugin", "claude", "install", "--yes")
	list := p.start("", "")
	list.Args = []string{"claude", "plugin", "list"}
	out, err := list.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `lopen@skills-dir[\s\S]*loaded\n`, string(out))
	require.NotContains(t, string(out), "errors")
	code, _ := p.ask("the first one")
	require.Zero(t, code)
	p.settled()
	require.Equal(t, "1", p.must("session", "list", "--jq", "length"))
	require.FileExists(t, filepath.Join(p.home, "mine"), "the person's own hook runs beside ours")
	p.must("plugin", "claude", "remove")
	for name, text := range mine {
		data, err := os.ReadFile(filepath.Join(p.home, name))
		require.NoError(t, err)
		require.Equal(t, text, string(data), name)
	}
	require.NoDirExists(t, filepath.Join(p.home, ".claude/skills/lopen"))
}
