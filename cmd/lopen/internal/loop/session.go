package loop

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/criteria"
	"github.com/lopen-dev/lopen/writer/process"
)

// Plans reads and writes the plan of a run, and what is remembered of its specification; see [lifecycle.Store].
type Plans interface {
	Plan(module string) (*plan.Plan, error)
	CreatePlan(module string, content []byte) error
	ReloadPlan(module string, base *plan.Plan) (*plan.Plan, error)
	EditPlan(module string, base *plan.Plan, change plan.Change) (*plan.Plan, error)
	// Decisions returns what a person decided by commands and no State has yet.
	Decisions(module string) ([]tasks.Decision, error)
	// ForgetDecisions removes decisions that the State has durably.
	ForgetDecisions(module string, taken []tasks.Decision, but []string) error
	Specification(module string) (*criteria.Record, error)
	RememberSpecification(module string, r *criteria.Record) error
}

// Session is the session of a run; see [lifecycle.Session] for what each call promises.
type Session interface {
	State() *session.State
	Update(fn func(*session.State) (*session.State, error)) error
	Change(t session.Trigger, fn func(*session.Edit) error) error
	Record(a record.Attempt) error
	// Output begins to store what an attempt prints.
	Output(iteration int, a output.Attempt) (*output.Writer, error)
	Redact(text string) string
	RedactArgs(argv []string) []string

	Sync(ctx context.Context) error
	Pause(ctx context.Context, t session.Trigger, why session.ExitReason) error
	Complete(ctx context.Context) error
	Critical() <-chan error
	Unpause(ctx context.Context) error
	Paused() error
	PauseRequested() bool
	// WakeRequested is true once for each request of another process to end a wait.
	WakeRequested() bool
	// CommandEnded returns how the command of the last attempt ended, or nil if that is not known.
	CommandEnded() (*process.Ended, error)
	// ChildHeld reports whether the lock that the last command inherited is still held.
	ChildHeld() (bool, error)
	// Incarnation changes when the session's folder was removed and Unpause has made the
	// session again. It is "" in an unsaved store.
	Incarnation() string

	Checkpoint(ctx context.Context, why checkpoint.Reason, task string) (*checkpoint.Entry, []files.Change, error)
	// CheckpointsOver returns by how many bytes the checkpoints that have to stay exceed the limit.
	CheckpointsOver() int64
	Look(ctx context.Context) ([]files.Change, error)
	// SetBack sets back the files that a failed task changed. If it does not, why is the reason.
	SetBack(ctx context.Context, task string) (done rewind.Result, why string, err error)
	// NotSetBack records why the files of a failed task were not set back.
	NotSetBack(task, why string) error
	// Patch returns what a task has changed so far.
	Patch(ctx context.Context, task string, limit int) ([]byte, error)
	Past(ctx context.Context) (*lifecycle.Past, error)
	Release() error

	// HoldChild takes the lock that the next command inherits. It returns nil in an unsaved
	// store.
	HoldChild() (*process.Lock, error)

	// Logger returns the session's log, whose lines have the session's ID.
	Logger() *zerolog.Logger
}

var (
	_ Plans   = (*lifecycle.Store)(nil)
	_ Session = (*lifecycle.Session)(nil)
)
