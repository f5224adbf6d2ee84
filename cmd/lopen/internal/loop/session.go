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
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/process"
)

// Plans is where a run has its plan from.
type Plans interface {
	Plan(module string) (*plan.Plan, error)
	CreatePlan(module string, content []byte) error
	ReloadPlan(module string, base *plan.Plan) (*plan.Plan, error)
	EditPlan(module string, base *plan.Plan, change plan.Change) (*plan.Plan, error)
}

// Session is what a run does with its session; see [lifecycle.Session] for what each
// call promises.
type Session interface {
	State() *session.State
	Update(fn func(*session.State) (*session.State, error)) error
	Change(t session.Trigger, fn func(*session.Edit) error) error
	Record(a record.Attempt) error
	// Output keeps what an attempt prints.
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
	// CommandEnded is how the command of the last attempt ended, nil where nobody knows.
	CommandEnded() (*process.Ended, error)
	// ChildHeld says whether something still holds the lock that the last command inherited.
	ChildHeld() (bool, error)
	// Incarnation is another one after Unpause has made the session again, whose folder
	// was removed; "" where there are no folders.
	Incarnation() string

	Checkpoint(ctx context.Context, why checkpoint.Reason, task string) (*checkpoint.Entry, []files.Change, error)
	// CheckpointsOver is by how many bytes the checkpoints that have to stay exceed the limit.
	CheckpointsOver() int64
	Look(ctx context.Context) ([]files.Change, error)
	// SetBack brings the files that a failed task changed back; why says why not.
	SetBack(ctx context.Context, task string) (done rewind.Result, why string, err error)
	// NotSetBack puts on record why the files of a failed task stay as it left them.
	NotSetBack(task, why string) error
	// Patch is what a task has changed so far.
	Patch(ctx context.Context, task string, limit int) ([]byte, error)
	Past(ctx context.Context) (*lifecycle.Past, error)
	Release() error

	// HoldChild returns the lock that the next command inherits, nil when nobody will
	// look for it.
	HoldChild() (*process.Lock, error)

	// Logger is the session's log: each line has the session's ID.
	Logger() *zerolog.Logger
}

var (
	_ Plans   = (*lifecycle.Store)(nil)
	_ Session = (*lifecycle.Session)(nil)
)
