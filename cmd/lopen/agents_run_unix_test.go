//go:build unix

package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent/mock"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// TestRealAgents runs plans with the real agents, whose APIs are mocks. It shows when one
// has drifted from what its profile knows: make agents.
func TestRealAgents(t *testing.T) {
	if *realAgents == "" {
		t.Skip("needs the real agents: make agents, or -agents DIR")
	}
	for name, test := range map[string]struct {
		run    func(*testing.T, realAgent)
		agents []realAgent
	}{
		"plan":     {planDone, []realAgent{claudeAgent, codexAgent, opencodeAgent}},
		"login":    {loginNeeded, []realAgent{claudeAgent, codexAgent, opencodeAgent}},
		"model":    {modelNeeded, []realAgent{claudeAgent, codexAgent, opencodeAgent}},
		"killed":   {killedAndResumed, []realAgent{claudeAgent, codexAgent, opencodeAgent}},
		"limit":    {limitWaits, []realAgent{claudeAgent, codexAgent}},
		"overload": {overloadWaits, []realAgent{claudeAgent, codexAgent}},
		"cut":      {cutAnywhere, []realAgent{claudeAgent, codexAgent}},
		"lost":     {lostAndResumed, []realAgent{claudeAgent, codexAgent}},
		"down":     {nobodyListens, []realAgent{claudeAgent, codexAgent}},
		"silent":   {silenceEnds, []realAgent{claudeAgent, codexAgent}},
		"slow":     {slowIsNotSilent, []realAgent{claudeAgent}},
		"denied":   {deniedIsNamed, []realAgent{claudeAgent}},
		"nogit":    {gitNeeded, []realAgent{codexAgent}},
	} {
		for _, agent := range test.agents {
			t.Run(name+"/"+agent.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, agent)
			})
		}
	}
}

// planDone: three tasks, each with a tool call; what was used is what was served.
func planDone(t *testing.T, agent realAgent) {
	r := newRealRun(t, agent, nil)
	code, out := r.run()
	require.Zero(t, code)
	require.Contains(t, out, "I write the file.")
	r.complete()
	for _, task := range realTasks {
		all := r.attempts(task)
		require.Len(t, all, 1)
		require.Equal(t, agent.name, all[0].Agent)
		require.NotEmpty(t, all[0].AgentSession)
	}
}

// limitWaits: a limit in the middle of the work counts no attempt. When it ends, the agent's
// own session goes on.
func limitWaits(t *testing.T, agent realAgent) {
	var until time.Time
	r := newRealRun(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
		switch q.N {
		case 1:
			return &mock.Answer{Text: "I look around.", Tool: agent.look(r.dir), Usage: mock.Usage{Input: 10, Output: 5}}
		case 2:
			until = time.Now().Add(8 * time.Second).Truncate(time.Second)
			if agent.name == "codex" { // says the minute only
				until = time.Now().Add(time.Minute).Truncate(time.Minute)
			}
		}
		if time.Now().Before(until) {
			return &mock.Answer{Error: r.agent.limit(until)}
		}
		return nil
	})
	code, _ := r.run()
	require.Zero(t, code)
	r.complete()
	all := r.attempts("one")
	require.Equal(t, []string{record.Waits, record.Done}, r.thens("one"))
	require.Equal(t, "limit", all[0].Problem)
	require.NotNil(t, all[0].RetryAt)
	require.WithinDuration(t, until, *all[0].RetryAt, time.Second)
	require.Equal(t, all[0].AgentSession, all[1].AgentSession)
	require.Positive(t, r.resumed("I look around."))
}

// needed requires that a run ends soon with exit 2, and that nothing was counted.
func needed(r *realRun, problem string, questions int) string {
	r.Helper()
	begun := time.Now()
	code, out := r.run()
	require.Equal(r, 2, code)
	require.Less(r, time.Since(begun), time.Minute)
	require.LessOrEqual(r, len(r.api.Requests()), questions)
	all := r.attempts("one")
	require.Equal(r, []string{record.Needed}, r.thens("one"))
	require.Equal(r, problem, all[0].Problem)
	require.Empty(r, r.attempts("two"))
	code, state := r.lopen("session", "show", "m", "--jq", `.tasks[0] | [.state, .attempts // 0]`)
	require.Zero(r, code)
	require.NotContains(r, state, "failed")
	require.Contains(r, state, ",0]")
	return out
}

// failing answers every question with an error.
func failing(status int) func(*realRun, mock.Request) *mock.Answer {
	return func(r *realRun, _ mock.Request) *mock.Answer {
		return &mock.Answer{Error: &mock.Error{Status: status, Body: r.agent.codes[status]}}
	}
}

// loginNeeded: at the first retry that cannot succeed, and not after ten.
func loginNeeded(t *testing.T, agent realAgent) {
	r := newRealRun(t, agent, failing(401))
	require.Contains(t, needed(r, "login", 3), agent.login)
}

func modelNeeded(t *testing.T, agent realAgent) {
	needed(newRealRun(t, agent, failing(404)), "model", 3)
}

// gitNeeded: an agent that wants a repository says so before it asks anything.
func gitNeeded(t *testing.T, agent realAgent) {
	r := newRealRun(t, agent, nil)
	require.NoError(t, os.RemoveAll(filepath.Join(r.dir, ".git")))
	require.Contains(t, needed(r, "no-git", 0), "git init")
}

// overloadWaits: an overload of the provider counts no attempt.
func overloadWaits(t *testing.T, agent realAgent) {
	r := newRealRun(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
		if q.N > 5 {
			return nil
		}
		return failing(agent.busy)(r, q)
	})
	code, _ := r.run()
	require.Zero(t, code)
	r.complete()
	thens := r.thens("one")
	require.Equal(t, record.Waits, thens[0])
	require.Equal(t, "overload", r.attempts("one")[0].Problem)
	require.Equal(t, record.Done, thens[len(thens)-1])
}

// lostAndResumed: the connection is lost after the model wrote the file, until the agent
// gives up. Then its own session is resumed: the model sees what it said before.
func lostAndResumed(t *testing.T, agent realAgent) {
	r := newRealRun(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
		if q.Results > 0 && r.resumed("I write the file.") == 0 {
			a := r.work(q)
			a.Text, a.Deltas, a.Cut = "It is ", 100, 300
			return &a
		}
		return nil
	})
	code, _ := r.run()
	require.Zero(t, code)
	r.complete()
	require.Positive(t, r.resumed("I write the file."))
	all := r.attempts("one")
	require.Equal(t, []string{record.Waits, record.Done}, r.thens("one"))
	require.Equal(t, "network", all[0].Problem)
	require.Equal(t, all[0].AgentSession, all[1].AgentSession)
}

// cutAnywhere: whichever byte the answers of the first task are cut at, and however often,
// each task is done and none has an attempt that counts twice.
func cutAnywhere(t *testing.T, agent realAgent) {
	rnd := rand.New(rand.NewPCG(*seed, 2))
	var mu sync.Mutex
	cuts := 0
	r := newRealRun(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
		mu.Lock()
		defer mu.Unlock()
		if cuts == 8 {
			return nil
		}
		cuts++
		a := r.work(q)
		a.Cut = 1 + rnd.IntN(1200)
		t.Logf("question %d is cut at byte %d", q.N, a.Cut)
		return &a
	})
	code, _ := r.run()
	require.Zero(t, code)
	served := r.api.Served() // of whole answers; what a cut one cost is known to the agent
	require.GreaterOrEqual(t, r.done().Input, served.Input)
}

// nobodyListens: a network that is not there is waited for, and counts nothing.
func nobodyListens(t *testing.T, agent realAgent) {
	r := newRealRun(t, agent, nil)
	r.api.Close()
	code, _ := r.run("--wait", "2s", "--idle-timeout", "30s")
	require.Equal(t, 75, code)
	for _, a := range r.attempts("one") {
		require.Equal(t, record.Waits, a.Then)
		require.Equal(t, "network", a.Problem)
	}
}

// deniedIsNamed: the check is granted; another command is refused, and the run says which
// flag grants it.
func deniedIsNamed(t *testing.T, agent realAgent) {
	bash := func(command string) *mock.Answer {
		return &mock.Answer{Tool: &mock.Tool{Name: "Bash", Input: map[string]any{"command": command, "description": "run it"}}}
	}
	r := newRealRun(t, agent, func(_ *realRun, q mock.Request) *mock.Answer {
		switch q.Results {
		case 1:
			return bash("sh check.sh")
		case 2:
			return bash("go test ./...")
		}
		return nil
	})
	code, out := r.run()
	require.Zero(t, code)
	require.Contains(t, out, `--allowedTools 'Bash(go test ./...)'`)
	all := r.attempts("one")
	require.Len(t, all, 1)
	require.Len(t, all[0].Denied, 1)
	require.Contains(t, all[0].Denied[0], "go test ./...")
}

// killedAndResumed: a run that was killed in a task is started again; the agent's own
// session goes on.
func killedAndResumed(t *testing.T, agent realAgent) {
	asked := make(chan struct{})
	r := newRealRun(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
		switch q.N {
		case 1:
			return &mock.Answer{Text: "I look around.", Tool: agent.look(r.dir)}
		case 2:
			close(asked)
			return &mock.Answer{Text: "hm ", Hang: true}
		}
		return nil
	})
	r.killed(asked)
	code, _ := r.run()
	require.Zero(t, code)
	require.Positive(t, r.resumed("I look around."))
	require.Equal(t, record.Done, r.thens("one")[len(r.thens("one"))-1])
}

// silenceEnds: an answer that falls silent ends the attempt, which counts.
func silenceEnds(t *testing.T, agent realAgent) {
	r := newRealRun(t, agent, func(_ *realRun, q mock.Request) *mock.Answer {
		if q.N == 1 {
			return &mock.Answer{Text: "I think about ", Hang: true}
		}
		return nil
	})
	code, _ := r.run("--idle-timeout", "10s")
	require.Zero(t, code)
	require.Equal(t, []string{record.Failed, record.Done}, r.thens("one"))
	require.Contains(t, r.attempts("one")[0].Failure, "10s")
}

// slowIsNotSilent: what counts is that events come, however long the answer takes.
func slowIsNotSilent(t *testing.T, agent realAgent) {
	r := newRealRun(t, agent, func(r *realRun, q mock.Request) *mock.Answer {
		if q.N != 2 {
			return nil
		}
		a := r.work(q)
		a.Text, a.Deltas, a.Pace = "slowly ", 40, time.Second/2
		return &a
	})
	code, out := r.run("--idle-timeout", "10s")
	require.Zero(t, code)
	require.Contains(t, out, strings.Repeat("slowly ", 20))
	r.complete()
}
