package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/sidecar"
	"github.com/lopen-dev/lopen/plan"
)

func exitCode(err error) int {
	var (
		found   *problemsError
		exit    *loop.Exit
		usage   *usageError
		paused  *lifecycle.PausedError
		several *cache.AmbiguousError
		gone    *lifecycle.WorktreeError
		tasks   *plan.AmbiguousError
		exposed *owner.Error
	)
	switch {
	case errors.As(err, &found):
		return exitProblems
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &exposed), errors.As(err, &gone), errors.Is(err, sidecar.ErrNoGit), errors.Is(err, repo.ErrNone):
		return loop.ExitUser
	case errors.Is(err, context.Canceled):
		return loop.ExitInterrupted
	case errors.As(err, &paused):
		return loop.ExitStorage
	case errors.Is(err, lifecycle.ErrNoStore):
		return exitNoStore
	case errors.Is(err, lifecycle.ErrBusy):
		return loop.ExitBusy
	case errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, checkpoint.ErrNotFound), errors.Is(err, cache.ErrNoSection), errors.Is(err, plan.ErrUnknownTask):
		return exitNotFound
	case errors.Is(err, lifecycle.ErrAmbiguous), errors.As(err, &several), errors.As(err, &tasks):
		return exitUsage
	case errors.Is(err, lifecycle.ErrCorrupt):
		return exitCorrupt
	case storageFailed(err):
		return loop.ExitStorage
	}
	return loop.ExitFailed
}

// storageFailed says whether what keeps a command from its work is the disk, or who
// may write on it: the same command may work once that is seen to.
func storageFailed(err error) bool {
	switch lifecycle.ClassOf(err) {
	case lifecycle.ClassNoSpace, lifecycle.ClassDenied, lifecycle.ClassDevice:
		return true
	}
	return false
}

// The exit codes that are not a run's own; see loop for those.
const (
	exitProblems = 3
	exitNoStore  = 10
	exitNotFound = 12
	exitCorrupt  = 13
	exitUsage    = 64
)

// A usageError is a mistake in how the command was called.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// usageIf makes an error that is one of some kinds a usage error.
func usageIf(err error, kinds ...error) error {
	if slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
		return &usageError{err}
	}
	return err
}

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// A problemsError says that a command did its work and found something wrong.
type problemsError struct{ text string }

func (e *problemsError) Error() string { return e.text }

// hint says what to do about an error, each way on a line of its own; "" where the error
// itself says it.
func hint(err error) string {
	var bad *lifecycle.DamagedError
	var gone *lifecycle.WorktreeError
	var own interface {
		error
		Advises() bool
	}
	var exposed *owner.Error
	busy := &lifecycle.BusyError{}
	_ = errors.As(err, &busy)
	switch {
	case errors.As(err, &own) && own.Advises():
		return ""
	case busy.Owner.Command == agents.Claude || busy.Owner.Command == agents.Codex:
		return fmt.Sprintf("  a turn of %s is in progress: wait until it ends, or stop it there (Esc)\n", busy.Owner.Command)
	case ofHook(busy.Owner):
		return "  a hook still keeps what the agent did: try again in a moment\n"
	case errors.Is(err, lifecycle.ErrNoStore):
		return "  make one: lopen init\n"
	case errors.As(err, &gone):
		return backAgain(gone)
	case errors.As(err, &exposed) && exposed.Mend != nil:
		return "  " + quoted(exposed.Mend) + "\n"
	case errors.As(err, &bad) && errors.Is(err, lifecycle.ErrEdited):
		return fmt.Sprintf("  take it as it was edited: lopen session recover %s --accept-edit\n  or discard the edit:      lopen session recover %s --discard-edit\n", bad.ID, bad.ID) +
			startFresh("or start a new session:   ", bad.ID.Module)
	case errors.As(err, &bad):
		return fmt.Sprintf("  make a new session of what can be read: lopen session recover %s\n", bad.ID) +
			startFresh("or start fresh:                         ", bad.ID.Module)
	case storageFailed(err):
		return "  " + lifecycle.ClassOf(err).Hint() + "\n"
	}
	return ""
}

// startFresh is a line about the begin of another session of a run. An agent's own begins by itself.
func startFresh(what, module string) string {
	if agents.IsModule(module) {
		return ""
	}
	return "  " + what + "lopen run " + module + " --no-resume -- CMD\n"
}
