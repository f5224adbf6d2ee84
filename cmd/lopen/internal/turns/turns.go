package turns

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// MaxGates is how often a turn is sent back by a check that fails.
const MaxGates = 3

// maxTitle bounds the name of a turn, in bytes.
const maxTitle = 200

// A Keeper keeps the turns of one session. Sess was opened for Holder; see [lifecycle.Options].
type Keeper struct {
	Sess       *lifecycle.Session
	Agent      string // its name, such as claude
	Root       string // the folder that the agent works in
	Holder     *session.Holder
	Checkpoint bool // keep the project's files; else only note which changed
}

// Task returns the ID of the task that stands for a prompt. Prompts are counted from 1.
func Task(prompt int) string { return taskPrefix + strconv.Itoa(prompt) }

const taskPrefix = "prompt-"

// Prompt returns the number of the prompt that a task stands for, if it stands for one.
func Prompt(task string) (int, bool) {
	digits, ok := strings.CutPrefix(task, taskPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0
}

// Named returns the task that a person means by prompt:N, and any other text as it is.
func Named(text string) string {
	if n, err := strconv.Atoi(strings.TrimPrefix(text, "prompt:")); err == nil && strings.HasPrefix(text, "prompt:") {
		return Task(n)
	}
	return text
}

// InProgress returns the ID of the turn in progress, or "".
func (k *Keeper) InProgress() string { return k.Sess.State().ActiveTask() }

// again is the time within which a prompt with the same words is the same one, if the agent gives
// no ID: two hooks were called for one event.
const again = 2 * time.Second

// Late reports whether an event is of a turn before the one in progress, which began while the event waited
// for the session. The time alone does not tell: clocks go backwards.
func (k *Keeper) Late(event *Event) bool {
	h := k.Sess.State().Header()
	task, ok := k.Sess.State().Task(h.ActiveTask)
	last := noted(&h).Prompt
	return ok && event.PromptID != "" && last != "" && event.PromptID != last && task.StartedAt.After(event.Came)
}

// Begin begins the turn of a prompt. A turn that is still in progress has ended without a word, and is
// settled. When Begin returns nil, the files are kept as they are now.
func (k *Keeper) Begin(ctx context.Context, event *Event) error {
	st, now := k.Sess.State(), event.Came
	title, h := k.title(event.Prompt), st.Header()
	if t, ok := st.Task(k.InProgress()); ok {
		if known := noted(&h).Prompt; known != "" && known == event.PromptID || event.PromptID == "" && t.Name == title && now.Sub(t.StartedAt) < again {
			return nil
		}
		if err := k.settle(ctx, k.ending()); err != nil {
			return err
		}
	}
	n := h.TurnCount + 1
	id := Task(n)
	err := k.Sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Put(session.Task{ID: id, Kind: session.KindTask, Name: title, State: session.TaskInProgress, StartedAt: now})
		e.SetRoots(append(e.Roots(), id))
		h := e.Header()
		h.Origin, h.TurnCount, h.ActiveTask = session.OriginHook, n, id
		h.Phase, h.Step = session.PhaseBuilding, session.StepIterateThroughTasks
		h.Status, h.ExitReason, h.CompletedAt, h.Holder = session.StatusActive, "", time.Time{}, k.Holder
		return remember(h, note{k.Sess.Redact(event.Transcript), k.Sess.Redact(event.PromptID)})
	})
	if err != nil {
		return err
	}
	_, err = k.keep(ctx, checkpoint.BeforeTask, id)
	return err
}

// title returns the name of a turn.
func (k *Keeper) title(prompt string) string {
	return plain.Clip(k.Sess.Redact(Title(prompt)), maxTitle)
}

// Title returns the first line of a prompt that has words.
func Title(prompt string) string {
	for line := range strings.Lines(prompt) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return "(no words)"
}

// keep makes a checkpoint, or only finds out which files changed.
func (k *Keeper) keep(ctx context.Context, why checkpoint.Reason, id string) (changes []files.Change, err error) {
	if k.Checkpoint {
		_, changes, err = k.Sess.Checkpoint(ctx, why, id)
		return changes, err
	}
	if changes, err = k.Sess.Look(ctx); err == nil {
		err = k.Sess.Sync(ctx)
	}
	return changes, err
}

// A Check is the outcome of the check at the end of a turn.
type Check struct {
	session.CheckResult
	Tail string // the end of what it printed, if it failed
}

// End ends the turn in progress, if there is one. then is what became of it: Done, Failed or
// Interrupted, and failure why it failed. check is nil where none ran. When End returns nil, the
// files are kept as they are now, and the session is nobody's.
func (k *Keeper) End(ctx context.Context, then, failure string, check *Check) error {
	id := k.InProgress()
	if id == "" {
		return nil
	}
	changes, err := k.keep(ctx, checkpoint.AfterTask, id)
	if err != nil {
		return err
	}
	return k.finish(then, failure, changes, check)
}

// finish notes the end of the turn in progress.
func (k *Keeper) finish(then, failure string, changes []files.Change, check *Check) error {
	id := k.InProgress()
	task, ok := k.Sess.State().Task(id)
	if !ok {
		return nil
	}
	if err := k.record(&task, then, failure, changes, check); err != nil {
		return err
	}
	state := map[string]session.TaskState{record.Done: session.TaskComplete, record.Failed: session.TaskFailed, record.Interrupted: session.TaskSkipped}[then]
	now := time.Now()
	return k.Sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		t, _ := e.Task(id)
		t.State, t.CompletedAt, t.LastError = state, now, plain.Clip(k.Sess.Redact(failure), maxTitle)
		t.Attempts++
		e.Put(t)
		e.AppendIteration(session.Iteration{Task: id, Attempt: t.Attempts, StartedAt: t.StartedAt, Duration: now.Sub(t.StartedAt)})
		h := e.Header()
		h.ActiveTask, h.Status, h.ExitReason, h.Holder = "", session.StatusPaused, exits[then], nil
		if check != nil {
			result := check.CheckResult
			h.Check = &result
		}
		return nil
	})
}

var exits = map[string]session.ExitReason{record.Done: session.ExitPaused, record.Failed: session.ExitFailed, record.Interrupted: session.ExitInterrupted}

// SendBack notes that the check has failed and that the agent goes on with its turn. It returns
// how often that was, and false if the turn was sent back often enough: it then has to end.
func (k *Keeper) SendBack(failure string, check *Check) (n int, more bool, err error) {
	task, ok := k.Sess.State().Task(k.InProgress())
	if !ok {
		return 0, false, errors.New("no turn is in progress")
	}
	if n = task.Attempts + 1; n > MaxGates {
		return n, false, nil
	}
	if err := k.record(&task, record.Failed, failure, nil, check); err != nil {
		return n, false, err
	}
	return n, true, k.Sess.Change(session.TriggerTaskFailed, func(e *session.Edit) error {
		t, _ := e.Task(task.ID)
		t.Attempts, t.LastError = n, plain.Clip(k.Sess.Redact(failure), maxTitle)
		e.Put(t)
		result := check.CheckResult
		e.Header().Check = &result
		return nil
	})
}

func (k *Keeper) record(task *session.Task, then, failure string, changes []files.Change, check *Check) error {
	a := record.Attempt{
		Task: task.ID, Attempt: task.Attempts + 1, Iteration: k.Sess.State().NumIterations() + 1,
		Agent: k.Agent, StartedAt: task.StartedAt.UTC(), EndedAt: time.Now().UTC(),
		Then: then, Failure: failure,
	}
	a.Files, a.MoreFiles = loop.FileChanges(changes)
	if check != nil {
		a.Check = &record.CheckRun{Command: check.Command, Exit: check.Exit, Ms: check.Duration.Milliseconds()}
		a.CheckTail = check.Tail
	}
	if err := k.Sess.Record(a); err != nil {
		return fmt.Errorf("record %s: %w", task.ID, err)
	}
	return nil
}

// Finish ends the session of the agent: nobody works in it until the agent is started on it again.
func (k *Keeper) Finish(ctx context.Context) error {
	if err := k.Leave(ctx); err != nil {
		return err
	}
	return k.Sess.Complete(ctx)
}
