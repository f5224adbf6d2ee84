//go:build unix

package loop

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/process"
)

// lines is a UI that records what is printed.
type lines struct {
	UI
	lines []string
}

func (l *lines) Output() (stdout, stderr io.Writer) { return io.Discard, io.Discard }
func (l *lines) Say(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}
func (l *lines) Warn(format string, args ...any)       { l.Say(format, args...) }
func (l *lines) Started(string)                        {}
func (l *lines) Done(string)                           {}
func (l *lines) Status(Status)                         {}
func (l *lines) Key() (<-chan struct{}, func())        { return nil, func() {} }
func (l *lines) has(text string) bool                  { return strings.Contains(strings.Join(l.lines, "\n"), text) }
func (l *lines) Choose(string, []Choice) (rune, error) { return 0, context.Canceled }

// bed is a run of a plan with two tasks in a real store.
func bed(t *testing.T, command, check string) (Config, *lifecycle.Session, *lines) {
	t.Helper()
	project := t.TempDir()
	store, _, err := lifecycle.Init(project, lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close(context.WithoutCancel(t.Context()))) })
	require.NoError(t, store.CreatePlan("todo", []byte("- [ ] one\n- [ ] two\n")))
	sess, err := store.Create(t.Context(), "todo")
	require.NoError(t, err)
	a, _, err := agent.Choose(agent.None, []string{"sh", "-c", "echo $LOPEN_TASK_ID >>starts; " + command}, nil, check)
	require.NoError(t, err)
	builtIn, err := prompt.Parse("")
	require.NoError(t, err)
	ui := &lines{}
	docs, err := documents.Open(project)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, docs.Close()) })
	return Config{Store: store, Session: sess, Module: "todo", Project: project, Tree: project, Agents: []*agent.Agent{a}, Check: check, Unit: "leaf",
		Prompt: builtIn, Environ: os.Environ(), Checkpoint: true, Unattended: true, UI: ui, FailureThreshold: 1,
		Documents: prompt.Documents{FS: docs, Spec: "none.md", Outlines: func(string) (*cache.Outline, error) { return nil, fs.ErrNotExist }},
		Assess: func(ctx context.Context, _ string, check func(context.Context) error) (time.Time, bool, error) {
			return time.Time{}, false, check(ctx)
		}}, sess, ui
}

// cut is bed behind a run that did the first task, and was killed when the second one had begun. header is what
// that left in the header as well.
func cut(t *testing.T, header func(*session.Header)) (Config, *lifecycle.Session, *lines) {
	t.Helper()
	cfg, sess, ui := bed(t, "exit 0", "")
	cfg.MaxIterations = 1
	var exit *Exit
	require.ErrorAs(t, Run(t.Context(), cfg), &exit)
	require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().ActiveTask, e.Header().Status = "two", session.StatusActive
		header(e.Header())
		two, _ := e.Task("two")
		two.State = session.TaskInProgress
		e.Put(two)
		return nil
	}))
	return cfg, sess, ui
}

// ended is a session whose last command ended while no run watched it.
type ended struct {
	*lifecycle.Session
	how  *process.Ended
	held bool
}

func (s *ended) CommandEnded() (*process.Ended, error) { return s.how, nil }
func (s *ended) ChildHeld() (bool, error)              { return s.held, nil }

// A task that was in progress when its loop died, with a check that passed when it began, is
// done only if its own command was seen to end well and nothing of it works any more.
func TestCutTaskIsJudgedByHowItsCommandEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		session ended
		check   string
		done    bool
		line    string
	}{
		"success":         {ended{how: &process.Ended{Iteration: 2, Success: true}}, "true", true, "its command ended well"},
		"failure":         {ended{how: &process.Ended{Iteration: 2, Exit: 1}}, "true", false, ""},
		"not known":       {ended{}, "true", false, ""},
		"held":            {ended{how: &process.Ended{Iteration: 2, Success: true}, held: true}, "true", false, "a process that its command left behind still runs"},
		"the check fails": {ended{how: &process.Ended{Iteration: 2, Success: true}}, "test $(wc -l <starts) != 1", false, "two runs again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, sess, ui := cut(t, func(*session.Header) {})
			c.session.Session = sess
			cfg.Session, cfg.Check, cfg.MaxIterations = &c.session, c.check, 0
			require.NoError(t, Run(t.Context(), cfg))
			starts, err := os.ReadFile(filepath.Join(cfg.Project, "starts"))
			require.NoError(t, err)
			require.Equal(t, c.done, string(starts) == "one\n", "%s", ui.lines)
			require.True(t, ui.has(c.line), "%s", ui.lines)
			two, _ := sess.State().Task("two")
			require.Equal(t, session.TaskComplete, two.State)
			require.Equal(t, 1, two.Attempts)
			require.Equal(t, session.BoxTicked, two.Box)
		})
	}
}

// That a check failed when a task began says that the task is done where it passes now, and only for this task
// and this check: where another one's failed, the task runs again.
func TestCutTaskIsJudgedByItsOwnCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at   *session.CheckResult
		done bool
	}{
		"failed":                    {&session.CheckResult{Task: "two", Command: "true", Exit: 1}, true},
		"failed of another task":    {&session.CheckResult{Task: "one", Command: "true", Exit: 1}, false},
		"another check failed":      {&session.CheckResult{Task: "two", Command: "exit 1", Exit: 1}, false},
		"passed":                    {&session.CheckResult{Task: "two", Command: "true"}, false},
		"none is known to have run": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, sess, ui := cut(t, func(h *session.Header) { h.Check = c.at })
			cfg.Session, cfg.Check, cfg.MaxIterations = &ended{Session: sess}, "true", 0
			require.NoError(t, Run(t.Context(), cfg))
			starts, err := os.ReadFile(filepath.Join(cfg.Project, "starts"))
			require.NoError(t, err)
			require.Equal(t, c.done, string(starts) == "one\n", "%s", ui.lines)
			require.Equal(t, c.done, ui.has("two was in progress when lopen was killed, and its check failed when it began"), "%s", ui.lines)
		})
	}
}

// The record of a task that was cut off names the agent that worked on it, which opens its
// session. This holds also if another agent is the first to work now.
func TestCutTaskIsThatOfItsAgent(t *testing.T) {
	t.Parallel()
	cfg, sess, _ := cut(t, func(h *session.Header) { h.AgentName, h.AgentSession = "helper", "s-1" })
	helper, _, err := agent.Choose("helper", nil, map[string]agent.Profile{"helper": {Start: []string{"true"}}}, "")
	require.NoError(t, err)
	cfg.Agents = append(cfg.Agents, helper)
	cfg.Session, cfg.Check, cfg.MaxIterations = &ended{Session: sess, how: &process.Ended{Iteration: 2, Success: true}}, "true", 0
	require.NoError(t, Run(t.Context(), cfg))
	past, err := sess.Past(t.Context())
	require.NoError(t, err)
	require.Equal(t, record.Done, past.Last.Then)
	require.Equal(t, "helper", past.Last.Agent)
	require.Equal(t, "s-1", past.Last.AgentSession)
	require.Equal(t, []string{"true"}, past.Last.Command)
}

// atBegin remembers how the last command ended, as known when a task becomes the active one.
type atBegin struct {
	*lifecycle.Session
	known []*process.Ended
}

func (b *atBegin) Change(t session.Trigger, fn func(*session.Edit) error) error {
	err := b.Session.Change(t, fn)
	if b.State().ActiveTask() != "" {
		e, _ := b.CommandEnded()
		b.known = append(b.known, e)
	}
	return err
}

// A task whose command never started is not judged by how the command of another one ended
// whose attempt was not recorded.
func TestNoTaskInheritsAnEnd(t *testing.T) {
	t.Parallel()
	cfg, sess, _ := bed(t, "exit 0", "true")
	hold, err := sess.HoldChild()
	require.NoError(t, err)
	require.NoError(t, hold.Ended(process.Ended{Iteration: 1, Success: true}))
	require.NoError(t, hold.Release())
	e, err := sess.CommandEnded()
	require.NoError(t, err)
	require.NotNil(t, e)
	begin := &atBegin{Session: sess}
	cfg.Session = begin
	require.NoError(t, Run(t.Context(), cfg))
	require.NotEmpty(t, begin.known)
	require.Nil(t, begin.known[0])
}

// A check that prints nothing is also ended in a run that nobody watches.
func TestNobodyWatchesASilentCheck(t *testing.T) {
	t.Parallel()
	cfg, sess, ui := bed(t, "exit 0", "[ -e starts ] && sleep 60")
	cfg.UnwatchedIdle, cfg.MaxIterations = 300*time.Millisecond, 1
	var exit *Exit
	require.ErrorAs(t, Run(t.Context(), cfg), &exit)
	require.True(t, ui.has("ended after 300ms without output"), "%s", ui.lines)
	require.Zero(t, sess.State().Header().Settings.IdleTimeout)
}

// The line of a command's output that asks for a person is shown without its credentials.
func TestWordsOfAGuessAreRedacted(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	cfg, _, _ := bed(t, "", "")
	a, _, err := agent.Choose(agent.None, []string{"sh", "-c", "echo 'Failed to authenticate. API Error: 401 " + secret + "'; exit 1"}, nil, "")
	require.NoError(t, err)
	cfg.Agents = []*agent.Agent{a}
	var exit *Exit
	require.ErrorAs(t, Run(t.Context(), cfg), &exit)
	require.Contains(t, exit.Reason, "the agent needs you (login): Failed to authenticate.")
	require.NotContains(t, exit.Reason, secret)
}

// A start that did not count is no failed attempt in the prompts of the next run.
func TestUncountedStartsAreNotRecalled(t *testing.T) {
	t.Parallel()
	cfg, sess, _ := bed(t, "exit 7", "")
	cfg.FailureThreshold, cfg.MaxIterations = 3, 1
	var exit *Exit
	require.ErrorAs(t, Run(t.Context(), cfg), &exit)
	require.NoError(t, sess.Record(record.Attempt{Task: "one", Attempt: 2, Iteration: 2, Then: record.Uncounted, Failure: "lost"}))
	require.NoError(t, sess.Sync(t.Context()))
	past, err := sess.Past(t.Context())
	require.NoError(t, err)
	require.Len(t, past.Failed["one"], 1)
	require.Equal(t, "exit 7", past.Failed["one"][0].Failure)
}
