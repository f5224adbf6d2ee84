package loop

import (
	"context"
	"io"
	"io/fs"
	"text/template"
	"time"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Config is one run. Zero durations mean no limit.
type Config struct {
	Store   Plans
	Session Session
	Module  string
	Project string // absolute path; the command and the check run in it
	Docs    fs.FS  // the project's folder again, for reading documents; nothing leads out of it
	// Outlines returns the outline of a document of Docs.
	Outlines func(name string) (*cache.Outline, error)
	Spec     string   // the specification, relative to the project, with slashes
	Command  []string // never empty
	Check    string   // for sh -c; "" for none
	// Assess runs the check, unless it remembers that it passed for the task on the tree
	// as it is: hit, since when. nil runs no check before the first task.
	Assess  func(ctx context.Context, task string, check func(context.Context) error) (at time.Time, hit bool, err error)
	Unit    string // leaf, task or component
	Only    string // a task's ID: run this one alone
	Prompt  *template.Template
	Environ []string
	GoOn    string // what to do after a run that ended early; "" for running again

	Timeout, IdleTimeout   time.Duration
	Wait                   time.Duration // in all, for an agent's limit
	PauseTimeout           time.Duration // for a storage error to go away
	Checkpoint             bool          // keep the files before and after each task
	RequireChange          bool          // a task that changes no file has failed
	Transcript             bool          // keep the prompts and what the command prints
	FailureThreshold       int           // attempts at a task; 0 means no limit
	MaxIterations          int           // starts of the command in this run; 0 means no limit
	Unattended, ByTerminal bool          // never asks; there is a person to ask
	UI                     UI
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
