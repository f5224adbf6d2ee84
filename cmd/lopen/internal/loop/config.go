package loop

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"text/template"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Config is the configuration of one run. A field may be left out only if its comment says
// that it is optional. A duration or a number of 0 means no limit.
type Config struct {
	// What is run, and where.

	Store     Plans
	Session   Session
	Module    string
	Project   string           // absolute path
	Tree      string           // absolute path of the work tree; the command and the check run in it
	Folder    fs.FileInfo      // of the work tree, which is open: nothing is started in another one at its path; optional
	Documents prompt.Documents // of the project
	Environ   []string         // of the command, the check and OnEvent; LOPEN_* are added

	// Agents has at least one agent. The first one works; each of the others works while
	// those before it are limited.
	Agents []*agent.Agent
	Prompt *template.Template
	Unit   string // what one start works on: leaf, task or component
	Select Selection

	// How a task is judged.

	Check string // for sh -c; optional
	// Assess runs check, unless it is known that the check passed for the task on the same
	// files; then hit is true and at is when. Optional: without it the check is not run before
	// the first task.
	Assess        func(ctx context.Context, task string, check func(context.Context) error) (at time.Time, hit bool, err error)
	RequireChange bool // a task that changes no file has failed
	RequireGreen  bool // a check that fails before the first task ends the run

	// Limits.

	Timeout          time.Duration // of an attempt with its check
	IdleTimeout      time.Duration // of an attempt or a check without output
	UnwatchedIdle    time.Duration // replaces an IdleTimeout of 0; the session does not store it
	Wait             time.Duration // sum of all waits for an agent's limit
	PauseTimeout     time.Duration // of a wait for the end of a storage error
	FailureThreshold int           // number of attempts after which a task has failed
	MaxIterations    int           // number of starts of the command in this run
	Budget           Budget

	// Shared is shared with the other runs of the process; nil means that this is the only one.
	Shared *Shared

	// What is stored.

	Checkpoint bool // make checkpoints before and after each task
	KeepFailed bool // do not set back the files of a failed task
	Output     bool // store the rendered output of each attempt
	Transcript bool // store also the prompt and the raw output of each attempt
	// Commit commits the files of each task that is done to Repository, which is optional
	// without it; with Branch on a branch of the session's own.
	Commit, Branch bool
	Repository     Repository
	// Replicate waits until what was saved is kept elsewhere as well; optional. A task's box is ticked
	// only then.
	Replicate func(ctx context.Context) error
	// Transaction is what completed tasks are written to; optional.
	Transaction Transaction

	// Who is present.

	UI         UI
	Unattended bool   // nobody is asked: a task without attempts left has failed, and the others run
	ByTerminal bool   // a person can be asked
	OnEvent    string // for sh -c: gets each event on stdin; optional
	// ExitCode returns the exit code of the process for a run that ended with err, for
	// OnEvent. It is optional without OnEvent.
	ExitCode   func(err error) int
	ResumeHint string // optional: what to do after a run that ended early, instead of running again
}

// idle returns how long the command or the check may print nothing.
func (c *Config) idle() time.Duration { return cmp.Or(c.IdleTimeout, c.UnwatchedIdle) }

// A Budget limits the cost of runs. 0 means no limit.
type Budget struct {
	Cost      float64 // USD of this run
	Tokens    int64   // tokens of this run; cached ones do not count
	DayCost   float64 // USD of all runs of this project since midnight, local time
	DayTokens int64
	Until     time.Time // no attempt starts at or after this time; zero means no limit
	// Today returns the cost of all runs of this project since midnight, including this one,
	// as far as it is on the disk.
	Today func() (cost float64, tokens int64, err error)
}

// UI is the user interface of a run. The run's goroutine calls its methods; that of OnEvent
// calls Warn as well.
type UI interface {
	// Output returns the writers for the command's stdout and stderr.
	Output() (stdout, stderr io.Writer)
	// Say prints one line about the run itself.
	Say(format string, args ...any)
	// Warn is Say for a line that a person should notice.
	Warn(format string, args ...any)
	// Started and Done print a line at the begin and at the end of a task. With a status line
	// only Done is shown, because the status line shows the task; without one only Started.
	Started(line string)
	Done(line string)
	// Status shows what is in progress; it may show nothing.
	Status(Status)
	// Key returns a channel that gets a value when the person presses Enter, which ends a
	// wait early. The channel is nil without a terminal. stop ends the reading of keys.
	Key() (pressed <-chan struct{}, stop func())
	// Choose asks the person. It is called only if Config.ByTerminal is set. It returns the
	// key of one of the choices, or an error if the person left.
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
	Task     string    // the running task's name, or the cause of a wait
	Attempt  int       // 0 when no task runs
	Since    time.Time // when Task began
	Until    time.Time // the end of a wait; zero when unknown
	Progress session.Progress
	Tokens   int64
	CostUSD  float64
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
