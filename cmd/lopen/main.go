package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

func main() {
	child.KeepIfAsked()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}

// softLimit is the memory in bytes from which on the collector works harder than it would:
// it lets garbage grow to as much again as what is in use. What needs more gets it, at up
// to half of the processor's time. GOMEMLIMIT says otherwise.
const softLimit = 160 << 20

// run is the whole program. The first interrupt cancels what goes on, which
// saves and says how to go on; the second kills what was started: see interrupts.
func run(args []string, stdin *os.File, stdout, stderr io.Writer, environ []string) int {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	app := &app{stdin: stdin, args: args, environ: environ}
	app.stdout, app.stderr = plain.Streams(stdout, stderr)
	defer interrupts(cancel, app.stderr)()
	defer func() { _ = errors.Join(app.stdout.Close(), app.stderr.Close()) }()
	root := newRoot(app)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(app.stdout)
	root.SetErr(app.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(app.stderr, "lopen: %v\n%s", err, hint(err))
	return exitCode(err)
}

// hint says what to do about an error, each way on a line of its own; "" where the error
// itself says it.
func hint(err error) string {
	var bad *lifecycle.DamagedError
	switch {
	case errors.As(err, &bad) && errors.Is(err, lifecycle.ErrEdited):
		return fmt.Sprintf("  take it as it was edited: lopen session recover %s --accept-edit\n  or discard the edit:      lopen session recover %s --discard-edit\n  or start a new session:   lopen run %s --no-resume -- CMD\n", bad.ID, bad.ID, bad.ID.Module)
	case errors.As(err, &bad):
		return fmt.Sprintf("  make a new session of what can be read: lopen session recover %s\n  or start fresh:                         lopen run %s --no-resume -- CMD\n", bad.ID, bad.ID.Module)
	case storageFailed(err):
		return "  " + lifecycle.ClassOf(err).Hint() + "\n"
	}
	return ""
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

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// A problemsError says that a command did its work and found something wrong.
type problemsError struct{ text string }

func (e *problemsError) Error() string { return e.text }

func exitCode(err error) int {
	var (
		found   *problemsError
		exit    *loop.Exit
		usage   *usageError
		paused  *lifecycle.PausedError
		several *cache.AmbiguousError
	)
	switch {
	case errors.As(err, &found):
		return exitProblems
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return loop.ExitInterrupted
	case errors.As(err, &paused):
		return loop.ExitStorage
	case errors.Is(err, lifecycle.ErrNoStore):
		return exitNoStore
	case errors.Is(err, lifecycle.ErrBusy):
		return loop.ExitBusy
	case errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, checkpoint.ErrNotFound), errors.Is(err, cache.ErrNoSection):
		return exitNotFound
	case errors.Is(err, lifecycle.ErrAmbiguous), errors.As(err, &several):
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
