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

// Config is one run. Zero durations mean no limit.
type Config struct {
	Store     Plans
	Session   Session
	Module    string
	Project   string           // absolute path; the command and the check run in it
	Documents prompt.Documents // of Project
	// Agents are never empty: the first one works, and each of the others while those
	// before it are limited.
	Agents []*agent.Agent
	Check  string // for sh -c; "" for none
	// Assess runs the check, unless it remembers that it passed for the task on the tree
	// as it is: hit, since when. nil runs no check before the first task.
	Assess  func(ctx context.Context, task string, check func(context.Context) error) (at time.Time, hit bool, err error)
	Unit    string // leaf, task or component
	Only    string // a task's ID: run this one alone
	Prompt  *template.Template
	Environ []string
	GoOn    string // what to do after a run that ended early; "" for running again

	Timeout, IdleTimeout   time.Duration
	UnwatchedIdle          time.Duration // in place of an IdleTimeout that is 0; nothing remembers it
	Wait                   time.Duration // in all, for an agent's limit
	PauseTimeout           time.Duration // for a storage error to go away
	Checkpoint             bool          // keep the files before and after each task
	RequireChange          bool          // a task that changes no file has failed
	RequireGreen           bool          // a red check before the first task ends the run
	KeepFailed             bool          // the files of a task that failed stay as they are
	Output                 bool          // keep what each attempt printed, rendered
	Transcript             bool          // keep the prompt and the raw output of each attempt as well
	Budget                 Budget
	OnEvent                string // for sh -c: gets each Event on stdin; "" for none
	FailureThreshold       int    // attempts at a task; 0 means no limit
	MaxIterations          int    // starts of the command in this run; 0 means no limit
	Unattended, ByTerminal bool   // never asks; there is a person to ask
	UI                     UI

	// ExitCode is what the process exits with after a run that ended with err: OnEvent is
	// told. It may be nil without OnEvent.
	ExitCode func(err error) int
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

// UI is the person in front of the run.
type UI interface {
	// Output is where the command's stdout and stderr go, as they come.
	Output() (stdout, stderr io.Writer)
	// Say prints one line about the run itself.
	Say(format string, args ...any)
	// Warn is Say for what a person should look at.
	Warn(format string, args ...any)
	// Started and Done frame a task. One of the two is shown: where there is a
	// status line the task is on it, and elsewhere one line a start will do.
	Started(line string)
	Done(line string)
	// Status shows what is going on; it may show nothing.
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
	ExitLimit       = 75
	ExitInterrupted = 130
)
