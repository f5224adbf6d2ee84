package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gateArgs are what a command takes, where it takes something.
var gateArgs = map[string]string{
	"lopen backup": "../b", "lopen backup prune": "../b", "lopen backup restore": "../b", "lopen checkpoint pin": "last", "lopen checkpoint unpin": "last",
	"lopen checkpoint restore": "last f", "lopen config set": "check true", "lopen fleet join": "postgres://x@127.0.0.1:9/lopen --yes",
	"lopen plan add": "m x", "lopen plan create": "n", "lopen plan mark": "m one failed", "lopen plan move": "m one --after two", "lopen plan push": "m",
	"lopen plan remove": "m one", "lopen plan rename": "m one x", "lopen plan revive": "m one", "lopen plan skip": "m one", "lopen plan tick": "m one",
	"lopen plan untick": "m one", "lopen plan update": "m", "lopen plugin claude install": "--yes", "lopen plugin claude remove": "--yes",
	"lopen plugin codex install": "--yes", "lopen plugin codex remove": "--yes", "lopen session import": "../bundle", "lopen session pull": "m",
	"lopen session rename": "m x", "lopen session delete": "m --yes", "lopen undo": "--yes", "lopen checkpoint rewind": "last --yes",
	"lopen transaction rollback": "--yes", "lopen worktree remove": "m", "lopen session recover": "m --yes", "lopen trust revoke": "--all",
	"lopen session verify --accept": "m", "lopen run --no-check": "n -- true", "lopen run --beside": "n -- true",
}

// refusable are the commands that an agent must not call, and the words to call each with.
func refusable() map[string][]string {
	all := map[string][]string{}
	for path, kind := range gates {
		if kind >= alters {
			all[path] = append(strings.Fields(path)[1:], strings.Fields(gateArgs[path])...)
		}
	}
	return all
}

// gated is a project with a plan and what the user has in their own folders, which nobody else changes.
type gated struct {
	t   *testing.T
	dir string
	env []string
}

func newGated(t *testing.T) *gated {
	t.Helper()
	g := &gated{t: t, dir: t.TempDir() + "/project"}
	require.NoError(t, os.Mkdir(g.dir, 0o700))
	home := g.dir + "/../home"
	exe, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(home, 0o700))
	require.NoError(t, os.WriteFile(home+"/lopen", []byte("#!/bin/sh\n"+asCommand+" exec "+exe+" \"$@\"\n"), 0o700)) // #nosec G306 -- it is executed
	g.env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME="+home+"/state", "XDG_CONFIG_HOME="+home+"/config", "PATH="+home+":"+os.Getenv("PATH"), "CLAUDE_PROJECT_DIR="+g.dir)
	g.sh(`printf -- '- [ ] one\n- [ ] two\n' >t.md && lopen plan create m --from t.md && lopen init`)
	return g
}

// sh runs a script as a person, or as what the test process is.
func (g *gated) sh(script string) string {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Env = g.dir, g.env
	out, err := cmd.CombinedOutput()
	require.NoError(g.t, err, "%s", out)
	return string(out)
}

// elsewhere runs a script as a person does in another terminal: no ancestor of it is of this test.
func (g *gated) elsewhere(script string) string {
	g.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(g.t.Context()), "sh", "-c", `exec 3<&0; (read go <&3; sh -c "$0") &`, script)
	cmd.Dir, cmd.Env = g.dir, g.env
	in, err := cmd.StdinPipe()
	require.NoError(g.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(g.t, err)
	require.NoError(g.t, cmd.Start())
	_, err = cmd.Process.Wait() // from then on it has no parent here
	require.NoError(g.t, err)
	_, err = in.Write([]byte("\n"))
	require.NoError(g.t, err)
	text := &strings.Builder{}
	buf := make([]byte, 4096)
	for {
		n, err := out.Read(buf)
		text.Write(buf[:n])
		if err != nil {
			return text.String()
		}
	}
}

// all is a script that calls each command and says which were not refused.
func calls() string {
	var script strings.Builder
	for path, words := range refusable() {
		fmt.Fprintf(&script, "lopen %s >out 2>&1 </dev/null && echo 'done: %s' >>../allowed; grep -q '^lopen: refused ' out || { echo 'not refused: %s'; cat out; } >>../allowed\n", strings.Join(words, " "), path, path)
	}
	return script.String() + "exit 0\n"
}

func (g *gated) requireAllRefused() {
	g.t.Helper()
	allowed, err := os.ReadFile(g.dir + "/../allowed")
	require.ErrorIs(g.t, err, os.ErrNotExist, "%s", allowed)
}

func TestAnAgentOfARunIsRefused(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	g := newGated(t)
	require.NoError(t, os.WriteFile(g.dir+"/../agent.sh", []byte("unset LOPEN_SESSION_ID LOPEN_MODULE\n"+calls()), 0o600))
	g.sh(`lopen run m --task one --check true -- sh ../agent.sh`)
	g.requireAllRefused()
}

func TestAnAgentOfATurnIsRefused(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	g := newGated(t)
	hook := func(event string) string {
		return g.sh(`echo '{"session_id":"0f8fad5b-d9cb","cwd":"/","hook_event_name":"` + event + `"}' | lopen hook claude`)
	}
	hook("UserPromptSubmit")
	g.sh("unset CLAUDE_PROJECT_DIR\n" + calls())
	g.sh("mv .lopen ../x; cd /; ! lopen config set max_cost 5 && ! lopen trust revoke --all; mv \"$OLDPWD/../x\" \"$OLDPWD/.lopen\"")
	g.sh("! XDG_STATE_HOME=$PWD/../state lopen plan tick m one") // nor where it moves the notes of its turn away
	g.requireAllRefused()
	require.Contains(t, g.elsewhere("lopen config set max_cost 3 && lopen plan add m three 2>&1"), "three", "a person's change from elsewhere counts")
	hook("Stop")
	g.sh("lopen config set max_cost 4 && lopen plan add m four")
}

// TestWhatAnAgentRuns: an agent may start a run, but nothing that it types is an approval, and no check goes.
func TestWhatAnAgentRuns(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	g := newGated(t)
	g.sh(`git init -q . && git config user.email a@b && git config user.name a && echo x >f && git add f && git commit -qm x
lopen plan create n --from t.md && lopen plan create o --from t.md
lopen run n --task one --check 'test ! -e ../evil' -- sh -c 'date +%N >f'`)
	require.NoError(t, os.WriteFile(g.dir+"/../agent.sh", []byte(`unset LOPEN_SESSION_ID LOPEN_MODULE
try() { "$@" >out 2>&1 </dev/null; echo "$?: $*" >>../codes; cat out >>../codes; }
date +%N >f
try lopen run o -- sh -c 'echo >../ran'
try lopen run o --check 'echo >../checked' -- sh -c 'date +%N >f'
try lopen run o --commit -- sh -c 'date +%N >f'
try lopen run o --worktree -- sh -c 'date +%N >f'
try lopen run n --check true --failure-threshold 9 --max-iterations 1 -- sh -c 'echo >../evil'
touch ../evil
try lopen run n --check true --failure-threshold 9 -- sh -c 'date +%N >f'
try env LOPEN_CHECK=true lopen run n
try env LOPEN_CHECK=true lopen run n --no-resume --failure-threshold 1
mkdir -p ../oc/lopen; echo '{"check":"true"}' >../oc/lopen/config.json
try env XDG_CONFIG_HOME=$PWD/../oc lopen run n --no-resume --failure-threshold 1
mv .lopen/sessions ../away
try lopen run n --check true --failure-threshold 1 -- sh -c 'date +%N >f'
rm -rf .lopen/sessions; mv ../away .lopen/sessions
`), 0o600))
	g.sh(`lopen run m --task one --check true -- sh ../agent.sh`)
	data, err := os.ReadFile(g.dir + "/../codes")
	require.NoError(t, err)
	codes := string(data)
	for _, name := range []string{"ran", "checked"} {
		require.NoFileExists(t, g.dir+"/../"+name, codes)
	}
	require.Equal(t, 5, strings.Count(codes, "never approved here"), codes)
	require.NotContains(t, codes, "\n0: ", codes)
	require.Contains(t, codes, `the check "test ! -e ../evil": exit 1`, "the module's check judges what an agent starts: %s", codes)
	require.Contains(t, codes, "--failure-threshold is ignored: 9 is less strict than 3, and an agent does not loosen that", codes)
	plan, err := os.ReadFile(g.dir + "/.lopen/modules/n/plan.md")
	require.NoError(t, err)
	require.Contains(t, string(plan), "- [ ] two")
	log := g.sh("git log --format=%s --all")
	require.Equal(t, "x\n", log, "no commit was made")

	// What was approved for commits is not for making work trees.
	g.sh(`lopen plan create q --from t.md && lopen run q --task one --commit --check true -- sh -c 'date +%N >f'`)
	require.NoError(t, os.WriteFile(g.dir+"/../agent.sh", []byte(`unset LOPEN_SESSION_ID LOPEN_MODULE
date +%N >f
lopen run q --worktree --no-resume --task two >../tree 2>&1 </dev/null || true
`), 0o600))
	g.sh(`lopen run m --task two --check true -- sh ../agent.sh`)
	said, err := os.ReadFile(g.dir + "/../tree")
	require.NoError(t, err)
	require.Contains(t, string(said), "git would run the hooks and filters of the repository")
	require.NoDirExists(t, g.dir+"-worktrees")
}

// TestNobodyIsAskedBelowAnAgent: an agent can make a terminal of its own, and answer there.
func TestNobodyIsAskedBelowAnAgent(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	h := newHooked(t)
	require.NoError(t, os.WriteFile(h.dir+"/t.md", []byte("- [ ] one\n"), 0o600))
	must(t, h.dir, "plan", "create", "m", "--from", "t.md")
	require.Empty(t, h.hook("UserPromptSubmit", `,"prompt":"one"`))
	out := onTerminal(t, h.dir, "run", "m", "--", "touch", "ran")
	require.Contains(t, out, "never approved here")
	require.NotContains(t, out, "[y/N]")
	require.NoFileExists(t, h.dir+"/ran")
}
