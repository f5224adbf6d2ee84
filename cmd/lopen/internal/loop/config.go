package loop

import (
	"cmp"
	"context"
	"io"
	"text/template"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Config is one run. Only what its comment calls optional may be left out; a duration or a
// number of 0 is no limit.
type Config struct {
	// What is run, and where.

	Store     Plans
	Session   Session
	Module    string
	Project   string           // absolute path; the command and the check run in it
	Documents prompt.Documents // of the project
	Environ   []string         // of the command, the check and OnEvent; LOPEN_* are added

	// Agents are never empty: the first one works, and each of the others while those
	// before it are limited.
	Agents []*agent.Agent
	Prompt *template.Template
	Unit   string // what one start works on: leaf, task or component
	Only   string // optional: the ID of the only task to run

	// How a task is judged.

	Check string // for sh -c; optional
	// Assess runs check, unless the check is known to have passed for the task on the
	// project's files as they are: hit, and when. Optional: without it the check is not run
	// before the first task.
	Assess        func(ctx context.Context, task string, check func(context.Context) error) (at time.Time, hit bool, err error)
	RequireChange bool // a task that changes no file has failed
	RequireGreen  bool // a check that fails before the first task ends the run

	// Limits.

	Timeout          time.Duration // of an attempt with its check
	IdleTimeout      time.Duration // of an attempt or a check without output
	UnwatchedIdle    time.Duration // in place of an IdleTimeout of 0; the session does not remember it
	Wait             time.Duration // of all waits for an agent's limit together
	PauseTimeout     time.Duration // of a wait for a storage error to go away
	FailureThreshold int           // attempts at a task before it has failed
	MaxIterations    int           // starts of the command in this run
	Budget           Budget

	// What is stored.

	Checkpoint bool // the files before and after each task
	KeepFailed bool // the files of a failed task are not set back
	Output     bool // what each attempt printed, rendered
	Transcript bool // the prompt and the raw output of each attempt as well

	// Who is there.

	UI         UI
	Unattended bool   // nobody is asked: a task that used up its attempts has failed, and the rest runs
	ByTerminal bool   // a person can be asked
	OnEvent    string // for sh -c: gets each event on stdin; optional
	// ExitCode is what the process exits with after a run that ended with err, for OnEvent.
	// Optional without it.
	ExitCode   func(err error) int
	ResumeHint string // optional: what to do after a run that ended early, in place of running again
}

// idle is how long the command or the check may say nothing.
func (c *Config) idle() time.Duration { return cmp.Or(c.IdleTimeout, c.UnwatchedIdle) }

// A Budget bounds what runs cost. 0 is no limit.
type Budget struct {
	Cost      float64 // USD of this run
	Tokens    int64   // of this run; cached ones do not count
	DayCost   float64 // USD of all runs of this project since midnight, local time
	DayTokens int64
	Until     time.Time // no attempt starts from then on; the zero time is never
	// Today returns what all runs of this project have used since midnight, this one
	// included, as far as it is on the disk.
	Today func() (cost float64, tokens int64, err error)
}

// UI is the person in front of the run. Its methods are called by the run's goroutine, and
// Warn by that of OnEvent as well.
type UI interface {
	// Output returns where the command's stdout and stderr go, as they come.
	Output() (stdout, stderr io.Writer)
	// Say prints one line about the run itself.
	Say(format string, args ...any)
	// Warn is Say for what a person should look at.
	Warn(format string, args ...any)
	// Started and Done frame a task. One of the two is shown: where there is a
	// status line the task is on it, and elsewhere one line a start will do.
	Started(line string)
	Done(line string)
	// Status shows what is under way; it may show nothing.
	Status(Status)
	// Key returns a channel that gets a value when the person presses Enter, which ends
	// a wait early; nil where there is no terminal. stop ends the looking for one.
	Key() (pressed <-chan struct{}, stop func())
	// Choose asks; it is called only when Config.ByTerminal is set. It
	// returns the key of one of the choices, or an error when the person left.
	Choose(question string, choices []Choice) (rune, error)
	// Edit lets the person edit a file and returns when they are done.
	Edit(path string) error
}

// A Choice is an answer that Choose offers.
type Choice struct {
	Key  rune
	Text string
}

// Status is what a status line shows.
type Status struct {
	Task     string    // the running task's name, or what is waited for
	Attempt  int       // 0 when no task runs
	Since    time.Time // when Task began
	Until    time.Time // the end of a wait; zero when unknown
	Progress session.Progress
	Tokens   int64
}

// An Exit is a run that ended before its module was complete.
type Exit struct {
	Code   int // of the process
	Reason string
}

// The exit codes that a run ends with, besides 0.
const (
	ExitFailed      = 1
	ExitUser        = 2
	ExitBusy        = 11
	ExitStorage     = 14
	exitLimit       = 75
	ExitInterrupted = 130
)
